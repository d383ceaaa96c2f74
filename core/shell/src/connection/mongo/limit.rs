use std::time::{Duration, Instant};

use crate::connection::operation::{Deadline, OperationLimit};

/// A time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    /// For everything: opening a connection, or an operation.
    whole: Option<Deadline>,
    /// For each wait.
    each: Option<Duration>,
    /// The whole is that of an operation.
    is_operations: bool,
}

impl Limit {
    /// For opening a connection: `connectTimeoutMS` (0 is without limit).
    // CS-03
    pub(super) fn of(now: Instant, connect_timeout: Duration) -> Self {
        Self { whole: Deadline::after(now, connect_timeout), ..Self::each(None) }
    }

    /// For each wait.
    pub(super) const fn each(each: Option<Duration>) -> Self {
        Self { whole: None, each, is_operations: false }
    }

    /// In addition, `each` for every command of the handshake.
    pub(super) const fn and_each_command(self, each: Option<Duration>) -> Self {
        Self { each, ..self }
    }

    /// For a command that begins now, together with its reply.
    // ES-06, HS-09, AU-04
    pub(super) fn for_command(self, now: impl FnOnce() -> Instant) -> Self {
        Self { whole: self.next(now), each: None, ..self }
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
        let applies = self.is_operations || has_operation_timeout;
        let left = if applies { self.next(now) } else { None };
        Self { whole: left.into_iter().chain(own).min(), each: None, ..self }
    }

    /// The same with more time for opening the connection.
    pub(super) fn longer_by(self, time: Duration) -> Self {
        let longer = |it: Deadline| Deadline { at: it.at.checked_add(time).unwrap_or(it.at), ..it };
        Self { whole: self.whole.map(longer), ..self }
    }

    /// For a wait that begins now; `None` is without limit. Reads the clock only if that matters.
    pub(super) fn next(self, now: impl FnOnce() -> Instant) -> Option<Deadline> {
        let each = self.each.and_then(|each| Deadline::after(now(), each));
        each.into_iter().chain(self.whole).min()
    }
}

impl From<&OperationLimit> for Limit {
    fn from(operation: &OperationLimit) -> Self {
        let OperationLimit { deadline, each_wait, .. } = *operation;
        Self { whole: deadline, each: each_wait, is_operations: deadline.is_some() }
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
        assert_eq!(over(Limit::of(now, MS(0))), None);
        assert_eq!(over(Limit::of(now, MS(7))), Some(MS(7)));
        let each = Limit::of(now, MS(7)).and_each_command(Some(MS(5)));
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
        let opening = Limit::of(now, MS(7)).and_each_command(Some(MS(5)));
        assert_eq!((over(opening, false), over(opening, true)), (Some(MS(9)), Some(MS(5))));
        let longer = Limit::of(now, MS(7)).longer_by(MS(4)).next(|| now);
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
        assert!(Limit::of(now, MS(7)).next(never).is_some());
    }
}
