//! A clock and a timer, and what may be wrong with them.

use std::time::Duration;

use cenote_core::pool::Instant;

use super::chance::Chance;
use super::met::{Encounter, Met};
use super::plan::TimeFaults;

/// What a machine is told of the time.
#[derive(Debug)]
pub(super) struct Clock {
    /// What it showed last, where it stands still.
    shown: Instant,
    /// A deadline, and when the timer fires for it.
    timer: Option<(Instant, Instant)>,
}

impl Clock {
    /// What it shows; when it jumps, time has gone on.
    pub(super) fn look(
        &mut self,
        now: &mut Instant,
        faults: TimeFaults,
        chance: &mut Chance,
        met: &mut Met,
    ) -> Instant {
        if chance.one_in(faults.jumps) {
            met.count(Encounter::ClockJumps);
            *now = *now + Duration::from_millis(chance.below(1_000));
        }
        if chance.one_in(faults.runs_back) {
            met.count(Encounter::ClockRunsBack);
            let back = chance.below(10_000_000);
            return Instant::from_nanos(now.as_nanos().saturating_sub(back));
        }
        if chance.one_in(faults.stands_still) {
            met.count(Encounter::ClockStandsStill);
        } else {
            self.shown = *now;
        }
        self.shown
    }

    /// It is right again.
    pub(super) fn set(&mut self, now: Instant) -> Instant {
        self.shown = now;
        now
    }

    /// When the timer fires for a deadline.
    pub(super) fn timer_fires_at(
        &mut self,
        due: Instant,
        now: Instant,
        faults: TimeFaults,
        chance: &mut Chance,
        met: &mut Met,
    ) -> Instant {
        if let Some((deadline, fires)) = self.timer {
            if deadline == due {
                return fires;
            }
        }
        let mut fires = due.max(now);
        if let Some(lateness) = faults.timer_lateness {
            fires = fires + chance.time(lateness);
        }
        if let Some(tick) = faults.timer_tick {
            fires = next_tick(fires, tick);
        }
        if chance.one_in(faults.timer_early) {
            met.count(Encounter::TimerEarly);
            fires = now;
        }
        self.timer = Some((due, fires));
        fires
    }

    /// It is set anew.
    pub(super) fn forget_timer(&mut self) {
        self.timer = None;
    }

    /// It has fired.
    pub(super) fn timer_fired(&mut self, met: &mut Met) {
        if self.timer.take().is_some_and(|(due, fires)| due < fires) {
            met.count(Encounter::TimerLate);
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self { shown: Instant::ORIGIN, timer: None }
    }
}

fn next_tick(at: Instant, tick: Duration) -> Instant {
    let tick = u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX).max(1);
    Instant::from_nanos(at.as_nanos().div_ceil(tick).saturating_mul(tick))
}
