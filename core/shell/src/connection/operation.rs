//! How long operations may take: Client Side Operations Timeout.
//!
//! | set | selection, check-out, establishment | command |
//! |---|---|---|
//! | nothing | `serverSelectionTimeoutMS`, then `waitQueueTimeoutMS`, then `connectTimeoutMS` | `socketTimeoutMS` for each wait |
//! | `timeoutMS`, or the timeout or deadline of a call | the rest of it, at most `serverSelectionTimeoutMS` together | the rest of it, which the server gets as `maxTimeMS` |
//! | zero | `serverSelectionTimeoutMS` together | no limit |

use std::time::{Duration, Instant};

#[cfg(feature = "tls")]
use std::borrow::Cow;

#[cfg(feature = "tls")]
use bson::RawDocument;
#[cfg(feature = "tls")]
use cenote_core::client::with_max_time;

#[cfg(feature = "tls")]
use crate::connection::transport_error::TransportError;

/// Options of one call: how long it may take, and what it is called in the log.
///
/// ```no_run
/// use std::time::Duration;
///
/// use bson::rawdoc;
/// use cenote_tokio::OperationOptions;
///
/// # async fn example(client: cenote_tokio::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let options = OperationOptions::new().with_timeout(Duration::from_millis(200));
/// match client.command_with("admin", &rawdoc! { "ping": 1 }, options).await {
///     Ok(reply) => println!("{reply:?}"),
///     Err(error) if error.is_timeout() => eprintln!("{error}"), // The operation's 200ms were over: …
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationOptions {
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    min_round_trip: Duration,
    pub(crate) name: Option<&'static str>,
    pub(crate) id: Option<i64>,
}

impl OperationOptions {
    /// Without a limit of its own: `timeoutMS` of the connection string applies.
    #[must_use]
    pub const fn new() -> Self {
        Self { timeout: None, deadline: None, min_round_trip: Duration::ZERO, name: None, id: None }
    }

    /// Ends the call after this time, instead of `timeoutMS`. Zero is without limit.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Ends the call at `deadline`, instead of `timeoutMS`; with a [timeout](Self::with_timeout), at the first of
    /// both. A deadline in the past ends it before anything is sent.
    #[must_use]
    pub fn with_deadline(mut self, deadline: impl Into<Instant>) -> Self {
        self.deadline = Some(deadline.into());
        self
    }

    /// Says how long a round trip to the server takes at least: a command is sent only if more time is left, and the
    /// server gets that much less of it. Needed only on a connection without a pool: see
    /// [`Pool::set_min_round_trip`](crate::pool::Pool::set_min_round_trip).
    #[must_use]
    pub const fn with_min_round_trip(mut self, min_round_trip: Duration) -> Self {
        self.min_round_trip = min_round_trip;
        self
    }

    /// Names the operation in the log messages of server selection: its `operation`. To be set by a driver that checks a
    /// connection out for a command; `Client::command_with` knows the command's name.
    #[must_use]
    pub const fn with_name(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// Numbers the operation in the log messages of server selection: their `operationId`, which is absent otherwise. An
    /// operation of a driver that is several calls has one number for all of them.
    #[must_use]
    pub const fn with_id(mut self, id: i64) -> Self {
        self.id = Some(id);
        self
    }

    /// The same with this round trip, unless it has one or no command is limited by it.
    #[must_use]
    pub(crate) fn or_min_round_trip(self, round_trip: impl FnOnce() -> Duration) -> Self {
        if self.min_round_trip.is_zero() { self.with_min_round_trip(round_trip()) } else { self }
    }

    /// Whether the call has a limit of its own, which may be none.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.timeout.is_some() || self.deadline.is_some()
    }
}

/// A point in time, and how long that is after the beginning, for messages.
// CS-21
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    /// The point in time.
    pub at: Instant,
    /// How long `at` is after the beginning.
    pub after: Duration,
}

impl Deadline {
    /// `None` without limit: for zero, and for what the clock cannot represent.
    #[must_use]
    pub fn after(now: Instant, after: Duration) -> Option<Self> {
        let at = now.checked_add(after).filter(|_| !after.is_zero());
        at.map(|at| Self { at, after })
    }

    /// At a point in time.
    #[must_use]
    pub fn until(now: Instant, at: Instant) -> Self {
        Self { at, after: at.saturating_duration_since(now) }
    }
}

/// The timeouts of commands, as a connection string sets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandTimeouts {
    /// `timeoutMS`. Zero is without limit; `None` leaves `socketTimeoutMS` in force.
    pub operation: Option<Duration>,
    /// `socketTimeoutMS`, for each wait for the socket; `None` is without limit.
    pub socket: Option<Duration>,
}

impl CommandTimeouts {
    /// The limit of an operation that begins now.
    // CS-01, CS-07.
    #[must_use]
    pub fn limit(self, options: OperationOptions, now: impl FnOnce() -> Instant) -> OperationLimit {
        let OperationOptions { timeout, deadline, min_round_trip, name: _, id: _ } = options;
        let timeout = if options.is_limited() { timeout } else { self.operation };
        if timeout.is_none() && deadline.is_none() {
            return OperationLimit { each_wait: self.socket, deadline: None, min_round_trip };
        }
        let now = now();
        let after = timeout.and_then(|timeout| Deadline::after(now, timeout));
        let until = deadline.map(|at| Deadline::until(now, at));
        let deadline = after.into_iter().chain(until).min();
        OperationLimit { each_wait: None, deadline, min_round_trip }
    }
}

/// How long one operation may take, from now on; by default without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationLimit {
    /// For each wait for the socket, where the operation has no limit of its own.
    pub each_wait: Option<Duration>,
    /// For the whole.
    pub deadline: Option<Deadline>,
    min_round_trip: Duration,
}

#[cfg(feature = "tls")]
impl OperationLimit {
    /// The command, with the time in it that the server may take.
    ///
    /// # Errors
    ///
    /// [`TransportError::NotSent`]: the time is over, or less than a round trip takes.
    // CS-14.
    pub fn bound<'c>(
        &self,
        command: &'c RawDocument,
        now: impl FnOnce() -> Instant,
    ) -> Result<Cow<'c, RawDocument>, TransportError> {
        let Some(Deadline { at, after }) = self.deadline else { return Ok(Cow::Borrowed(command)) };
        let left = at.saturating_duration_since(now());
        with_max_time(command, left, self.min_round_trip).ok_or(TransportError::NotSent(after))
    }

    /// Whether there is still time for the request that is about to be written.
    ///
    /// # Errors
    ///
    /// As [`bound`](Self::bound).
    // CS-11.
    pub fn check_before_write(&self, now: impl FnOnce() -> Instant) -> Result<(), TransportError> {
        let Some(Deadline { at, after }) = self.deadline else { return Ok(()) };
        let left = at.saturating_duration_since(now());
        if left > self.min_round_trip { Ok(()) } else { Err(TransportError::NotSent(after)) }
    }

    /// Whether there is still time for the reply to a request that is written.
    ///
    /// # Errors
    ///
    /// [`TransportError::TimedOut`].
    // CS-12.
    pub fn check_before_read(&self, now: impl FnOnce() -> Instant) -> Result<(), TransportError> {
        match self.deadline {
            Some(Deadline { at, after }) if at <= now() => Err(TransportError::TimedOut(after)),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{CommandTimeouts, OperationLimit, OperationOptions};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    // CS-01, CS-07.
    #[test]
    fn the_limit_of_a_call_is_before_that_of_the_connection_string() {
        let now = Instant::now();
        let (unset, own) = (OperationOptions::new(), OperationOptions::new().with_timeout(MS(5)));
        let none = own.with_timeout(MS(0));
        let until = unset.with_deadline(now + MS(3));
        for (operation, options, each_wait, after) in [
            (None, unset, Some(MS(9)), None),
            (Some(MS(7)), unset, None, Some(MS(7))),
            (Some(MS(0)), unset, None, None),
            (None, own, None, Some(MS(5))),
            (Some(MS(2)), own, None, Some(MS(5))),
            (Some(MS(2)), none, None, None),
            (None, none, None, None),
            (Some(MS(2)), until, None, Some(MS(3))),
            (None, until.with_timeout(MS(5)), None, Some(MS(3))),
            (None, until.with_timeout(MS(1)), None, Some(MS(1))),
            (None, unset.with_deadline(now), None, Some(MS(0))),
            (Some(Duration::MAX), unset, None, None),
        ] {
            let timeouts = CommandTimeouts { operation, socket: Some(MS(9)) };
            let limit = timeouts.limit(options, || now);
            let seen = (limit.each_wait, limit.deadline.map(|deadline| deadline.after));
            assert_eq!(seen, (each_wait, after), "{operation:?} {options:?}");
        }
    }

    #[test]
    fn the_clock_is_read_only_for_a_limit_that_begins() {
        let never = || -> Instant { unreachable!("there is no limit that begins now") };
        let limit = CommandTimeouts::default().limit(OperationOptions::new(), never);
        assert_eq!(limit, OperationLimit::default());
    }
}
