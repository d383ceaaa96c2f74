//! A self-contained HTML page: no network, no other file.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::columns::{Columns, tick};
use super::model::{Fault, Picture, Servers, Title};

/// Writes the page.
///
/// # Errors
///
/// I/O errors of the sink.
pub fn html(picture: &Picture, title: &Title, out: &mut impl Write) -> io::Result<()> {
    let tick = tick(picture);
    let mut names = Vec::new();
    let (start, end) = picture.time();
    let about = |columns: &[(&str, usize)]| {
        json!({
            "address": title.address,
            "program": title.program,
            "origin": title.origin,
            "isNew": title.is_new,
            "isTopology": picture.is_topology,
            "servers": picture.servers.as_ref().map(|Servers(servers)| servers),
            "steps": picture.steps,
            "start": start,
            "end": end,
            "traced": picture.end,
            "tick": tick,
            "utcOffset": picture.utc_offset,
            "summary": picture.summary,
            "clears": picture.clears,
            "faults": faults(picture, title),
            "texts": picture.texts,
            "joinedBelow": picture.joined_below,
            "columns": columns,
        })
    };
    for part in PAGE.split("%%") {
        match part {
            "DATA" => names = Columns::write(picture, &mut *out)?,
            "ABOUT" => out.write_all(in_script(&about(&names)).as_bytes())?,
            "STYLE" => out.write_all(include_bytes!("page/page.css"))?,
            "SCRIPT" => SCRIPT.iter().try_for_each(|part| out.write_all(part.as_bytes()))?,
            plain => out.write_all(plain.as_bytes())?,
        }
    }
    Ok(())
}

/// JSON as the text of a script: there, `</script` ends the script, and `<!--<script` keeps it from
/// ending.
pub(super) fn in_script(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// Faults with their times in seconds since the origin. Without wall-clock time, they have no place.
fn faults(picture: &Picture, title: &Title) -> Vec<Value> {
    let one = |fault: &Fault| {
        let at = (fault.at as f64 - title.origin as f64) / 1e3;
        let lasted = fault.lasted as f64 / 1e3;
        json!({ "name": fault.name, "at": at, "lasted": lasted, "text": fault.text })
    };
    let known = picture.faults.iter().filter(|_| title.origin != 0);
    known.map(one).collect()
}

/// The body of one function, in parts.
const SCRIPT: [&str; 17] = [
    include_str!("page/data.js"),
    include_str!("page/statistics.js"),
    include_str!("page/clock.js"),
    include_str!("page/view.js"),
    include_str!("page/shapes.js"),
    include_str!("page/charts.js"),
    include_str!("page/lanes.js"),
    include_str!("page/servers.js"),
    include_str!("page/paint.js"),
    include_str!("page/words.js"),
    include_str!("page/panel.js"),
    include_str!("page/overview.js"),
    include_str!("page/find.js"),
    include_str!("page/link.js"),
    include_str!("page/pointer.js"),
    include_str!("page/keys.js"),
    include_str!("page/begin.js"),
];

const PAGE: &str = include_str!("page/page.html");
