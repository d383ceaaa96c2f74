//! Studies for the person who sets the options of pools in production: what each of them does, in
//! virtual time, with real pools before a server that is a model.
//!
//! A study is a small program that puts a fleet of clients before a server in several ways,
//! and says what came of each: a table and plots. The same seed gives the same to the last digit, so
//! that the pages in `docs/studies` are held to what the program says.

mod chained;
mod cold_start;
mod findings;
mod fleet;
mod lifetime;
mod overload;
mod page;
mod plot;
mod reuse;
mod rival;
mod storm;

pub use self::findings::{Axis, Corner, Findings, Plot, Scale, Series, Table};
pub use self::page::{NotAPage, Page};

/// A question, and the program that answers it.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// Its page is `docs/studies/NAME.md`.
    pub name: &'static str,
    /// What it is about, in a line.
    pub title: &'static str,
    /// Answers it; all chance comes from the seed.
    pub run: fn(seed: u64) -> Findings,
}

/// All of them, in the order in which they are told.
pub const ALL: [Study; 6] = [
    Study {
        name: "storm",
        title: "10,000 clients storm one server after a restart, with overload labels and without",
        run: storm::run,
    },
    Study {
        name: "cold-start",
        title: "A cold start with maxConnecting from 1 to 64",
        run: cold_start::run,
    },
    Study {
        name: "chained",
        title: "A request that waits for its own connection, and one that takes what comes first",
        run: chained::run,
    },
    Study {
        name: "reuse",
        title: "The connection that came back last is used first, or the one that waited longest",
        run: reuse::run,
    },
    Study {
        name: "lifetime",
        title: "Connections that end at the same age, and what jitter does about it",
        run: lifetime::run,
    },
    Study {
        name: "overload",
        title: "What waitQueueTimeoutMS does when more is asked than can be done",
        run: overload::run,
    },
];
