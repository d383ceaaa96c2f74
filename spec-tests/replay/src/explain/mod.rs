//! Explains waits: what each request waited for, which connections leaked, and what a clear did.

mod analysis;
mod clears;
mod events;
mod json;
mod leaks;
mod stages;
mod statistics;
mod story;
mod summary;
mod wait;

pub use analysis::{Analysis, Use};
pub use events::{POOLS, explain_events};
pub(crate) use events::{ToldLife, ToldPool, ToldRequest, read_events};
pub use story::Story;
pub use summary::Findings;
pub use wait::{Counts, Failure, Obstacle, Outcome, Wait};

/// The first of `count` items, in brackets.
fn list(items: impl Iterator<Item = String>, count: u64) -> String {
    let items: Vec<_> = items.collect();
    let more = count.saturating_sub(items.len() as u64);
    match (items.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(" ({})", items.join(", ")),
        (false, more) => format!(" ({}, and {more} more)", items.join(", ")),
    }
}
