//! When the machine wants to be woken, and why.

use core::fmt;

use crate::pool::Instant;

/// When to feed [`Input::Timer`](super::Input::Timer) next, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    /// At this point or soon after.
    pub at: Instant,
    /// What is due then.
    pub reason: DeadlineReason,
}

/// What is due at a [`Deadline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DeadlineReason {
    /// The next check.
    Check,
    /// The reply to a check is overdue.
    CheckTimeout,
    /// The next round-trip time.
    RoundTrip,
    /// The reply of a round-trip time measurement is overdue.
    RoundTripTimeout,
}

impl fmt::Display for DeadlineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Check => "the next check",
            Self::CheckTimeout => "a check times out",
            Self::RoundTrip => "the next round-trip time",
            Self::RoundTripTimeout => "a round-trip time is given up",
        })
    }
}
