//! How callers behave, and what they request.

use std::time::Duration;

use cenote_core::pool::{Instant, Purpose};

use super::latency::Latency;
use cenote_replay::random::SplitMix;

/// How callers behave. A number `n` means 1 in `n` check-outs; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallerProfile {
    /// Sets its own deadline.
    pub deadline: u64,
    /// Cancels while it waits.
    pub cancels: u64,
    /// Keeps the connection until all faults end.
    pub leaks: u64,
    /// Returns a broken connection, without a fault of the server.
    pub breaks: u64,
    /// Pins the connection for a cursor or a transaction.
    pub pins: u64,
    /// All callers check out at the same time, with the heartbeat.
    pub bursts: bool,
    /// Most callers wait for the pool to be ready before they check out, as clients do.
    pub waits_for_ready: bool,
}

/// The parameters of one check-out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Request {
    /// The time until the caller's own deadline, or since it.
    pub(super) allowed: Option<Duration>,
    /// The deadline has already passed.
    pub(super) is_late: bool,
    /// When the caller cancels.
    pub(super) cancels_after: Option<Duration>,
    pub(super) purpose: Purpose,
}

impl CallerProfile {
    /// Each behaviour occurs in half of all worlds; `waits_for_ready` is the caller's choice.
    pub(super) fn draw(random: &mut SplitMix, waits_for_ready: bool) -> Self {
        let mut often = |least, most| if random.flip() { random.between(least, most) } else { 0 };
        Self {
            deadline: often(1, 10),
            cancels: often(2, 20),
            leaks: often(500, 5_000),
            breaks: often(5, 200),
            pins: often(2, 20),
            bursts: often(1, 2) != 0,
            waits_for_ready,
        }
    }

    /// Draws a check-out. The latencies are those of deadlines and of cancellations.
    pub(super) fn request(
        self,
        random: &mut SplitMix,
        [allowed, patience]: [Latency; 2],
    ) -> Request {
        let mut request = Request::default();
        if random.one_in(self.deadline) {
            request.is_late = random.one_in(8);
            request.allowed = Some(allowed.draw(random));
        }
        if random.one_in(self.cancels) {
            request.cancels_after = Some(patience.draw(random));
        }
        if random.one_in(self.pins) {
            request.purpose = if random.flip() { Purpose::Cursor } else { Purpose::Transaction };
        }
        request
    }
}

impl Request {
    /// The deadline of a check-out that begins now.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let allowed = self.allowed?;
        let age = u64::try_from(allowed.as_nanos()).unwrap_or(u64::MAX);
        let past = || Instant::from_nanos(now.as_nanos().saturating_sub(age));
        Some(if self.is_late { past() } else { now + allowed })
    }
}
