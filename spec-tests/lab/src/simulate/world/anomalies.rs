//! Faults of the clock and of timers, forks, misuse, changes of options and services.

use cenote_core::pool::{Input, Instant};

use super::{Due, World};
use crate::simulate::TimeFaults;
use crate::simulate::coverage::Situation;
use crate::simulate::misuse::misuse;

impl World<'_> {
    pub(super) fn plan_anomalies(&mut self) {
        if !self.plan.other_options.is_empty() {
            self.plan_options();
        }
        if let Some(every) = self.plan.services_move_every {
            self.plan_in(every, Due::ServicesMove);
        }
        if let Some(every) = self.plan.fork_every {
            self.plan_in(every, Due::Fork);
        }
        if self.plan.misuse_every != 0 {
            self.plan_misuse();
        }
        self.plan_pause();
    }

    /// The time that the clock shows, right or wrong.
    pub(super) fn look_at_clock(&mut self) -> Instant {
        if self.is_recovering {
            self.now = self.clock.set(self.now.max(self.subject.pool().now()));
            return self.now;
        }
        self.clock.look(&mut self.now, self.plan.time, &mut self.random, &mut self.coverage)
    }

    /// When the pool's timer fires: on time, late, or early.
    pub(super) fn pool_timer(&mut self) -> Option<Instant> {
        let due = self.subject.pool().next_deadline()?.at;
        let faults = if self.is_recovering { TimeFaults::default() } else { self.plan.time };
        let (random, coverage) = (&mut self.random, &mut self.coverage);
        Some(self.clock.timer_fires_at(due, self.now, faults, random, coverage))
    }

    /// One trouble after the other, with quiet times between.
    pub(super) fn next_trouble(&mut self) {
        if self.is_recovering {
            return;
        }
        let after = self.plan.trouble_time.draw(&mut self.random);
        self.plan_in(after, Due::Trouble);
        self.change_trouble();
    }

    pub(super) fn set_options(&mut self) -> Result<(), String> {
        if self.is_recovering {
            return Ok(());
        }
        self.plan_options();
        let count = self.plan.other_options.len() as u64 + 1;
        let index = usize::try_from(self.random.below(count)).unwrap_or_default();
        let options = self.plan.other_options.get(index).unwrap_or(&self.plan.options);
        self.coverage.count(Situation::OptionsChange);
        self.feed(Input::SetOptions { options: Box::new(options.clone()) })
    }

    fn plan_options(&mut self) {
        let after = self.plan.trouble_time.draw(&mut self.random) * 4;
        self.plan_in(after, Due::SetOptions);
    }

    /// From here on this is the child process. It checks in the connections that its parent had checked
    /// out, broken or not, and the pool discards them without closing events.
    pub(super) fn fork(&mut self) -> Result<(), String> {
        if self.is_recovering {
            return Ok(());
        }
        if let Some(every) = self.plan.fork_every {
            self.plan_in(every, Due::Fork);
        }
        self.coverage.count(Situation::Fork);
        self.abandon_conversations();
        self.accounting.fork();
        self.feed(Input::ResetAfterFork)
    }

    /// The embedder misuses the API: the call has to be refused, and to change nothing.
    pub(super) fn misuse(&mut self) -> Result<(), String> {
        if self.is_recovering {
            return Ok(());
        }
        self.plan_misuse();
        let at = self.look_at_clock();
        let is_balanced = self.is_balanced();
        let Some(input) = misuse(&self.accounting, is_balanced, &mut self.random) else {
            return Ok(());
        };
        self.coverage.count(Situation::Mistake);
        self.subject.feed_misuse(at, input)
    }

    fn plan_misuse(&mut self) {
        let times = u32::try_from(self.plan.misuse_every).unwrap_or(1);
        let after = self.plan.work.draw(&mut self.random) * times;
        self.plan_in(after, Due::Misuse);
    }

    pub(super) fn services_move(&mut self) {
        if self.is_recovering {
            return;
        }
        if let Some(every) = self.plan.services_move_every {
            self.plan_in(every, Due::ServicesMove);
        }
        self.coverage.count(Situation::ServicesMove);
        self.move_services();
    }
}
