//! Changes from one look to the next.

use std::collections::BTreeMap;
use std::time::Instant;

use bson::DateTime;

use super::live::{Failures, Pool};

/// All pools at one moment.
pub(super) struct Moment {
    instant: Instant,
    /// `2026-01-01T03:07:12.286Z`.
    pub(super) at: String,
    pub(super) pools: Vec<Pool>,
}

/// Per second, from one moment to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    pub(super) check_outs: f64,
    pub(super) failures: f64,
}

/// The rates of all pools, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Rates(BTreeMap<usize, Rate>);

impl Moment {
    pub(super) fn new(pools: Vec<Pool>) -> Self {
        let at = DateTime::now().try_to_rfc3339_string().unwrap_or_else(|_| "-".to_owned());
        Self { instant: Instant::now(), at, pools }
    }
}

impl Rates {
    pub(super) fn between(before: &Moment, now: &Moment) -> Self {
        let seconds = now.instant.saturating_duration_since(before.instant).as_secs_f64();
        let old = |number| before.pools.iter().find(|pool| pool.pool == number);
        let rate = |pool: &Pool| {
            let old = old(pool.pool)?;
            let per_second = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
            let rate = Rate {
                check_outs: per_second(old.check_outs, pool.check_outs),
                failures: per_second(old.failed(), pool.failed()),
            };
            (seconds > 0.0).then_some((pool.pool, rate))
        };
        Self(now.pools.iter().filter_map(rate).collect())
    }

    pub(super) fn of(&self, pool: usize) -> Rate {
        self.0.get(&pool).copied().unwrap_or_default()
    }
}

impl Pool {
    /// All check-outs that failed.
    pub(super) fn failed(&self) -> u64 {
        let Failures { timeout, connection_error, cleared, closed, rejected } = self.failures;
        timeout + connection_error + cleared + closed + rejected
    }
}
