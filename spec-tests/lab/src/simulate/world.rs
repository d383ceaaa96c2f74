//! A pool among callers, a server and a monitor, in virtual time.

mod anomalies;
mod callers;
mod late_replies;
mod pause;
mod recovery;
mod server;
mod troubles;
mod uses;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cenote_core::pool::{
    Action, Deadline, DeadlineReason, Event, Input, Instant, PoolTypes, WaiterId,
};

use super::accounting::Accounting;
use super::clock::Clock;
use super::coverage::{Coverage, Situation};
use super::latency::Latency;
use super::plan::{Plan, Transport};
use super::subject::{Judges, Subject};
use super::trouble::Trouble;
use super::wire::{Side, Wire};
use crate::lockstep::Tagged;
use cenote_replay::agenda::Agenda;
use cenote_replay::random::SplitMix;

/// A world. Faults occur until the plan's inputs are used up; then they end, and the pool has to recover
/// within [`RECOVERY`]; then the pool is closed, and nothing may be left.
pub(super) struct World<'a> {
    pub(super) plan: &'a Plan,
    random: SplitMix,
    /// Draws pauses, so that worlds without them are as they were.
    pauses: SplitMix,
    /// Draws what concerns late replies, so that worlds without them are as they were.
    late: SplitMix,
    pub(super) subject: Subject,
    pub(super) accounting: Accounting,
    agenda: Agenda<Due>,
    pub(super) now: Instant,
    clock: Clock,
    pub(super) coverage: Coverage,
    stop: &'a AtomicBool,
    /// All faults have ended.
    pub(super) is_recovering: bool,
    is_closed: bool,
    /// The number of inputs after the previous step, and how many steps had no input since.
    last_progress: (u64, u32),
    /// Which callers got a connection since all faults ended.
    served: Vec<bool>,
    pub(super) trouble: Option<Trouble>,
    /// The load balancer's services have consecutive numbers; this is the first one.
    first_service: u8,
    /// Callers that wait for the pool to be ready.
    waiting_for_ready: Vec<u32>,
    /// Whether connections were released the last time, and not retired.
    releases: bool,
    /// The conversations, the network and the server, if connections have conversations.
    pub(super) wire: Option<Wire>,
}

/// A scheduled event. Connections are identified by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
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
    /// The server replies to a connection's hello.
    Greeted { connection: u64 },
    /// A connection is established, or fails.
    Opened { connection: u64 },
    /// The time limit for establishing a connection is over.
    OpeningTimesOut { connection: u64 },
    /// The monitor checks the server.
    Heartbeat,
    /// The peer closes an idle connection.
    PeerCloses { connection: u64 },
    /// A late reply comes, or some of it.
    Drained { connection: u64 },
    /// Credentials change.
    Retire,
    /// A packet arrives.
    Arrive { connection: u64, at: Side },
    /// The timer of the server with conversations fires.
    ServerTimer,
}

/// The delay of everything after all faults ended.
pub(super) const FAST: Duration = Duration::from_micros(100);

/// How long recovery may take after all faults ended: longer than any pause of a plan, and than the timeouts of many
/// connections that are dead and were not noticed.
const RECOVERY: Duration = Duration::from_secs(60);

impl<'a> World<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        judges: Judges,
        stop: &'a AtomicBool,
    ) -> Result<Self, String> {
        let wire = match plan.transport {
            Transport::Direct => None,
            Transport::Wire(conversations) => Some(Wire::new(plan, conversations)?),
        };
        Ok(Self {
            plan,
            random: SplitMix(plan.seed ^ 0x5eed),
            pauses: SplitMix(plan.seed ^ 0x5eed ^ 0x9a05e),
            late: SplitMix(plan.seed ^ 0x1a7e_4e91),
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
            trouble: None,
            first_service: 0,
            waiting_for_ready: Vec::new(),
            releases: false,
            wire,
        })
    }

    /// Runs the world; `false` if it was stopped before its end.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub(super) fn run(&mut self) -> Result<bool, String> {
        self.begin();
        while self.subject.fed < self.plan.steps && !self.is_stuck() && self.step()? {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        if !self.plan.ends_abruptly {
            self.recover()?;
        }
        self.end()?;
        self.subject.finish().map(|()| true)
    }

    /// All connections are held by callers that never return them, and all other callers wait.
    fn is_stuck(&mut self) -> bool {
        let inputs = self.subject.fed;
        let idle = if inputs == self.last_progress.0 { self.last_progress.1 + 1 } else { 0 };
        self.last_progress = (inputs, idle);
        // A conversation has many packets.
        idle > if self.wire.is_some() { 10_000 } else { 1_000 }
    }

    fn begin(&mut self) {
        for caller in 0..self.plan.callers {
            let after = self.think_time();
            self.plan_in(after, Due::Ask { caller });
        }
        if !self.plan.troubles.is_empty() {
            let after = self.plan.trouble_time.draw(&mut self.random);
            self.plan_in(after, Due::Trouble);
        }
        self.plan_anomalies();
        self.plan_in(Duration::ZERO, Due::Heartbeat);
        if let Some(every) = self.plan.retire_every {
            self.plan_in(every, Due::Retire);
        }
    }

    /// Does what is due next; `false` if nothing is.
    fn step(&mut self) -> Result<bool, String> {
        let timer = self.pool_timer();
        // At the same time, planned events come first.
        let (at, is_timer) = match (self.agenda.next_time(), timer) {
            (Some(planned), Some(timer)) => (planned.min(timer), timer < planned),
            (Some(planned), None) => (planned, false),
            (None, Some(timer)) => (timer, true),
            (None, None) => return Ok(false),
        };
        self.now = self.now.max(at);
        if is_timer {
            self.clock.timer_fired(&mut self.coverage);
            self.feed(Input::Timer)?;
        } else if let Some((_, due)) = self.agenda.pop() {
            self.happen(due)?;
        }
        Ok(true)
    }

    fn happen(&mut self, due: Due) -> Result<(), String> {
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
            Due::Greeted { connection } => self.greeted(connection),
            Due::Opened { connection } => self.opened(connection),
            Due::OpeningTimesOut { connection } => self.opening_times_out(connection),
            Due::Heartbeat => self.heartbeat(),
            Due::PeerCloses { connection } => self.peer_closes(connection),
            Due::Drained { connection } => self.drained(connection),
            Due::Retire => self.retire(),
            Due::Arrive { connection, at } => self.arrive(connection, at),
            Due::ServerTimer => {
                self.server_timer();
                Ok(())
            }
        }
    }

    /// Feeds a valid input to the pool, and executes its actions.
    pub(super) fn feed(&mut self, input: Input<Tagged>) -> Result<(), String> {
        let at = self.look_at_clock();
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
            self.act(action)?;
        }
        self.accounting.compare(&self.subject.snapshot())
    }

    /// What the policies did when the timer fired for `due`.
    fn count_policies(&mut self, due: Option<Deadline>, actions: &[Action<Tagged>]) {
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

    fn act(&mut self, action: Action<Tagged>) -> Result<(), String> {
        match action {
            Action::StartEstablish { id, .. } => {
                self.accounting.start(id)?;
                self.start_opening(id);
                Ok(())
            }
            Action::AbortEstablish { id } => {
                self.coverage.count(Situation::Aborted);
                self.accounting.abort(id)?;
                self.abort_conversation(id.number());
                Ok(())
            }
            Action::StartDrain { id, conn } => {
                self.accounting.start_drain(id, conn)?;
                self.plan_drain(id.number());
                Ok(())
            }
            Action::AbortDrain { id } => {
                self.coverage.count(Situation::DrainAborted);
                self.accounting.abort_drain(id)?;
                self.abort_drain_of_conversation(id.number());
                Ok(())
            }
            Action::Deliver { waiter, outcome } => self.delivered(WaiterId(waiter), &outcome),
            Action::CloseSocket { id, conn } => {
                self.hang_up(id.number());
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
            Action::EmitEvent(Event::ConnectionPoolReady) => {
                for caller in std::mem::take(&mut self.waiting_for_ready) {
                    self.plan_in(Duration::ZERO, Due::Ask { caller });
                }
                Ok(())
            }
            Action::EmitEvent(_) => Ok(()),
        }
    }

    pub(super) fn plan_in(&mut self, after: Duration, due: Due) {
        self.agenda.plan(self.now + after, due);
    }

    pub(super) fn time(&mut self, latency: Latency) -> Duration {
        if self.is_recovering { FAST } else { latency.draw(&mut self.random) }
    }

    pub(super) fn is_balanced(&self) -> bool {
        self.plan.services != 0
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
