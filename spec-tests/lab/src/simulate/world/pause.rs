//! A client that is stopped for some seconds, as by a container that is paused or a virtual machine without a
//! processor: its peers go on, and then everything that it missed has happened at once.

use std::time::Duration;

use cenote_core::pool::{Input, Instant};

use super::{Due, World};
use crate::simulate::coverage::Situation;
use crate::simulate::wire::Side;

impl World<'_> {
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
        let (deadlines, answers): (Vec<_>, Vec<_>) = missed.into_iter().partition(is_deadline);
        if has_deadlines_first {
            self.fire_late_timer()?;
            self.happen_late(deadlines)?;
            self.happen_late(answers)
        } else {
            self.coverage.count(Situation::AnswersFirst);
            self.happen_late(answers)?;
            self.happen_late(deadlines)?;
            self.fire_late_timer()
        }
    }

    pub(super) fn plan_pause(&mut self) {
        if let Some(every) = self.plan.pause_every {
            self.plan_in(every, Due::Pause);
        }
    }

    /// Returns what the client missed, in its order.
    fn let_peers_go_on(&mut self, end: Instant) -> Result<Vec<Due>, String> {
        let mut missed = Vec::new();
        while self.agenda.next_time().is_some_and(|at| at <= end) {
            match self.agenda.pop() {
                Some((at, due)) if is_of_peer(&due) => {
                    self.now = self.now.max(at);
                    self.happen(due)?;
                }
                Some((_, due)) => missed.push(due),
                None => break,
            }
        }
        Ok(missed)
    }

    fn happen_late(&mut self, missed: Vec<Due>) -> Result<(), String> {
        for due in missed {
            self.happen(due)?;
        }
        Ok(())
    }

    /// The timer of the pool, if it is due.
    fn fire_late_timer(&mut self) -> Result<(), String> {
        self.clock.forget_timer();
        let deadline = self.subject.pool().next_deadline();
        match deadline.filter(|deadline| deadline.at <= self.now) {
            Some(_) => self.feed(Input::Timer),
            None => Ok(()),
        }
    }
}

/// Whether this happens at the peer, also while the client is stopped.
const fn is_of_peer(due: &Due) -> bool {
    matches!(due, Due::Arrive { at: Side::Far, .. } | Due::ServerTimer)
}

/// Whether this is a deadline that the client acts on.
const fn is_deadline(due: &Due) -> bool {
    matches!(due, Due::OpeningTimesOut { .. })
}
