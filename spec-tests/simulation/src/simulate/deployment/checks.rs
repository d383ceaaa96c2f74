//! How often a server is checked.

use std::collections::VecDeque;
use std::time::Duration;

use cenote_core::pool::Instant;

/// The checks of one server that its monitor began, by opening a socket or by asking on it: a streamed reply costs none.
#[derive(Debug, Default)]
pub(super) struct CheckRate {
    last: VecDeque<Instant>,
}

/// No more than [`MOST`](CheckRate::MOST) within this time.
const WINDOW: Duration = Duration::from_secs(1);

impl CheckRate {
    /// Within a second there is a check each 500 ms at most. In addition a socket that is opened is asked at once where
    /// its server streams, and a known server whose connection failed is checked again at once.
    const MOST: usize = 6;

    /// # Errors
    ///
    /// There are too many.
    pub(super) fn begins(&mut self, now: Instant) -> Result<(), String> {
        self.last.push_back(now);
        while self.last.front().is_some_and(|first| *first + WINDOW < now) {
            self.last.pop_front();
        }
        match self.last.len() {
            0..=Self::MOST => Ok(()),
            many => Err(format!("the server is checked in a loop: {many} times within {WINDOW:?}")),
        }
    }
}
