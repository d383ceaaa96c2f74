//! A clock and a timer with faults.

use std::time::Duration;

use cenote_core::pool::Instant;

use super::coverage::{Coverage, Situation};
use super::plan::TimeFaults;
use cenote_replay::random::SplitMix;

/// A state machine's clock and timer.
#[derive(Debug)]
pub(super) struct Clock {
    /// The time that it showed last.
    shown: Instant,
    /// A deadline, and the time at which the timer fires for it.
    timer: Option<(Instant, Instant)>,
}

impl Clock {
    /// The time that the clock shows. A jump advances `now`, too.
    pub(super) fn look(
        &mut self,
        now: &mut Instant,
        faults: TimeFaults,
        random: &mut SplitMix,
        coverage: &mut Coverage,
    ) -> Instant {
        if random.one_in(faults.jumps) {
            coverage.count(Situation::ClockJumps);
            *now = *now + Duration::from_millis(random.below(1_000));
        }
        if random.one_in(faults.runs_back) {
            coverage.count(Situation::ClockRunsBack);
            let back = random.below(10_000_000);
            return Instant::from_nanos(now.as_nanos().saturating_sub(back));
        }
        if random.one_in(faults.stands_still) {
            coverage.count(Situation::ClockStandsStill);
        } else {
            self.shown = *now;
        }
        self.shown
    }

    /// Corrects the clock.
    pub(super) fn set(&mut self, now: Instant) -> Instant {
        self.shown = now;
        now
    }

    /// The time at which the timer fires for a deadline.
    pub(super) fn timer_fires_at(
        &mut self,
        due: Instant,
        now: Instant,
        faults: TimeFaults,
        random: &mut SplitMix,
        coverage: &mut Coverage,
    ) -> Instant {
        if let Some((deadline, fires)) = self.timer
            && deadline == due
        {
            return fires;
        }
        let mut fires = due.max(now);
        if let Some(lateness) = faults.timer_lateness {
            fires = fires + lateness.draw(random);
        }
        if let Some(tick) = faults.timer_tick {
            fires = next_tick(fires, tick);
        }
        if random.one_in(faults.timer_early) {
            coverage.count(Situation::TimerEarly);
            fires = now;
        }
        self.timer = Some((due, fires));
        fires
    }

    /// The timer will be set again.
    pub(super) fn forget_timer(&mut self) {
        self.timer = None;
    }

    /// The timer has fired.
    pub(super) fn timer_fired(&mut self, coverage: &mut Coverage) {
        if self.timer.take().is_some_and(|(due, fires)| due < fires) {
            coverage.count(Situation::TimerLate);
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
