use std::time::{Duration, Instant};

use crate::connection::operation::{Deadline, OperationLimit};

/// A time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    /// For opening the connection.
    opening: Option<Deadline>,
    /// Of the caller, for everything.
    caller: Option<Deadline>,
    /// For each wait.
    each: Option<Duration>,
}

impl Limit {
    /// For opening a connection: `connectTimeoutMS` (0 is without limit) or the caller's deadline,
    /// whichever comes first.
    // CS-03
    pub(super) fn of(now: Instant, connect_timeout: Duration, caller: Option<Instant>) -> Self {
        let opening = Deadline::after(now, connect_timeout);
        Self { opening, caller: caller.map(|at| Deadline::until(now, at)), each: None }
    }

    /// For each wait.
    pub(super) const fn each(each: Option<Duration>) -> Self {
        Self { opening: None, caller: None, each }
    }

    /// In addition, `each` for every command of the handshake.
    pub(super) const fn and_each_command(self, each: Option<Duration>) -> Self {
        Self { each, ..self }
    }

    /// For a command that begins now, together with its reply.
    // ES-06, HS-09, AU-04
    pub(super) fn for_command(self, now: impl FnOnce() -> Instant) -> Self {
        Self { opening: self.next(now), caller: None, each: None }
    }

    /// For a callback that the application gave, from now on: `longest` at most, and what is left where a timeout of the
    /// whole operation applies. Otherwise neither `connectTimeoutMS` nor `socketTimeoutMS` counts.
    // OI-03
    pub(super) fn for_callback(
        self,
        longest: Duration,
        has_operation_timeout: bool,
        now: impl Fn() -> Instant,
    ) -> Self {
        let own = Deadline::after(now(), longest);
        let applies = self.caller.is_some() || has_operation_timeout;
        let left = if applies { self.next(now) } else { None };
        Self { opening: left.into_iter().chain(own).min(), caller: None, each: None }
    }

    /// The same with more time for opening the connection.
    pub(super) fn longer_by(self, time: Duration) -> Self {
        let longer = |it: Deadline| Deadline { at: it.at.checked_add(time).unwrap_or(it.at), ..it };
        Self { opening: self.opening.map(longer), ..self }
    }

    /// For a wait that begins now; `None` is without limit. Reads the clock only if that matters.
    pub(super) fn next(self, now: impl FnOnce() -> Instant) -> Option<Deadline> {
        let each = self.each.and_then(|each| Deadline::after(now(), each));
        each.into_iter().chain(self.opening).chain(self.caller).min()
    }
}

impl From<OperationLimit> for Limit {
    fn from(operation: OperationLimit) -> Self {
        Self { opening: None, caller: operation.deadline, each: operation.each_wait }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Deadline, Limit};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    // CS-01, CS-03, CS-08.
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
        // What the clock cannot represent is no limit.
        assert_eq!(over(Limit::each(Some(Duration::MAX))), None);
    }

    // OI-03
    #[test]
    fn a_callback_is_limited_by_the_operation_alone() {
        let now = Instant::now();
        let over = |limit: Limit, has_operation_timeout| {
            let limit = limit.for_callback(MS(9), has_operation_timeout, || now);
            limit.next(|| now).map(|deadline| deadline.after)
        };
        let opening = Limit::of(now, MS(7), None).and_each_command(Some(MS(5)));
        assert_eq!((over(opening, false), over(opening, true)), (Some(MS(9)), Some(MS(5))));
        let for_caller = Limit::of(now, MS(7), Some(now + MS(3)));
        assert_eq!(over(for_caller, false), Some(MS(3)));
        let longer = Limit::of(now, MS(7), Some(now + MS(9))).longer_by(MS(4)).next(|| now);
        assert_eq!(longer.map(|it| it.at), Some(now + MS(9)));
        let longer = Limit::of(now, MS(7), None).longer_by(MS(4)).next(|| now);
        assert_eq!(longer, Some(Deadline { at: now + MS(11), after: MS(7) }));
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
