//! A pool among callers, a server and a monitor, in virtual time.

mod anomalies;
mod callers;
mod pause;
mod recovery;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cenote_core::pool::{
    Action, ConnId, Deadline, DeadlineReason, Health, Input, Instant, PoolTypes, WaiterId,
};
use cenote_core::trace::Cause;

use super::accounting::{Accounting, Socket};
use super::clock::Clock;
use super::coverage::{Coverage, Situation};
use super::latency::Latency;
use super::plan::Plan;
use super::subject::{Judges, Subject};
use crate::lockstep::Comparable;
use cenote_replay::agenda::Agenda;
use cenote_replay::random::SplitMix;

/// A world. Faults occur until the plan's inputs are used up; then they end, and the pool has to recover
/// within [`Transport::RECOVERY`]; then the pool is closed, and nothing may be left.
pub(super) struct World<'a, T: Transport> {
    pub(super) plan: &'a Plan<T::Parameters>,
    pub(super) random: SplitMix,
    /// Draws pauses, so that worlds without them are as they were.
    pauses: SplitMix,
    pub(super) subject: Subject<T::Types>,
    pub(super) accounting: Accounting,
    agenda: Agenda<Due<T::Due>>,
    pub(super) now: Instant,
    clock: Clock,
    pub(super) coverage: Coverage,
    stop: &'a AtomicBool,
    /// All faults have ended.
    pub(super) is_recovering: bool,
    pub(super) is_closed: bool,
    /// The number of inputs after the previous step, and how many steps had no input since.
    last_progress: (u64, u32),
    /// Which callers got a connection since all faults ended.
    served: Vec<bool>,
    pub(super) transport: T,
}

/// What differs between a world without a network ([`direct`](super::direct)) and one with virtual
/// sockets ([`wire`](super::wire)): how connections are opened, what callers do with them, what marks the
/// pool ready and clears it.
pub(super) trait Transport: Sized {
    /// The payload types of the pool.
    type Types: Comparable + PoolTypes<Conn = u64, Waiter = u64, Cause: fmt::Display>;
    /// What is particular in the plan.
    type Parameters;
    /// Scheduled events of the transport's own.
    type Due: Ord;
    /// Timers of the transport's own.
    type Timer;

    /// Distinguishes the world's random numbers from those that its plan was drawn from.
    const SALT: u64;
    /// How long recovery may take after all faults ended.
    const RECOVERY: Duration;
    /// How many steps without an input show that none will follow.
    const STUCK: u32;
    /// How many [`FAST`] delays it takes to establish a connection once all faults ended.
    const OPENING: u32;
    /// How many bursts of check-outs there are in a heartbeat interval.
    const BURSTS: u64;

    fn new(plan: &Plan<Self::Parameters>) -> Result<Self, String>;
    fn has_troubles(parameters: &Self::Parameters) -> bool;
    fn is_balanced(parameters: &Self::Parameters) -> bool;
    /// The scale of callers' deadlines, and of the time until they cancel, and a factor for both.
    fn patience(plan: &Plan<Self::Parameters>) -> ([Latency; 2], u32);
    /// A cause as it stands in a trace.
    fn traced(cause: <Self::Types as PoolTypes>::Cause) -> Cause;
    /// What [`Plan::misuse_every`] counts, and a delay that is added.
    fn misuse_unit(plan: &Plan<Self::Parameters>) -> (Latency, Duration);

    /// The number of inputs that were fed to all state machines.
    fn inputs(world: &World<'_, Self>) -> u64;
    fn begin(world: &mut World<'_, Self>) -> Result<(), String>;
    /// The next times of the transport's timers: the first one fires before the pool's timer if both are
    /// due at the same time, the other one after it.
    fn timers(_: &mut World<'_, Self>) -> [Option<(Instant, Self::Timer)>; 2] {
        [None, None]
    }
    fn timer(world: &mut World<'_, Self>, timer: Self::Timer) -> Result<(), String>;
    fn happen(world: &mut World<'_, Self>, due: Self::Due) -> Result<(), String>;
    /// Whether this happens at the peer, also while the client is stopped.
    fn is_of_peer(_: &Self::Due) -> bool {
        false
    }
    /// Whether this is a deadline that the client acts on.
    fn is_deadline(due: &Self::Due) -> bool;
    /// When the peer goes on by itself.
    fn peer_deadline(_: &World<'_, Self>) -> Option<Instant> {
        None
    }
    fn peer_timer(_: &mut World<'_, Self>) {}
    /// A timer of the client's that is due, except for the pool's.
    fn fire_late_timer(_: &mut World<'_, Self>) -> Result<(), String> {
        Ok(())
    }

    /// Checks what must hold after every step.
    fn check(_: &World<'_, Self>) -> Result<(), String> {
        Ok(())
    }

    /// Whether the caller checks out now; if not, it will do so later.
    fn may_ask(world: &mut World<'_, Self>, caller: u32) -> Result<bool, String>;
    /// A caller has got this connection.
    fn use_connection(world: &mut World<'_, Self>, connection: u64);
    /// A caller is about to check in this connection. The server's errors are reported to SDAM first.
    fn health(
        world: &mut World<'_, Self>,
        socket: &Socket,
    ) -> Result<Health<<Self::Types as PoolTypes>::Cause>, String>;
    /// The pool interrupts the use of this connection.
    fn interrupt(world: &mut World<'_, Self>, connection: u64);

    fn before_input(
        _: &mut World<'_, Self>,
        _at: Instant,
        _input: &Input<Self::Types>,
    ) -> Result<(), String> {
        Ok(())
    }
    fn before_action(_: &mut World<'_, Self>, _action: &Action<Self::Types>) {}
    fn open(world: &mut World<'_, Self>, id: ConnId, deadline: Option<Instant>);
    fn abort(world: &mut World<'_, Self>, id: ConnId) -> Result<(), String>;
    /// A late reply is to be read.
    fn drain(_: &mut World<'_, Self>, id: ConnId) -> Result<(), String> {
        Err(format!("{id} is drained, but no caller of these worlds leaves a reply behind"))
    }
    /// A late reply that is being read has to come or fail soon.
    fn finish_drain(_: &mut World<'_, Self>, _connection: u64) {}
    fn hang_up(_: &mut World<'_, Self>, _connection: u64) {}

    /// Begins a trouble, or ends the present one.
    fn change_trouble(world: &mut World<'_, Self>);
    fn move_services(world: &mut World<'_, Self>);
    fn before_fork(_: &mut World<'_, Self>) {}
    fn after_fork(_: &mut World<'_, Self>) -> Result<(), String> {
        Ok(())
    }
    /// Misuses a state machine, which has to refuse; `None` if there is no opportunity at present.
    fn misuse(world: &mut World<'_, Self>) -> Option<Result<(), String>>;

    /// Ends all faults.
    fn begin_recovery(world: &mut World<'_, Self>) -> Result<(), String>;
    /// Makes sure that no fault occurs from now on.
    fn before_close(world: &mut World<'_, Self>) -> Result<(), String>;
    fn after_close(_: &mut World<'_, Self>) -> Result<(), String> {
        Ok(())
    }
    /// A connection that is being opened has to succeed or fail soon.
    fn finish_opening(_: &mut World<'_, Self>, _connection: u64) {}
    /// Whether the server is selectable.
    fn sees_server(_: &World<'_, Self>) -> bool {
        true
    }
    /// How long the server may stay unseen after all faults ended.
    fn sight(_: &Plan<Self::Parameters>) -> Duration {
        Duration::MAX
    }
    fn expect_no_socket(_: &World<'_, Self>) -> Result<(), String> {
        Ok(())
    }
    fn finish(_: &mut World<'_, Self>) -> Result<(), String> {
        Ok(())
    }
}

/// A scheduled event. Connections are identified by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due<D> {
    /// A caller checks out a connection.
    Ask { caller: u32 },
    /// A caller cancels its check-out.
    Cancel { request: WaiterId },
    /// A caller checks in a connection.
    Finish { connection: u64, use_number: u64 },
    /// A connection changes its purpose.
    Repurpose { connection: u64, use_number: u64 },
    /// A trouble begins or ends.
    Trouble,
    /// Behind the load balancer, services disappear and others appear.
    ServicesMove,
    /// The application sets other options.
    SetOptions,
    /// The process forks; the world goes on in the child.
    Fork,
    /// The client is stopped for some seconds.
    Pause,
    /// The embedder misuses the API.
    Misuse,
    /// An event of the transport's own.
    Transport(D),
}

impl<D> From<D> for Due<D> {
    fn from(due: D) -> Self {
        Self::Transport(due)
    }
}

/// The delay of everything after all faults ended.
pub(super) const FAST: Duration = Duration::from_micros(100);

/// What the next step is.
enum Turn<T> {
    Agenda,
    PoolTimer,
    TransportTimer(T),
}

impl<'a, T: Transport> World<'a, T> {
    pub(super) fn new(
        plan: &'a Plan<T::Parameters>,
        judges: Judges,
        stop: &'a AtomicBool,
    ) -> Result<Self, String> {
        Ok(Self {
            plan,
            random: SplitMix(plan.seed ^ T::SALT),
            pauses: SplitMix(plan.seed ^ T::SALT ^ 0x9a05e),
            subject: Subject::new(&plan.options, judges)?,
            accounting: Accounting::default(),
            agenda: Agenda::default(),
            now: Instant::ORIGIN,
            clock: Clock::default(),
            coverage: Coverage::default(),
            stop,
            is_recovering: false,
            is_closed: false,
            last_progress: (0, 0),
            served: vec![false; plan.callers as usize],
            transport: T::new(plan)?,
        })
    }

    /// Runs the world; `false` if it was stopped before its end.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub(super) fn run(&mut self) -> Result<bool, String> {
        self.begin()?;
        while T::inputs(self) < self.plan.steps && !self.is_stuck() && self.step()? {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        if !self.plan.ends_abruptly {
            self.recover()?;
        }
        self.end()?;
        self.subject.finish()?;
        T::finish(self).map(|()| true)
    }

    /// All connections are held by callers that never return them, and all other callers wait.
    fn is_stuck(&mut self) -> bool {
        let inputs = T::inputs(self);
        let idle = if inputs == self.last_progress.0 { self.last_progress.1 + 1 } else { 0 };
        self.last_progress = (inputs, idle);
        idle > T::STUCK
    }

    fn begin(&mut self) -> Result<(), String> {
        for caller in 0..self.plan.callers {
            let after = self.think_time();
            self.plan_in(after, Due::Ask { caller });
        }
        if T::has_troubles(&self.plan.transport) {
            let after = self.plan.trouble_time.draw(&mut self.random);
            self.plan_in(after, Due::Trouble);
        }
        self.plan_anomalies();
        T::begin(self)
    }

    /// Does what is due next; `false` if nothing is.
    fn step(&mut self) -> Result<bool, String> {
        let planned = self.agenda.next_time().map(|at| (at, Turn::Agenda));
        let pool = self.pool_timer().map(|at| (at, Turn::PoolTimer));
        let [before, after] = T::timers(self).map(|timer| {
            let (at, timer) = timer?;
            Some((at, Turn::TransportTimer(timer)))
        });
        // At the same time, planned events come first.
        let turns = [planned, before, pool, after];
        let Some((at, turn)) = turns.into_iter().flatten().min_by_key(|(at, _)| *at) else {
            return Ok(false);
        };
        self.now = self.now.max(at);
        match turn {
            Turn::Agenda => {
                if let Some((_, due)) = self.agenda.pop() {
                    self.happen(due)?;
                }
            }
            Turn::PoolTimer => {
                self.clock.timer_fired(&mut self.coverage);
                self.feed(Input::Timer)?;
            }
            Turn::TransportTimer(timer) => T::timer(self, timer)?,
        }
        T::check(self).map(|()| true)
    }

    fn happen(&mut self, due: Due<T::Due>) -> Result<(), String> {
        match due {
            Due::Ask { caller } => self.ask(caller),
            Due::Cancel { request } => self.cancel(request),
            Due::Finish { connection, use_number } => self.finish(connection, use_number),
            Due::Repurpose { connection, use_number } => self.repurpose(connection, use_number),
            Due::Trouble => {
                self.next_trouble();
                Ok(())
            }
            Due::ServicesMove => {
                self.services_move();
                Ok(())
            }
            Due::SetOptions => self.set_options(),
            Due::Fork => self.fork(),
            Due::Pause => self.pause(),
            Due::Misuse => self.misuse(),
            Due::Transport(due) => T::happen(self, due),
        }
    }

    /// Feeds a valid input to the pool, and executes its actions.
    pub(super) fn feed(&mut self, input: Input<T::Types>) -> Result<(), String> {
        let at = self.look_at_clock();
        T::before_input(self, at, &input)?;
        let is_timer = matches!(input, Input::Timer);
        let due = self.subject.pool().next_deadline().filter(|deadline| deadline.at <= at);
        let actions = self.subject.feed(at, input)?;
        if is_timer {
            self.count_policies(due, &actions);
        }
        if is_timer && actions.iter().filter(|action| is_due(action)).count() > 1 {
            self.coverage.count(Situation::TimersMerged);
        }
        for action in actions {
            T::before_action(self, &action);
            self.act(action)?;
        }
        self.accounting.compare(&self.subject.snapshot())
    }

    /// What the policies did when the timer fired for `due`.
    fn count_policies(&mut self, due: Option<Deadline>, actions: &[Action<T::Types>]) {
        let starts = |action: &Action<_>| matches!(action, Action::StartEstablish { .. });
        let is_time = due.is_some_and(|due| due.reason == DeadlineReason::Establishment);
        if is_time && actions.iter().any(starts) {
            self.coverage.count(Situation::WaitedForItsTime);
        }
        let pool = self.subject.pool();
        if pool.snapshot().min_pool_size > pool.options().min_pool_size.unwrap_or_default() {
            self.coverage.count(Situation::Predicted);
        }
    }

    fn act(&mut self, action: Action<T::Types>) -> Result<(), String> {
        match action {
            Action::StartEstablish { id, deadline, .. } => {
                self.accounting.start(id)?;
                T::open(self, id, deadline);
                Ok(())
            }
            Action::AbortEstablish { id } => {
                self.coverage.count(Situation::Aborted);
                self.accounting.abort(id)?;
                T::abort(self, id)
            }
            Action::StartDrain { id, conn } => {
                self.accounting.start_drain(id, conn)?;
                T::drain(self, id)
            }
            Action::AbortDrain { id } => {
                self.coverage.count(Situation::DrainAborted);
                self.accounting.abort_drain(id)
            }
            Action::Deliver { waiter, outcome } => self.delivered(WaiterId(waiter), &outcome),
            Action::CloseSocket { id, conn } => {
                T::hang_up(self, id.number());
                self.accounting.close(id, conn)
            }
            Action::Interrupt { id } => self.interrupted(id),
            Action::ReportLeak { id, held: _ } => {
                self.coverage.count(Situation::LeakReport);
                self.accounting.expect_used(id)
            }
            Action::ReportUnanswered { id, pending: _ } => {
                self.coverage.count(Situation::UnansweredReport);
                self.accounting.expect_pending(id)
            }
            Action::EmitEvent(_) => Ok(()),
        }
    }

    pub(super) fn plan_in(&mut self, after: Duration, due: impl Into<Due<T::Due>>) {
        self.agenda.plan(self.now + after, due.into());
    }

    pub(super) fn time(&mut self, latency: Latency) -> Duration {
        if self.is_recovering { FAST } else { latency.draw(&mut self.random) }
    }

    pub(super) fn is_balanced(&self) -> bool {
        T::is_balanced(&self.plan.transport)
    }
}

/// Whether the action shows that a deadline has passed.
fn is_due<S: PoolTypes>(action: &Action<S>) -> bool {
    match action {
        Action::Deliver { .. }
        | Action::CloseSocket { .. }
        | Action::ReportLeak { .. }
        | Action::ReportUnanswered { .. } => true,
        Action::StartEstablish { .. }
        | Action::AbortEstablish { .. }
        | Action::StartDrain { .. }
        | Action::AbortDrain { .. }
        | Action::Interrupt { .. }
        | Action::EmitEvent(_) => false,
    }
}
