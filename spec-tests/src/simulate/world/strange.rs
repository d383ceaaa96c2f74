//! What is strange: clocks, timers, forks, mistakes, options that change.

use std::time::Duration;

use cenote_core::pool::{
    ConnId, Health, Input, Instant, InvalidOptions, Maintenance, PoolOptions, Purpose, WaiterId,
};

use super::{Due, Place, Tagged, World};
use crate::lockstep;
use crate::simulate::TimeFaults;

impl World<'_> {
    pub(super) fn plan_oddities(&mut self) {
        if !self.plan.other_options.is_empty() {
            let after = self.chance.time(self.plan.trouble_time) * 4;
            self.plan_in(after, Due::SetOptions);
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
        self.clock.look(&mut self.now, self.plan.time, &mut self.chance)
    }

    /// When the timer fires, which may be late, or early for nothing.
    pub(super) fn timer_fires_at(&mut self) -> Option<Instant> {
        let due = self.subject.pool().next_deadline()?.at;
        let faults = if self.is_calm { TimeFaults::default() } else { self.plan.time };
        Some(self.clock.timer_fires_at(due, self.now, faults, &mut self.chance))
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
        self.feed(Input::SetOptions { options: Box::new(options.clone()) })
    }

    /// From here on this is the child. What its parent had out comes back broken or whole, and is
    /// closed without a word.
    pub(super) fn fork(&mut self) -> Result<(), String> {
        if self.is_calm {
            return Ok(());
        }
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
        let input = match self.chance.below(8) {
            0 => self.check_in_of(|place| place == Place::Idle),
            1 => self.check_in_of(|place| matches!(place, Place::Opening { .. })),
            2 => self.check_in_of_nobody(),
            3 => self.success_of(|place| matches!(place, Place::Idle | Place::Used { .. })),
            4 => self.request_under_old_id(),
            5 => Some(self.foreign_clear()),
            6 => Some(Input::SetOptions { options: Box::new(self.unusable_options()) }),
            _ => self.unknown_service(),
        };
        match input {
            Some(input) => self.subject.feed_misuse(at, input),
            None => Ok(()),
        }
    }

    fn plan_misuse(&mut self) {
        let after =
            self.chance.time(self.plan.work) * u32::try_from(self.plan.misuse_every).unwrap_or(1);
        self.plan_in(after, Due::Misuse);
    }

    fn some_connection(&mut self, wanted: impl Fn(Place) -> bool) -> Option<ConnId> {
        let those: Vec<_> =
            self.books.sockets().filter(|it| wanted(it.place)).map(|it| it.id).collect();
        self.chance.pick(&those)
    }

    fn check_in_of(&mut self, wanted: impl Fn(Place) -> bool) -> Option<Input<Tagged>> {
        let id = self.some_connection(wanted)?;
        Some(Input::CheckedIn { id, conn: u64::MAX, health: Health::Healthy })
    }

    fn check_in_of_nobody(&mut self) -> Option<Input<Tagged>> {
        let id = ConnId::from_parts(self.books.last_connection() + 1, 0);
        Some(Input::CheckedIn { id, conn: u64::MAX, health: Health::Errored(0) })
    }

    fn success_of(&mut self, wanted: impl Fn(Place) -> bool) -> Option<Input<Tagged>> {
        let id = self.some_connection(wanted)?;
        Some(Input::EstablishSucceeded { id, conn: u64::MAX })
    }

    fn request_under_old_id(&self) -> Option<Input<Tagged>> {
        let id = self.books.last_request();
        let purpose = Purpose::Other;
        let request = Input::CheckOutRequested { id, waiter: u64::MAX, deadline: None, purpose };
        (id != WaiterId(0)).then_some(request)
    }

    /// The one kind of clear that this kind of pool does not know.
    fn foreign_clear(&self) -> Input<Tagged> {
        let service = (!self.is_balanced()).then(|| lockstep::service(1));
        Input::Clear { cause: 0, interrupt: false, service }
    }

    fn unusable_options(&self) -> PoolOptions {
        let options =
            PoolOptions::default().with_maintenance(Maintenance::PauseAfterFailure(Duration::ZERO));
        debug_assert_eq!(options.validate(), Err(InvalidOptions::NoPause));
        options
    }

    fn unknown_service(&mut self) -> Option<Input<Tagged>> {
        let id = self.some_connection(|place| place == Place::Opening { is_greeted: false })?;
        let service = (!self.is_balanced()).then(|| lockstep::service(1));
        Some(Input::Handshaken { id, service })
    }
}
