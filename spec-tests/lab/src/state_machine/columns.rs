//! The states in which each input is tried.

use super::rows::Row;

/// A state of the pool.
pub(super) struct PoolColumn {
    pub(super) name: &'static str,
    /// The commands from ready to this state.
    then: Option<&'static str>,
}

pub(super) const POOL_STATES: &[PoolColumn] = &[
    PoolColumn { name: "paused", then: Some("clear \"cause\"") },
    PoolColumn { name: "ready", then: None },
    PoolColumn { name: "closed", then: Some("close") },
];

impl PoolColumn {
    /// The commands that bring a pool into the state of this column, with what the row requires. A
    /// load-balanced pool is only paused before it is ready for the first time.
    pub(super) fn script(&self, row: &Row) -> Vec<&'static str> {
        if self.name == "paused" && row.pool.contains("balanced") {
            return vec![row.pool];
        }
        let there = row.there.split("; ").filter(|line| !line.is_empty());
        let late = row.late.split("; ").filter(|line| !line.is_empty());
        [row.pool, "ready"].into_iter().chain(there).chain(self.then).chain(late).collect()
    }
}

/// A state of connection 1.
pub(super) struct ConnectionColumn {
    pub(super) name: &'static str,
    script: &'static [&'static str],
}

pub(super) const CONNECTION_STATES: &[ConnectionColumn] = &[
    ConnectionColumn { name: "pending", script: &["out a"] },
    ConnectionColumn { name: "pending, stale", script: &["out a", "clear cause", "ready"] },
    ConnectionColumn { name: "available", script: &["out a", "established 1", "in 1"] },
    ConnectionColumn { name: "in use", script: &["out a", "established 1"] },
    ConnectionColumn {
        name: "in use, stale",
        script: &["out a", "established 1", "clear cause", "ready"],
    },
    ConnectionColumn {
        name: "interrupted",
        script: &["out a", "established 1", "clear cause interrupt", "ready"],
    },
    ConnectionColumn {
        name: "pending a response",
        script: &["out a", "established 1", "in 1 pending=7"],
    },
    ConnectionColumn {
        name: "draining",
        script: &["out a", "established 1", "in 1 pending=7", "out b"],
    },
    ConnectionColumn { name: "closed", script: &["out a", "established 1", "in 1 error=reset"] },
    ConnectionColumn { name: "inherited", script: &["out a", "established 1", "fork"] },
    ConnectionColumn { name: "foreign", script: &[] },
];

impl ConnectionColumn {
    /// The commands that bring connection 1 of a ready pool into this state.
    pub(super) fn script(&self) -> Vec<&'static str> {
        ["pool pending-response", "ready"].into_iter().chain(self.script.iter().copied()).collect()
    }
}
