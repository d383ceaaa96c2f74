//! A pool whose connections are established, used and watched over a network, in virtual time.

mod callers;
mod calm;
mod due;
mod monitor;
mod opening;
mod seen;
mod server;
mod strange;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cenote_core::connect::{ClientMetadata, Environment, EstablishOptions, ScramCache};
use cenote_core::pool::{Action, Input, Instant};
use cenote_core::uri::ConnectionString;
use cenote_endpoint::Server;

use self::callers::Use;
use self::due::Due;
use self::monitor::Watch;
use self::opening::Line;
use self::seen::Tape;
use super::cause::Wired;
use super::network::{LinkId, Network};
use super::plan::Plan;
use super::talk::Kit;
use super::trouble::Trouble;
use super::witness::Witness;
use crate::agenda::Agenda;
use crate::simulate::books::Books;
use crate::simulate::chance::{Chance, Latency};
use crate::simulate::clock::Clock;
use crate::simulate::met::{Encounter, Met};
use crate::simulate::plan::TimeFaults;
use crate::simulate::subject::{self, Subject};
use crate::simulate::world::is_due;

/// See the module. First there is trouble, until the machines had the plan's inputs; then all gets
/// well, and has to be well in time; then the pool is closed, and nothing may be left.
pub(in crate::simulate) struct World<'a> {
    plan: &'a Plan,
    chance: Chance,
    pub(in crate::simulate) subject: Subject<Wired>,
    pub(super) witness: Witness,
    pub(super) met: Met,
    /// Somebody wants no more of it.
    stop: &'a AtomicBool,
    tape: Option<Tape>,
    books: Books,
    agenda: Agenda<Due>,
    now: Instant,
    clock: Clock,
    /// Watches the server; nobody does behind a load balancer.
    watch: Option<Watch>,
    server: Server,
    listens: bool,
    network: Network,
    /// What the application was configured with.
    uri: ConnectionString,
    /// What every connection is opened with.
    options: Arc<EstablishOptions>,
    kit: Kit,
    /// The clients' ends of all links.
    lines: BTreeMap<LinkId, Line>,
    /// Which link a connection of the pool is.
    links: BTreeMap<u64, LinkId>,
    /// Links of the process that this one was forked from, and what had been sent there by then.
    parents: Vec<(LinkId, u64)>,
    /// What is done with connections that are out.
    uses: BTreeMap<u64, Use>,
    /// Errors that the pool was told of.
    causes: u64,
    trouble: Option<Trouble>,
    /// Since when all is well.
    calm_since: Option<Instant>,
    is_closed: bool,
    /// How many inputs there had been when one was fed last, and how often nothing was since.
    last_fed: (u64, u32),
    /// Which callers were served since all is well.
    served: Vec<bool>,
    /// What a test has slip into errors.
    #[cfg(test)]
    pub(super) leak: Option<fn(&World<'_>) -> String>,
}

/// Steps without an input between, after which nothing more is to be expected.
const STUCK: u32 = 10_000;

/// How long anything takes when all is well.
const QUICK: Duration = Duration::from_micros(100);

/// Who comes next.
enum Turn {
    PoolTimer,
    MonitorTimer,
    ServerTimer,
    Agenda,
}

impl<'a> World<'a> {
    pub(in crate::simulate) fn new(
        plan: &'a Plan,
        watch: subject::Watch,
        stop: &'a AtomicBool,
    ) -> Result<Self, String> {
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let uri = ConnectionString::parse(&plan.uri()).map_err(|error| told(&error))?;
        let client = ClientMetadata::new(uri.app_name.as_deref(), &Environment::default());
        let client = client.map_err(|error| told(&error))?;
        let options = Arc::new(EstablishOptions::new(&uri, &client));
        let address = uri.hosts.first().ok_or("a connection string without a host")?.clone();
        let kit = Kit {
            address,
            proxy: uri.proxy.clone(),
            scram: ScramCache::default(),
            now: Instant::ORIGIN,
        };
        let mut world = Self {
            plan,
            chance: Chance::new(plan.seed ^ 0x5eed_0003_171e),
            subject: Subject::new(&plan.options, watch)?,
            witness: Witness::default(),
            met: Met::default(),
            stop,
            tape: Some(Tape::new(&plan.options)?),
            books: Books::default(),
            agenda: Agenda::default(),
            now: Instant::ORIGIN,
            clock: Clock::default(),
            watch: None,
            server: Server::new(plan.settings()).map_err(|error| told(&error))?,
            listens: true,
            network: Network::default(),
            uri,
            options,
            kit,
            lines: BTreeMap::new(),
            links: BTreeMap::new(),
            parents: Vec::new(),
            uses: BTreeMap::new(),
            causes: 0,
            trouble: None,
            calm_since: None,
            is_closed: false,
            last_fed: (0, 0),
            served: vec![false; plan.callers as usize],
            #[cfg(test)]
            leak: None,
        };
        world.keep_secrets();
        Ok(world)
    }

    /// Lives through it; `false` if somebody stopped it before its end.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, in words.
    pub(in crate::simulate) fn run(&mut self) -> Result<bool, String> {
        self.begin()?;
        while self.witness.inputs < self.plan.steps && !self.is_stuck() && self.step()? {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        if !self.plan.ends_abruptly {
            self.get_well()?;
        }
        self.end()?;
        self.subject.finish()?;
        self.end_tape().map(|()| true)
    }

    /// Everybody who has a connection keeps it, and everybody else waits without end.
    fn is_stuck(&mut self) -> bool {
        let is_new = self.last_fed.0 != self.witness.inputs;
        let idle = if is_new { 0 } else { self.last_fed.1 + 1 };
        self.last_fed = (self.witness.inputs, idle);
        idle > STUCK
    }

    fn begin(&mut self) -> Result<(), String> {
        for caller in 0..self.plan.callers {
            let after = self.think();
            self.plan_in(after, Due::Ask { caller });
        }
        if !self.plan.troubles.is_empty() {
            let after = self.chance.time(self.plan.trouble_time);
            self.plan_in(after, Due::Trouble);
        }
        self.plan_oddities();
        // Whoever sets up a load balancer says that it is ready.
        if self.plan.is_balanced() { self.feed(Input::Ready) } else { self.begin_watching() }
    }

    /// What happens next; `false` if nothing ever will.
    fn step(&mut self) -> Result<bool, String> {
        let Some((at, turn)) = self.next_turn() else { return Ok(false) };
        self.now = self.now.max(at);
        self.kit.now = self.now;
        match turn {
            Turn::PoolTimer => {
                self.clock.timer_fired(&mut self.met);
                self.feed(Input::Timer)?;
            }
            Turn::MonitorTimer => self.monitor_timer()?,
            Turn::ServerTimer => {
                self.server.timer(self.time_of_server());
                self.settle_server();
            }
            Turn::Agenda => {
                if let Some((_, due)) = self.agenda.pop() {
                    self.happen(due)?;
                }
            }
        }
        self.expect_agreement()?;
        self.witness.verdict().map(|()| true)
    }

    /// Of what comes at the same time, what was planned.
    fn next_turn(&mut self) -> Option<(Instant, Turn)> {
        let planned = self.agenda.next_time().map(|at| (at, Turn::Agenda));
        let server = self.server.next_deadline();
        let server = server.map(|after| (Instant::ORIGIN + after, Turn::ServerTimer));
        let pool = self.pool_timer().map(|at| (at, Turn::PoolTimer));
        let monitor = self.monitor_fires_at().map(|at| (at, Turn::MonitorTimer));
        [planned, server, pool, monitor].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn pool_timer(&mut self) -> Option<Instant> {
        let due = self.subject.pool().next_deadline()?.at;
        let faults = self.time_faults();
        let (chance, met) = (&mut self.chance, &mut self.met);
        Some(self.clock.timer_fires_at(due, self.now, faults, chance, met))
    }

    fn happen(&mut self, due: Due) -> Result<(), String> {
        match due {
            Due::Arrive { link, at } => self.arrive(link, at),
            Due::Ask { caller } => self.ask(caller),
            Due::GiveUp { request } => self.give_up(request),
            Due::Speak { connection, use_number } => self.speak(connection, use_number),
            Due::Silence { connection, use_number, command } => {
                self.silence(connection, use_number, command)
            }
            Due::Finish { connection, use_number } => self.finish(connection, use_number),
            Due::Repurpose { connection, use_number } => self.repurpose(connection, use_number),
            Due::OpeningTimesOut { link } => self.opening_times_out(link),
            Due::Trouble => self.next_trouble(),
            Due::ServicesMove => self.services_move(),
            Due::SetOptions => self.set_options(),
            Due::Fork => self.fork(),
            Due::ParentEnds => self.parent_ends(),
            Due::Misuse => self.misuse(),
        }
    }

    /// Feeds the pool, and does what comes of it.
    fn feed(&mut self, input: Input<Wired>) -> Result<(), String> {
        let at = self.look_at_clock();
        self.witness.inputs += 1;
        self.record(at, &input)?;
        let is_timer = matches!(input, Input::Timer);
        let actions = self.subject.feed(at, input)?;
        if is_timer && actions.iter().filter(|action| is_due(action)).count() > 1 {
            self.met.count(Encounter::TimersMerged);
        }
        for action in actions {
            self.show(&action);
            self.act(action)?;
        }
        self.books.compare(&self.subject.snapshot())
    }

    fn act(&mut self, action: Action<Wired>) -> Result<(), String> {
        match action {
            Action::StartEstablish { id, deadline, background: _ } => {
                self.books.start(id)?;
                self.open(id, deadline);
                Ok(())
            }
            Action::AbortEstablish { id } => self.abort(id),
            Action::Deliver { waiter, outcome } => self.delivered(waiter, &outcome),
            Action::CloseSocket { id, conn } => {
                self.hang_up_connection(id.number());
                self.books.close(id, conn)
            }
            Action::Interrupt { id } => self.interrupted(id),
            Action::ReportLeak { id, held: _ } => {
                self.met.count(Encounter::LeakReport);
                self.books.expect_used(id)
            }
            Action::EmitEvent(_) => Ok(()),
        }
    }

    fn look_at_clock(&mut self) -> Instant {
        if self.is_calm() {
            self.now = self.clock.set(self.now.max(self.subject.pool().now()));
            return self.now;
        }
        self.clock.look(&mut self.now, self.plan.time, &mut self.chance, &mut self.met)
    }

    fn time_faults(&self) -> TimeFaults {
        if self.is_calm() { TimeFaults::default() } else { self.plan.time }
    }

    fn is_calm(&self) -> bool {
        self.calm_since.is_some()
    }

    fn plan_in(&mut self, after: Duration, due: Due) {
        self.agenda.plan(self.now + after, due);
    }

    fn time(&mut self, latency: Latency) -> Duration {
        if self.is_calm() { QUICK } else { self.chance.time(latency) }
    }
}
