//! Pictures of traces: an HTML page, and JSON for Perfetto and chrome://tracing.

mod beside;
mod collect;
mod columns;
mod counts;
mod detail;
mod html;
mod marks;
mod model;
mod perfetto;
mod rows;
mod servers;
mod steps;
mod texts;
mod told;

pub use beside::{beside, stacked};
pub use collect::Collector;
pub use html::html;
pub use model::{Fault, Picture, Servers, Title};
pub use perfetto::{packed_perfetto, perfetto};
pub use told::of_events;
