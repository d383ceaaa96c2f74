use std::time::{Duration, Instant};

/// How long an operation may take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timeout {
    /// For each wait.
    each: Option<Duration>,
    /// For the whole.
    deadline: Option<Deadline>,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    /// How long that is after the beginning.
    after: Duration,
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
    pub(super) fn new(each: Option<Duration>, deadline: Option<Instant>) -> Self {
        let deadline =
            deadline.map(|at| Deadline { at, after: at.saturating_duration_since(Instant::now()) });
        Self { each, deadline }
    }

    /// For the next wait; `None` is without limit.
    ///
    /// # Errors
    ///
    /// The timeout that is over.
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
