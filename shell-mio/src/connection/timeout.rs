use std::time::{Duration, Instant};

use cenote_shell::connection::operation::{Deadline, OperationLimit};

/// How long an operation may take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timeout {
    /// For each wait.
    each: Option<Duration>,
    /// For the whole.
    deadline: Option<Deadline>,
}

impl From<OperationLimit> for Timeout {
    fn from(limit: OperationLimit) -> Self {
        Self { each: limit.each_wait, deadline: limit.deadline }
    }
}

/// How long one wait may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// More than zero.
    pub(super) left: Duration,
    /// The timeout that is over then.
    pub(super) timeout: Duration,
}

impl Timeout {
    /// For the next wait; `None` is without limit.
    ///
    /// # Errors
    ///
    /// The timeout that is over.
    // CS-13
    pub(super) fn next(self) -> Result<Option<Wait>, Duration> {
        let each = self.each.map(|each| Wait { left: each, timeout: each });
        let Some(Deadline { at, after }) = self.deadline else { return Ok(each) };
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(after);
        }
        Ok(each.filter(|each| each.left < left).or(Some(Wait { left, timeout: after })))
    }
}
