//! When the machine wants to be woken, and why.

use core::fmt;

use super::time::Instant;

/// When to feed `Timer` next, and why.
///
/// Absolute, so that it does not age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline {
    /// Feed `Timer` at this point or soon after.
    pub at: Instant,
    /// What is due then.
    pub reason: DeadlineReason,
}

/// What is due at a [`Deadline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DeadlineReason {
    /// A request has waited for as long as it may.
    WaitQueueTimeout,
    /// A connection has been available for longer than `maxIdleTimeMS`.
    IdleTime,
    /// A connection reaches the end of its lifetime.
    Lifetime,
    /// The pause after a failed establishment ends, and the minimum is not reached.
    Populate,
    /// A connection has been in use for longer than `leak_detection_threshold`.
    LeakDetection,
    /// A connection has been pending for longer than `unanswered_threshold`.
    Unanswered,
    /// A late reply has been awaited for as long as it may, or a request that waits for it has. Only
    /// with [`experimental_pending_response`](super::PoolOptions::experimental_pending_response).
    PendingResponse,
    /// The oldest request has not waited for less than `codel_target` for a whole `codel_interval`.
    StandingDelay,
    /// A connection that waits for its time is established: a backoff after an overload ends, or a request has waited
    /// for a check-in for as long as is worth it. Only with [`overload_backoff`](super::PoolOptions::overload_backoff) or
    /// [`adaptive_connecting`](super::PoolOptions::adaptive_connecting).
    Establishment,
}

impl DeadlineReason {
    /// In the order in which one `Timer` does what is due.
    pub(super) const ALL: [Self; 9] = [
        Self::WaitQueueTimeout,
        Self::IdleTime,
        Self::Lifetime,
        Self::Populate,
        Self::LeakDetection,
        Self::Unanswered,
        Self::PendingResponse,
        Self::StandingDelay,
        Self::Establishment,
    ];
}

impl fmt::Display for DeadlineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WaitQueueTimeout => "a request times out",
            Self::IdleTime => "a connection idles out",
            Self::Lifetime => "a connection reaches its lifetime",
            Self::Populate => "the minimum is tried again",
            Self::LeakDetection => "a connection reaches the leak detection threshold",
            Self::Unanswered => "an establishment stays unanswered",
            Self::PendingResponse => "a late reply is given up",
            Self::StandingDelay => "requests are shed",
            Self::Establishment => "a connection that waits for its time is established",
        })
    }
}
