//! A self-contained HTML page: no network, no other file.

use std::io::{self, BufWriter, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

use super::model::{Fault, Picture, Servers, Title};

/// Writes the page.
///
/// # Errors
///
/// I/O errors of the sink.
pub fn html(picture: &Picture, title: &Title, out: &mut impl Write) -> io::Result<()> {
    let (columns, bytes) = columns(picture)?;
    let tick = tick(picture);
    let (start, end) = picture.time();
    let about = json!({
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
        "columns": columns,
    });
    let about = in_script(&about);
    for part in PAGE.split("%%") {
        match part {
            "ABOUT" => out.write_all(about.as_bytes())?,
            "DATA" => out.write_all(STANDARD.encode(&bytes).as_bytes())?,
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

/// The nanoseconds of a tick: the smallest number for which all times fit into 32 bits.
fn tick(picture: &Picture) -> u64 {
    // What exists at the start may have begun long before.
    let begin = beginning(picture);
    (picture.time().1 - begin) / u64::from(u32::MAX) + 1
}

fn beginning(picture: &Picture) -> u64 {
    let lives = picture.lives.iter().map(|life| life.start);
    let waits = picture.waits.iter().map(|wait| wait.start);
    let start = picture.time().0;
    lives.chain(waits).chain([start]).min().unwrap_or(start)
}

/// Numbers of 32 bits, column by column, compressed; and the name and length of each column. Times
/// are ticks since the beginning; `…End` and `…At` are stored as differences.
fn columns(picture: &Picture) -> io::Result<(Names, Vec<u8>)> {
    let (begin, tick) = (beginning(picture), tick(picture));
    let time = |at: u64| (at.saturating_sub(begin) / tick) as u32;
    let out = BufWriter::new(ZlibEncoder::new(Vec::new(), LEVEL));
    let mut columns = Columns { names: Vec::new(), out };
    columns.numbers("begin", [(begin >> 32) as u32, begin as u32])?;

    let lives = &picture.lives;
    columns.differences("lifeEnd", lives.iter().map(|life| time(life.end)))?;
    columns.numbers("lifeLength", lives.iter().map(|life| time(life.end) - time(life.start)))?;
    columns.numbers("lifeSlot", lives.iter().map(|life| life.slot))?;
    columns.numbers("lifeNumber", lives.iter().map(|life| life.number as u32))?;
    columns.numbers("lifeWhy", lives.iter().map(|life| life.why))?;

    let uses = &picture.uses;
    columns.differences("useEnd", uses.iter().map(|usage| time(usage.end)))?;
    columns.numbers("useLength", uses.iter().map(|usage| time(usage.end) - time(usage.start)))?;
    columns.numbers("useSlot", uses.iter().map(|usage| usage.slot))?;
    columns.numbers("useNumber", uses.iter().map(|usage| usage.number as u32))?;
    columns.numbers("useHolder", uses.iter().map(|usage| usage.holder as u32))?;
    columns.numbers("usePlace", uses.iter().map(|usage| usage.place))?;
    columns.numbers("useKind", uses.iter().map(|usage| usage.kind as u32))?;
    let noted = || uses.iter().enumerate().filter(|(_, usage)| usage.note != 0);
    columns.differences("noteAt", noted().map(|(index, _)| index as u32))?;
    columns.numbers("noteText", noted().map(|(_, usage)| usage.note))?;

    let waits = &picture.waits;
    columns.differences("waitEnd", waits.iter().map(|wait| time(wait.end)))?;
    columns.numbers("waitLength", waits.iter().map(|wait| time(wait.end) - time(wait.start)))?;
    columns.numbers("waitRow", waits.iter().map(|wait| wait.row))?;
    columns.numbers("waitId", waits.iter().map(|wait| wait.id as u32))?;
    columns.numbers("waitConnection", waits.iter().map(|wait| wait.connection as u32))?;
    columns.numbers("waitOutcome", waits.iter().map(|wait| wait.outcome.into()))?;
    // In microseconds: a limit may be much longer than the trace.
    let micros = |nanos: u64| u32::try_from(nanos / 1_000).unwrap_or(u32::MAX);
    columns.numbers("waitLimit", waits.iter().map(|wait| micros(wait.limit)))?;
    // 0 is unknown.
    let ahead = |ahead: Option<u32>| ahead.map_or(0, |ahead| ahead.saturating_add(1));
    columns.numbers("waitAhead", waits.iter().map(|wait| ahead(wait.ahead)))?;
    columns.numbers("waitWhy", waits.iter().map(|wait| wait.why))?;
    columns.numbers("waitPlace", waits.iter().map(|wait| wait.place))?;

    let points = &picture.points;
    columns.differences("pointAt", points.iter().map(|point| time(point.at)))?;
    columns.numbers("pointTotal", points.iter().map(|point| point.total))?;
    columns.numbers("pointInUse", points.iter().map(|point| point.in_use))?;
    columns.numbers("pointPending", points.iter().map(|point| point.pending))?;
    columns.numbers("pointWaiting", points.iter().map(|point| point.waiting))?;

    let limits = &picture.limits;
    columns.differences("limitAt", limits.iter().map(|limits| time(limits.at)))?;
    columns.numbers("limitMax", limits.iter().map(|limits| limits.max))?;
    columns.numbers("limitMin", limits.iter().map(|limits| limits.min))?;
    columns.numbers("limitConnecting", limits.iter().map(|limits| limits.connecting))?;

    let marks = &picture.marks;
    columns.differences("markAt", marks.iter().map(|mark| time(mark.at)))?;
    columns.numbers("markKind", marks.iter().map(|mark| mark.kind as u32))?;
    columns.numbers("markStep", marks.iter().map(|mark| mark.step as u32))?;
    columns.numbers("markText", marks.iter().map(|mark| mark.text))?;
    columns.numbers("markAbout", marks.iter().map(|mark| mark.about as u32))?;
    let encoder = columns.out.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok((columns.names, encoder.finish()?))
}

/// The columns and their lengths.
type Names = Vec<(&'static str, usize)>;

struct Columns {
    names: Names,
    /// A buffer, because the encoder reserves space for its whole output at each write.
    out: BufWriter<ZlibEncoder<Vec<u8>>>,
}

impl Columns {
    fn numbers(
        &mut self,
        name: &'static str,
        numbers: impl IntoIterator<Item = u32>,
    ) -> io::Result<()> {
        let mut count = 0;
        for number in numbers {
            self.out.write_all(&number.to_le_bytes())?;
            count += 1;
        }
        self.names.push((name, count));
        Ok(())
    }

    /// Stores each number as the difference from the previous one; wraps around if it is smaller.
    fn differences(
        &mut self,
        name: &'static str,
        numbers: impl IntoIterator<Item = u32>,
    ) -> io::Result<()> {
        let mut last = 0_u32;
        let differences = numbers.into_iter().map(|number| {
            let difference = number.wrapping_sub(last);
            last = number;
            difference
        });
        self.numbers(name, differences)
    }
}

/// A fast level, which still compresses to a third.
const LEVEL: Compression = Compression::new(2);
