//! What is strange: clocks, timers, forks, mistakes, options that change.

use cenote_core::pool::{Input, Instant};

use super::{Due, Encounter, World};
use crate::simulate::TimeFaults;
use crate::simulate::mistake::mistake;

impl World<'_> {
    pub(super) fn plan_oddities(&mut self) {
        if !self.plan.other_options.is_empty() {
            let after = self.chance.time(self.plan.trouble_time) * 4;
            self.plan_in(after, Due::SetOptions);
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
    }

    /// What the clock shows.
    pub(super) fn clock(&mut self) -> Instant {
        if self.is_calm {
            self.now = self.clock.set(self.now.max(self.subject.pool().now()));
            return self.now;
        }
        self.clock.look(&mut self.now, self.plan.time, &mut self.chance, &mut self.met)
    }

    /// When the timer fires, which may be late, or early for nothing.
    pub(super) fn timer_fires_at(&mut self) -> Option<Instant> {
        let due = self.subject.pool().next_deadline()?.at;
        let faults = if self.is_calm { TimeFaults::default() } else { self.plan.time };
        let (chance, met) = (&mut self.chance, &mut self.met);
        Some(self.clock.timer_fires_at(due, self.now, faults, chance, met))
    }

    pub(super) fn set_options(&mut self) -> Result<(), String> {
        if self.is_calm {
            return Ok(());
        }
        let after = self.chance.time(self.plan.trouble_time) * 4;
        self.plan_in(after, Due::SetOptions);
        let count = self.plan.other_options.len() as u64 + 1;
        let place = usize::try_from(self.chance.below(count)).unwrap_or_default();
        let options = self.plan.other_options.get(place).unwrap_or(&self.plan.options);
        self.met.count(Encounter::OptionsChange);
        self.feed(Input::SetOptions { options: Box::new(options.clone()) })
    }

    /// From here on this is the child. What its parent had out comes back broken or whole, and is
    /// closed without a word.
    pub(super) fn fork(&mut self) -> Result<(), String> {
        if self.is_calm {
            return Ok(());
        }
        self.met.count(Encounter::Fork);
        self.books.fork();
        if let Some(every) = self.plan.fork_every {
            self.plan_in(every, Due::Fork);
        }
        self.feed(Input::ResetAfterFork)
    }

    /// Mistakes of whoever embeds the pool: each is refused, and nothing has happened.
    pub(super) fn misuse(&mut self) -> Result<(), String> {
        if self.is_calm {
            return Ok(());
        }
        self.plan_misuse();
        let at = self.clock();
        let is_balanced = self.is_balanced();
        let Some(input) = mistake(&self.books, is_balanced, &mut self.chance, || 0) else {
            return Ok(());
        };
        self.met.count(Encounter::Mistake);
        self.subject.feed_misuse(at, input)
    }

    /// Some services go, with their connections, and others come.
    pub(super) fn services_move(&mut self) -> Result<(), String> {
        if self.is_calm {
            return Ok(());
        }
        if let Some(every) = self.plan.services_move_every {
            self.plan_in(every, Due::ServicesMove);
        }
        self.met.count(Encounter::ServicesMove);
        let services = self.plan.services;
        let gone = self.chance.between(1, u64::from(services));
        self.first_service = self.first_service.wrapping_add(u8::try_from(gone).unwrap_or(1));
        let first = self.first_service;
        let is_gone = |service: u8| service.wrapping_sub(first) >= services;
        for socket in self.books.sockets_mut() {
            socket.is_dead |= socket.service.is_some_and(is_gone);
        }
        Ok(())
    }

    fn plan_misuse(&mut self) {
        let after =
            self.chance.time(self.plan.work) * u32::try_from(self.plan.misuse_every).unwrap_or(1);
        self.plan_in(after, Due::Misuse);
    }
}
