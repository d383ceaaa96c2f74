//! Studies of what pool options do in production: real pools before a simulated server, in virtual
//! time.
//!
//! A study puts a fleet of clients before a server in several ways, and reports the results in
//! tables and plots. The same seed gives exactly the same results, so the pages in `docs/studies`
//! are checked against the program.

mod ahead;
mod chained;
mod cold_start;
mod comparison;
mod findings;
mod fleet;
mod freeze;
mod lifetime;
mod newest_first_pool;
mod overload;
mod page;
mod plot;
mod reuse;
mod storm;
mod unchained_pool;
mod what_if;

pub use self::findings::{Axis, Corner, Findings, Plot, Scale, Series, Table};
pub use self::page::{NotAPage, Page};

/// A question and the program that answers it.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// Its page is `docs/studies/NAME.md`.
    pub name: &'static str,
    /// The title.
    pub title: &'static str,
    /// Runs the study; all random numbers come from the seed.
    pub run: fn(seed: u64) -> Findings,
}

/// All studies, in the order of the index.
pub const ALL: [Study; 9] = [
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
        name: "ahead",
        title: "A load that grows, and connections that are established before they are needed",
        run: ahead::run,
    },
    Study {
        name: "freeze",
        title: "1,000 functions that are frozen between two invocations, and thawed",
        run: freeze::run,
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
        title: "What waitQueueTimeoutMS and shedding do when more is asked than can be done",
        run: overload::run,
    },
    Study {
        name: "what-if",
        title: "What another setting would have done: 1,000 predictions and what really happened",
        run: what_if::run,
    },
];
