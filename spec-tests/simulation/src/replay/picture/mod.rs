//! Pictures of traces: an HTML page, and JSON for Perfetto and chrome://tracing.

mod collect;
mod html;
mod perfetto;
mod rows;

pub use collect::{Collector, Life, Limits, Mark, MarkKind, Picture, Point, Use, UseKind, Wait};
pub use html::html;
pub use perfetto::perfetto;
