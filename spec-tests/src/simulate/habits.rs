//! What callers are like.

use std::time::Duration;

use cenote_core::pool::{Instant, Purpose};

use super::chance::Chance;

/// One in so many; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// Has a deadline of its own.
    pub deadline: u64,
    /// Goes away while it waits.
    pub gives_up: u64,
    /// Keeps the connection until the end of the world.
    pub holds_for_ever: u64,
    /// Brings it back broken, by itself.
    pub breaks: u64,
    /// Pins it for a cursor or a transaction.
    pub pins: u64,
    /// All of them ask at once, with the heartbeat.
    pub bursts: bool,
    /// Most of them wait for the pool to be ready before they ask, as clients do.
    pub is_patient: bool,
}

/// What a caller asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Request {
    /// How long he may wait, by a deadline of his own.
    pub(super) allowed: Option<Duration>,
    /// That long ago is his deadline, and not ahead.
    pub(super) is_late: bool,
    /// When he goes away.
    pub(super) gives_up: Option<Duration>,
    pub(super) purpose: Purpose,
}

impl Habits {
    /// Each of them in half of all worlds, but for patience.
    pub(super) fn draw(chance: &mut Chance, is_patient: bool) -> Self {
        let mut often = |least, most| if chance.flip() { chance.between(least, most) } else { 0 };
        Self {
            deadline: often(1, 10),
            gives_up: often(2, 20),
            holds_for_ever: often(500, 5_000),
            breaks: often(5, 200),
            pins: often(2, 20),
            bursts: often(1, 2) != 0,
            is_patient,
        }
    }

    /// What somebody asks for who has these habits, by how long deadlines allow and patience lasts.
    pub(super) fn request(
        self,
        chance: &mut Chance,
        allowed: impl FnOnce(&mut Chance) -> Duration,
        patience: impl FnOnce(&mut Chance) -> Duration,
    ) -> Request {
        let mut request = Request::default();
        if chance.one_in(self.deadline) {
            request.is_late = chance.one_in(8);
            request.allowed = Some(allowed(chance));
        }
        if chance.one_in(self.gives_up) {
            request.gives_up = Some(patience(chance));
        }
        if chance.one_in(self.pins) {
            request.purpose = if chance.flip() { Purpose::Cursor } else { Purpose::Transaction };
        }
        request
    }
}

impl Request {
    /// Of somebody who asks now.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let allowed = self.allowed?;
        let age = u64::try_from(allowed.as_nanos()).unwrap_or(u64::MAX);
        let past = || Instant::from_nanos(now.as_nanos().saturating_sub(age));
        Some(if self.is_late { past() } else { now + allowed })
    }
}
