use std::time::{Duration, Instant};

/// For how long an operation may wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    /// For each wait anew.
    each: Option<Duration>,
    all: Option<Deadline>,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    /// How long that is after the beginning.
    after: Duration,
}

/// For how long one call may wait, which is longer than nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) left: Duration,
    /// What is over when that is over.
    pub(super) after: Duration,
}

impl Patience {
    pub(super) fn new(each: Option<Duration>, deadline: Option<Instant>) -> Self {
        let all =
            deadline.map(|at| Deadline { at, after: at.saturating_duration_since(Instant::now()) });
        Self { each, all }
    }

    /// For the next call; `None` is without limit. Fails with what is over.
    pub(super) fn next(self) -> Result<Option<Wait>, Duration> {
        let each = self.each.map(|each| Wait { left: each, after: each });
        let Some(Deadline { at, after }) = self.all else { return Ok(each) };
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(after);
        }
        Ok(each.filter(|each| each.left < left).or(Some(Wait { left, after })))
    }
}
