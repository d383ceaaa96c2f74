//! A pool in the middle of callers, a server and a monitor, in virtual time.

mod callers;
mod due;
mod server;
mod strange;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cenote_core::pool::{Action, Event, Input, Instant, PoolTypes, ServiceId};

use self::due::Due;
use super::books::{Books, Place, Socket};
use super::chance::{Chance, Latency};
use super::clock::Clock;
use super::met::{Encounter, Met};
use super::plan::{Plan, Trouble};
use super::subject::{Subject, Watch};
use crate::agenda::Agenda;
use crate::lockstep::{self, Tagged};

/// See the module. First there is trouble, until the plan's inputs are used up; then all gets well,
/// and has to be well within [`CALM`]; then the pool is closed, and nothing may be left.
pub(super) struct World<'a> {
    plan: &'a Plan,
    chance: Chance,
    pub(super) subject: Subject<Tagged>,
    books: Books,
    agenda: Agenda<Due>,
    now: Instant,
    clock: Clock,
    pub(super) met: Met,
    /// Somebody wants no more of it.
    stop: &'a AtomicBool,
    /// The services behind the load balancer: as many as the plan says, from this one on.
    first_service: u8,
    trouble: Option<Trouble>,
    is_calm: bool,
    is_closed: bool,
    /// How many inputs there had been when one was fed last, and how often nothing was since.
    last_fed: (u64, u32),
    /// Which callers were served since all is well.
    served: Vec<bool>,
    /// Who waits for the pool to be ready.
    patient: Vec<u32>,
}

/// How long it may take until everything is well again: longer than any pause of a plan's.
const CALM: Duration = Duration::from_secs(30);

/// Heartbeats and troubles without an input between, after which nothing more is to be expected.
const STUCK: u32 = 1_000;

/// How long anything takes when all is well.
const QUICK: Duration = Duration::from_micros(100);

impl<'a> World<'a> {
    pub(super) fn new(plan: &'a Plan, watch: Watch, stop: &'a AtomicBool) -> Result<Self, String> {
        Ok(Self {
            plan,
            // Not the numbers that the plan was made of.
            chance: Chance::new(plan.seed ^ 0x5eed),
            subject: Subject::new(&plan.options, watch)?,
            books: Books::default(),
            agenda: Agenda::default(),
            now: Instant::ORIGIN,
            clock: Clock::default(),
            met: Met::default(),
            stop,
            first_service: 0,
            trouble: None,
            is_calm: false,
            is_closed: false,
            last_fed: (0, 0),
            served: vec![false; plan.callers as usize],
            patient: Vec::new(),
        })
    }

    /// Lives through it; `false` if somebody stopped it before its end.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, in words.
    pub(super) fn run(&mut self) -> Result<bool, String> {
        self.begin();
        while self.subject.fed < self.plan.steps && !self.is_stuck() {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            self.step()?;
        }
        if !self.plan.ends_abruptly {
            self.get_well()?;
        }
        self.end()?;
        self.subject.finish().map(|()| true)
    }

    /// Everybody who has a connection keeps it, and everybody else waits without end.
    fn is_stuck(&mut self) -> bool {
        let is_new = self.last_fed.0 != self.subject.fed;
        let idle = if is_new { 0 } else { self.last_fed.1 + 1 };
        self.last_fed = (self.subject.fed, idle);
        idle > STUCK
    }

    fn begin(&mut self) {
        for caller in 0..self.plan.callers {
            let after = self.think();
            self.plan_in(after, Due::Ask { caller });
        }
        self.plan_in(Duration::ZERO, Due::Heartbeat);
        if !self.plan.troubles.is_empty() {
            let after = self.chance.time(self.plan.trouble_time);
            self.plan_in(after, Due::Trouble);
        }
        self.plan_oddities();
    }

    /// Nothing goes wrong any more: everybody is served, the minimum is there, nothing is pending.
    fn get_well(&mut self) -> Result<(), String> {
        self.is_calm = true;
        self.trouble = None;
        self.finish_everything();
        let deadline = self.now + CALM;
        while !self.is_well() {
            if self.now > deadline {
                return Err(format!(
                    "all has been well for {CALM:?}, and still: {}, {} wait, {} were not served",
                    self.subject.snapshot(),
                    self.books.waiting(),
                    self.served.iter().filter(|&&served| !served).count(),
                ));
            }
            self.step()?;
        }
        Ok(())
    }

    fn is_well(&self) -> bool {
        let is_quiet = self.subject.is_at_rest(QUICK) && self.books.waiting() == 0;
        is_quiet && self.served.iter().all(|&served| served)
    }

    /// The pool is closed, what is out comes home, and nothing is left.
    fn end(&mut self) -> Result<(), String> {
        self.is_calm = true;
        self.is_closed = true;
        self.feed(Input::Close)?;
        if self.books.waiting() != 0 {
            return Err(format!("{} wait for a closed pool", self.books.waiting()));
        }
        self.finish_everything();
        let deadline = self.now + CALM;
        while self.now < deadline && !self.books.is_empty() {
            self.step()?;
        }
        self.books.expect_nothing()?;
        match self.subject.snapshot().total {
            0 => Ok(()),
            total => Err(format!("{total} connections are left in a closed pool")),
        }
    }

    /// What happens next.
    fn step(&mut self) -> Result<(), String> {
        let timer = self.timer_fires_at();
        let planned = self.agenda.next_time();
        if let Some(at) = timer.filter(|&at| planned.is_none_or(|planned| at < planned)) {
            self.now = self.now.max(at);
            self.clock.timer_fired(&mut self.met);
            return self.feed(Input::Timer);
        }
        let Some((at, due)) = self.agenda.pop() else {
            return Err("nothing will ever happen again".to_owned());
        };
        self.now = self.now.max(at);
        self.happen(due)
    }

    fn happen(&mut self, due: Due) -> Result<(), String> {
        match due {
            Due::Ask { caller } => self.ask(caller),
            Due::GiveUp { request } => self.give_up(request),
            Due::Finish { connection, use_number } => self.finish(connection, use_number),
            Due::Greeted { connection } => self.greeted(connection),
            Due::Repurpose { connection, use_number } => self.repurpose(connection, use_number),
            Due::Opened { connection } => self.opened(connection),
            Due::OpeningTimesOut { connection } => self.opening_times_out(connection),
            Due::Heartbeat => self.heartbeat(),
            Due::Trouble => self.next_trouble(),
            Due::PeerCloses { connection } => self.peer_closes(connection),
            Due::ServicesMove => self.services_move(),
            Due::SetOptions => self.set_options(),
            Due::Fork => self.fork(),
            Due::Misuse => self.misuse(),
        }
    }

    /// Feeds what makes sense, and does what comes of it.
    fn feed(&mut self, input: Input<Tagged>) -> Result<(), String> {
        let at = self.clock();
        let is_timer = matches!(input, Input::Timer);
        let actions = self.subject.feed(at, input)?;
        if is_timer && actions.iter().filter(|action| is_due(action)).count() > 1 {
            self.met.count(Encounter::TimersMerged);
        }
        for action in actions {
            self.act(action)?;
        }
        self.books.compare(&self.subject.snapshot())
    }

    fn act(&mut self, action: Action<Tagged>) -> Result<(), String> {
        match action {
            Action::StartEstablish { id, deadline, background: _ } => {
                self.books.start(id)?;
                self.open(id, deadline);
                Ok(())
            }
            Action::AbortEstablish { id } => {
                self.met.count(Encounter::Aborted);
                self.books.abort(id)
            }
            Action::Deliver { waiter, outcome } => self.delivered(waiter, &outcome),
            Action::CloseSocket { id, conn } => self.books.close(id, conn),
            Action::Interrupt { id } => self.interrupted(id),
            Action::ReportLeak { id, held: _ } => {
                self.met.count(Encounter::LeakReport);
                self.books.expect_used(id)
            }
            Action::EmitEvent(Event::ConnectionPoolReady) => {
                self.call_the_patient();
                Ok(())
            }
            Action::EmitEvent(_) => Ok(()),
        }
    }

    fn plan_in(&mut self, after: Duration, due: Due) {
        self.agenda.plan(self.now + after, due);
    }

    fn time(&mut self, latency: Latency) -> Duration {
        if self.is_calm { QUICK } else { self.chance.time(latency) }
    }

    /// Until a caller asks again: in a burst, when all others do.
    fn think(&mut self) -> Duration {
        if self.plan.habits.bursts && !self.is_calm {
            let beat = u64::try_from(self.plan.heartbeat.as_nanos()).unwrap_or(u64::MAX);
            return Duration::from_nanos(beat - self.now.as_nanos() % beat);
        }
        self.time(self.plan.think)
    }

    fn is_balanced(&self) -> bool {
        self.plan.services != 0
    }
}

/// Something that only a timer has done.
pub(super) fn is_due<S: PoolTypes>(action: &Action<S>) -> bool {
    match action {
        Action::Deliver { .. } | Action::CloseSocket { .. } | Action::ReportLeak { .. } => true,
        Action::StartEstablish { .. }
        | Action::AbortEstablish { .. }
        | Action::Interrupt { .. }
        | Action::EmitEvent(_) => false,
    }
}

/// Which one answered.
fn service_of(socket: Socket) -> Option<ServiceId> {
    socket.service.map(lockstep::service)
}
