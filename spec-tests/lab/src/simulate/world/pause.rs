//! A client that is stopped for some seconds, as by a container that is paused or a virtual machine without a
//! processor: its peers go on, and then everything that it missed has happened at once.

use std::time::Duration;

use cenote_core::pool::{Input, Instant};

use super::{Due, Transport, World};
use crate::simulate::coverage::Situation;

impl<T: Transport> World<'_, T> {
    /// A shell reads what has come before it acts on deadlines that passed meanwhile. In half of the pauses this
    /// one does it the other way round: the machines have to be right then, too.
    pub(super) fn pause(&mut self) -> Result<(), String> {
        if self.is_recovering {
            return Ok(());
        }
        let end = self.now + Duration::from_millis(self.pauses.between(1_000, 5_000));
        let has_deadlines_first = self.pauses.flip();
        self.coverage.count(Situation::ClientPaused);
        let missed = self.let_peers_go_on(end)?;
        self.now = end;
        self.plan_pause();
        let (deadlines, answers): (Vec<_>, Vec<_>) =
            missed.into_iter().partition(|due| is_deadline::<T>(due));
        if has_deadlines_first {
            self.fire_late_timers()?;
            self.happen_late(deadlines)?;
            self.happen_late(answers)
        } else {
            self.coverage.count(Situation::AnswersFirst);
            self.happen_late(answers)?;
            self.happen_late(deadlines)?;
            self.fire_late_timers()
        }
    }

    pub(super) fn plan_pause(&mut self) {
        if let Some(every) = self.plan.pause_every {
            self.plan_in(every, Due::Pause);
        }
    }

    /// Returns what the client missed, in its order.
    fn let_peers_go_on(&mut self, end: Instant) -> Result<Vec<Due<T::Due>>, String> {
        let mut missed = Vec::new();
        loop {
            let planned = self.agenda.next_time().filter(|at| *at <= end);
            let peer = T::peer_deadline(self).filter(|at| *at <= end);
            match (planned, peer) {
                (None, None) => return Ok(missed),
                (planned, Some(at)) if planned.is_none_or(|planned| at <= planned) => {
                    self.now = self.now.max(at);
                    T::peer_timer(self);
                }
                _ => match self.agenda.pop() {
                    Some((at, Due::Transport(due))) if T::is_of_peer(&due) => {
                        self.now = self.now.max(at);
                        T::happen(self, due)?;
                    }
                    Some((_, due)) => missed.push(due),
                    None => {}
                },
            }
        }
    }

    fn happen_late(&mut self, missed: Vec<Due<T::Due>>) -> Result<(), String> {
        for due in missed {
            self.happen(due)?;
            T::check(self)?;
        }
        Ok(())
    }

    /// The timers of the pool and of the transport, as far as they are due.
    fn fire_late_timers(&mut self) -> Result<(), String> {
        self.forget_timer();
        if self.subject.pool().next_deadline().is_some_and(|deadline| deadline.at <= self.now) {
            self.feed(Input::Timer)?;
        }
        T::fire_late_timer(self)?;
        T::check(self)
    }
}

fn is_deadline<T: Transport>(due: &Due<T::Due>) -> bool {
    match due {
        Due::Transport(due) => T::is_deadline(due),
        Due::Ask { .. }
        | Due::Cancel { .. }
        | Due::Finish { .. }
        | Due::Repurpose { .. }
        | Due::Trouble
        | Due::ServicesMove
        | Due::SetOptions
        | Due::Fork
        | Due::Pause
        | Due::Misuse => false,
    }
}
