//! The zero of times.

use std::time::{Instant, SystemTime};

use cenote_core::pool;

/// The zero of the time of machines and of their traces, by the runtime's clock and by the wall clock. The pools of a
/// client have one, so that their times can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// By [`Runtime::now`](crate::runtime::Runtime::now).
    pub at: Instant,
    /// By the wall clock, in milliseconds since 1970.
    pub unix_ms: i64,
}

impl Origin {
    /// `now` is that of the runtime.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { at: now, unix_ms: milliseconds_since_1970() }
    }

    /// A time of the runtime as the machines count it.
    #[must_use]
    pub fn instant(self, at: Instant) -> pool::Instant {
        pool::Instant::from_std(at, self.at)
    }
}

pub(crate) fn milliseconds_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
