//! Several traces in one page: each as a complete page in a frame of its own.

use std::io::{self, Write};

use serde_json::json;

use super::html::{html, in_script};
use super::model::{Picture, Servers, Title};

/// Writes a page with two traces beside each other, each with the name of its file.
///
/// # Errors
///
/// I/O errors of the sink.
pub fn beside(traces: &[(String, &Picture, &Title); 2], out: &mut impl Write) -> io::Result<()> {
    together(traces, false, out)
}

/// Writes a page with the traces of a client below each other: its servers first, and then its pools, with the same time
/// in view.
///
/// # Errors
///
/// I/O errors of the sink.
pub fn stacked(traces: &[(String, &Picture, &Title)], out: &mut impl Write) -> io::Result<()> {
    together(traces, true, out)
}

fn together(
    traces: &[(String, &Picture, &Title)],
    is_stacked: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut pages = Vec::new();
    for (name, picture, title) in traces {
        let mut page = Vec::new();
        html(picture, title, &mut page)?;
        let servers = picture.servers.as_ref().map_or(0, Servers::count);
        pages.push(json!({
            "name": name,
            "page": String::from_utf8_lossy(&page),
            "servers": servers,
            "uses": picture.uses.len(),
        }));
    }
    let (before, after) = PAGE.split_once("%%PAGES%%").unwrap_or((PAGE, ""));
    let pages = json!({ "stacked": is_stacked, "pages": pages });
    write!(out, "{before}{}{after}", in_script(&pages))
}

const PAGE: &str = include_str!("page/beside.html");
