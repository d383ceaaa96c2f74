use std::time::{Duration, Instant};

/// By when something has to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    all: Option<Deadline>,
    /// For each wait anew, besides.
    each: Option<Duration>,
}

/// A moment, and what is over then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    /// The moment.
    pub at: Instant,
    /// How long that is after the beginning.
    pub after: Duration,
}

impl Limit {
    /// For everything about one connection: `connectTimeoutMS` or the caller's deadline, whichever
    /// comes first (CS-03, CS-08). Zero is without limit.
    #[must_use]
    pub fn of(now: Instant, connect_timeout: Duration, callers: Option<Instant>) -> Self {
        let own = Deadline::after(now, connect_timeout);
        let callers = callers.map(|at| Deadline { at, after: at.saturating_duration_since(now) });
        Self { all: own.into_iter().chain(callers).min(), each: None }
    }

    /// This long for each wait.
    #[inline]
    #[must_use]
    pub const fn each(each: Option<Duration>) -> Self {
        Self { all: None, each }
    }

    /// Besides, `each` for every command of the handshake (CS-06, CS-08).
    #[must_use]
    pub const fn and_each_command(self, each: Option<Duration>) -> Self {
        Self { each, ..self }
    }

    /// For a command that begins now, and for its reply.
    #[must_use]
    pub fn for_command(self, now: impl FnOnce() -> Instant) -> Self {
        Self { all: self.next(now), each: None }
    }

    /// For a wait that begins now; `None` is without limit. The clock is read only if that matters.
    #[inline]
    #[must_use]
    pub fn next(self, now: impl FnOnce() -> Instant) -> Option<Deadline> {
        let each = self.each.and_then(|each| Deadline::after(now(), each));
        each.into_iter().chain(self.all).min()
    }
}

impl Deadline {
    /// Zero is without limit (CS-01), and so is what the clock does not reach.
    fn after(now: Instant, after: Duration) -> Option<Self> {
        let at = now.checked_add(after).filter(|_| !after.is_zero());
        at.map(|at| Self { at, after })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Deadline, Limit};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// CS-01, CS-03, CS-08.
    #[test]
    fn the_first_of_the_limits_counts() {
        let now = Instant::now();
        let over = |limit: Limit| limit.next(|| now).map(|deadline| deadline.after);
        assert_eq!(over(Limit::of(now, MS(0), None)), None);
        assert_eq!(over(Limit::of(now, MS(7), None)), Some(MS(7)));
        assert_eq!(over(Limit::of(now, MS(7), Some(now + MS(3)))), Some(MS(3)));
        assert_eq!(over(Limit::of(now, MS(7), Some(now + MS(9)))), Some(MS(7)));
        let each = Limit::of(now, MS(7), None).and_each_command(Some(MS(5)));
        assert_eq!(over(each), Some(MS(5)));
        // What the clock does not reach is no limit.
        assert_eq!(over(Limit::each(Some(Duration::MAX))), None);
    }

    #[test]
    fn a_command_and_its_reply_have_one_time() {
        let now = Instant::now();
        let command = Limit::each(Some(MS(5))).for_command(|| now);
        assert_eq!(command.next(|| now + MS(4)), Some(Deadline { at: now + MS(5), after: MS(5) }));
    }

    #[test]
    fn the_clock_is_not_read_without_need() {
        let never = || -> Instant { unreachable!("there is no limit that begins now") };
        assert_eq!(Limit::each(None).next(never), None);
        let now = Instant::now();
        assert!(Limit::of(now, MS(7), None).next(never).is_some());
    }
}
