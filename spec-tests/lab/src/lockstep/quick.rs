//! A machine that is served as shells serve theirs: by the entry points for what is decided at once, where they apply.

use cenote_core::pool::{
    Action, ActionSink, CheckOutError, Health, Input, Instant, InvalidOptions, PoolOptions,
    PoolState,
};

use super::tagged::Tagged;

/// The machine, and the timer that a shell keeps beside it.
pub(crate) struct Quick {
    pub(crate) pool: PoolState<Tagged>,
    armed: Option<Instant>,
}

/// Hears events only if a subscriber is there.
struct Sink {
    actions: Vec<Action<Tagged>>,
    wants_events: bool,
}

impl ActionSink<Tagged> for Sink {
    fn act(&mut self, action: Action<Tagged>) {
        self.actions.push(action);
    }

    fn wants_events(&self) -> bool {
        self.wants_events
    }
}

impl Quick {
    pub(crate) fn new(options: &PoolOptions) -> Result<Self, InvalidOptions> {
        let mut actions: Vec<Action<Tagged>> = Vec::new();
        let pool = PoolState::new(Instant::ORIGIN, options.clone(), &mut actions)?;
        Ok(Self { pool, armed: None })
    }

    /// Takes an input that `handle` of another machine answered with `expected`, or refused.
    ///
    /// # Errors
    ///
    /// The answers, the states, or the timer differ.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        input: Input<Tagged>,
        expected: Option<&[Action<Tagged>]>,
        wants_events: bool,
    ) -> Result<(), String> {
        let mut sink = Sink { actions: Vec::new(), wants_events };
        let is_taken = self.decide(now, input, &mut sink);
        let told =
            |action: &&Action<Tagged>| wants_events || !matches!(action, Action::EmitEvent(_));
        let expected = expected.map(|actions| actions.iter().filter(told).collect::<Vec<_>>());
        let actions = is_taken.then(|| sink.actions.iter().collect());
        if actions != expected {
            return Err(format!("at once: {actions:#?}\nas handle decides: {expected:#?}"));
        }
        let next = self.pool.next_deadline();
        if next.is_some_and(|next| self.armed.is_none_or(|armed| armed > next.at)) {
            return Err(format!("the timer is set to {:?}, and {next:?} is due", self.armed));
        }
        self.pool.check_invariants();
        Ok(())
    }

    /// Whether the input is legal.
    fn decide(&mut self, now: Instant, mut input: Input<Tagged>, sink: &mut Sink) -> bool {
        if let Input::CheckOutRequested { id, waiter, deadline, purpose } = input {
            if let Some(delivered) = self.pool.check_out_at_once(now, id, purpose, sink) {
                self.arm(PoolState::keeps_deadline_at_once);
                sink.act(Action::Deliver { waiter, outcome: Ok(delivered) });
                return true;
            }
            match self.pool.enqueue_at_once(now, id, waiter, deadline, purpose, sink) {
                Ok(limit) => {
                    self.arm_at(limit);
                    return true;
                }
                Err(waiter) => input = Input::CheckOutRequested { id, waiter, deadline, purpose },
            }
        } else if let Input::CheckedIn { id, conn, health: Health::Healthy } = input {
            let conn = match self.pool.check_in_at_once(now, id, conn, sink) {
                Ok(()) => {
                    self.arm(PoolState::keeps_deadline_at_once);
                    return true;
                }
                Err(conn) => conn,
            };
            match self.pool.hand_over_at_once(now, id, conn, sink) {
                Ok((waiter, conn)) => {
                    self.arm(PoolState::keeps_deadline_at_once);
                    sink.act(Action::Deliver { waiter, outcome: Ok((id, conn)) });
                    return true;
                }
                Err(conn) => input = Input::CheckedIn { id, conn, health: Health::Healthy },
            }
        } else if let Input::CheckOutCancelled { id } = input
            && let Some(waiter) = self.pool.cancel_at_once(now, id, sink)
        {
            sink.act(Action::Deliver { waiter, outcome: Err(CheckOutError::Cancelled) });
            return true;
        }
        let is_use = matches!(input, Input::CheckOutRequested { .. } | Input::CheckedIn { .. });
        if matches!(input, Input::Timer) {
            self.armed = None;
        }
        let is_taken = self.pool.handle(now, input, sink).is_ok();
        self.arm(|pool, armed| is_use && pool.keeps_deadline(armed));
        is_taken
    }

    /// Sets the timer to the next deadline, unless the machine says that it may be left so.
    fn arm(&mut self, keeps: impl Fn(&PoolState<Tagged>, Instant) -> bool) {
        if !self.armed.is_some_and(|armed| keeps(&self.pool, armed)) {
            self.arm_at(self.pool.next_deadline().map(|deadline| deadline.at));
        }
    }

    fn arm_at(&mut self, next: Option<Instant>) {
        self.armed = match (self.armed, next) {
            (Some(armed), Some(next)) => Some(armed.min(next)),
            (armed, next) => armed.or(next),
        };
    }
}
