//! Two traces in one page: each as a complete page in a frame of its own.

use std::io::{self, Write};

use cenote_core::trace::TraceHeader;
use serde_json::json;

use super::html::{html, in_script};
use super::model::Picture;

/// Writes a page with two traces, each with the name of its file.
///
/// # Errors
///
/// I/O errors of the sink.
pub fn beside(
    traces: [(String, &Picture, &TraceHeader); 2],
    out: &mut impl Write,
) -> io::Result<()> {
    let mut pages = Vec::new();
    for (name, picture, header) in traces {
        let mut page = Vec::new();
        html(picture, header, &mut page)?;
        pages.push(json!({ "name": name, "page": String::from_utf8_lossy(&page) }));
    }
    let (before, after) = PAGE.split_once("%%PAGES%%").unwrap_or((PAGE, ""));
    write!(out, "{before}{}{after}", in_script(&json!(pages)))
}

const PAGE: &str = include_str!("page/beside.html");
