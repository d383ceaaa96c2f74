//! A client among the servers of a deployment, in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cenote_core::client::machine::Input;
use cenote_core::monitor::SocketId;
use cenote_core::pool::{self, Instant, WaiterId};
use cenote_core::topology::ServerId;

use super::callers::Caller;
use super::client::Client;
use super::cluster::Cluster;
use super::plan::Plan;
use super::story::Story;
use crate::simulate::TimeFaults;
use crate::simulate::coverage::Coverage;
use crate::simulate::latency::Latency;
use cenote_replay::agenda::Agenda;
use cenote_replay::random::SplitMix;

/// A world. Faults occur until the plan's inputs are used up; then they end, and the client has to see the servers as
/// they are; then it is closed, and nothing may be left.
pub(super) struct World<'a> {
    pub(super) plan: &'a Plan,
    pub(super) random: SplitMix,
    agenda: Agenda<Due>,
    /// What is planned once at a time.
    planned: BTreeSet<Due>,
    pub(super) now: Instant,
    pub(super) coverage: Coverage,
    pub(super) story: Story,
    stop: &'a AtomicBool,
    /// Pools are compared with the reference model.
    pub(super) has_model: bool,
    pub(super) cluster: Cluster,
    /// What waits for a server that is silent.
    pub(super) held: Vec<(usize, Due)>,
    /// The process of each server whose connections are open.
    pub(super) processes: BTreeMap<usize, u64>,
    connections: u64,
    pub(super) client: Client,
    pub(super) callers: Vec<Caller>,
    /// Of all machines.
    pub(super) inputs: u64,
    /// The number of inputs after the previous step, and how many steps had no input since.
    last_progress: (u64, u32),
    /// How many steps there were since time passed.
    steps_at_once: u64,
    /// Servers whose heartbeat has started and not ended.
    pub(super) beating: BTreeSet<ServerId>,
    /// All faults have ended.
    pub(super) is_recovering: bool,
    pub(super) is_closed: bool,
}

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A monitor's request arrives at its server.
    Request { server: ServerId, socket: SocketId, exchange: u64 },
    /// A server that awaits a change answers without one.
    AwaitEnds { server: ServerId, socket: SocketId, exchange: u64 },
    /// A monitoring socket receives something.
    Message { server: ServerId, socket: SocketId },
    /// The time limit for opening a monitoring socket is over.
    SocketTimesOut { server: ServerId, socket: SocketId },
    /// A pooled connection is established, or fails.
    Opened { server: ServerId, connection: u64 },
    /// The time limit for establishing it is over.
    OpeningTimesOut { server: ServerId, connection: u64 },
    /// A caller checks a connection in.
    Finish { server: ServerId, connection: u64, use_number: u64 },
    /// The server closes an idle connection.
    PeerCloses { server: ServerId, connection: u64 },
    /// A caller begins an operation.
    Ask { caller: u32 },
    /// A caller cancels its check-out.
    Cancel { server: ServerId, request: WaiterId },
    /// Another thread performs an action of the topology.
    Perform,
    /// The SRV records are there.
    LookedUp,
    /// Something happens to the servers or the network.
    Change,
    /// A server begins to answer wrongly, or ends that.
    WrongAnswer,
    /// Hosts without a server appear or disappear.
    Churn,
    /// The client's credential is replaced.
    Credential,
    /// Members elect a primary.
    Election,
    /// A primary notices that it is not the primary any more.
    StepDown { node: usize, term: u64 },
}

/// The delay of everything after all faults ended.
pub(super) const FAST: Duration = Duration::from_micros(100);

/// More steps than this while no time passes are a loop.
const MOST_AT_ONCE: u64 = 20_000;

/// So many steps without an input show that none will follow.
const STUCK: u32 = 1_000;

/// What the next step is.
enum Turn {
    Agenda,
    Client,
    Pool(ServerId),
}

impl<'a> World<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        has_model: bool,
        stop: &'a AtomicBool,
    ) -> Result<Self, String> {
        let mut random = SplitMix(plan.seed ^ 0x00de_510f);
        let cluster = Cluster::new(&plan.deployment, &mut random);
        let (client, actions) = Client::new(plan, &cluster.records)?;
        let processes = cluster.nodes.iter().map(|node| node.process).enumerate().collect();
        let mut world = Self {
            plan,
            random,
            agenda: Agenda::default(),
            planned: BTreeSet::new(),
            now: Instant::ORIGIN,
            coverage: Coverage::default(),
            story: Story::default(),
            stop,
            has_model,
            cluster,
            held: Vec::new(),
            processes,
            connections: 0,
            client,
            callers: vec![Caller::default(); plan.callers as usize],
            inputs: 0,
            last_progress: (0, 0),
            steps_at_once: 0,
            beating: BTreeSet::new(),
            is_recovering: false,
            is_closed: false,
        };
        world.take(actions)?;
        Ok(world)
    }

    /// Runs the world; `false` if it was stopped before its end.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub(super) fn run(&mut self) -> Result<bool, String> {
        self.begin()?;
        while self.inputs < self.plan.steps && !self.is_stuck() && self.step()? {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        if !self.plan.ends_abruptly {
            self.recover()?;
        }
        self.end().map(|()| true)
    }

    /// The client has lost all servers, and nothing leads it back.
    fn is_stuck(&mut self) -> bool {
        let (inputs, steps) = self.last_progress;
        self.last_progress =
            if inputs == self.inputs { (inputs, steps + 1) } else { (self.inputs, 0) };
        self.last_progress.1 > STUCK
    }

    fn begin(&mut self) -> Result<(), String> {
        self.perform_all()?;
        for caller in 0..self.plan.callers {
            let after = self.plan.think.draw(&mut self.random);
            self.plan_in(after, Due::Ask { caller });
        }
        if !self.plan.changes.is_empty() {
            let after = self.plan.change_time.draw(&mut self.random);
            self.plan_in(after, Due::Change);
        }
        if !self.plan.wrong_answers.is_empty() {
            let after = self.plan.change_time.draw(&mut self.random);
            self.plan_in(after, Due::WrongAnswer);
            self.answer_wrongly_from_the_start();
        }
        if let Some(every) = self.plan.churn_every {
            self.plan_in(every, Due::Churn);
        }
        if let Some(every) = self.plan.credential_every {
            self.plan_in(every, Due::Credential);
        }
        Ok(())
    }

    /// In half of the worlds half of the servers have never answered otherwise.
    fn answer_wrongly_from_the_start(&mut self) {
        if self.random.flip() {
            for node in 0..self.cluster.nodes.len() {
                if self.random.flip() {
                    self.toggle_wrong_answer(node);
                }
            }
        }
    }

    /// Does what is due next; `false` if nothing is.
    pub(super) fn step(&mut self) -> Result<bool, String> {
        let planned = self.agenda.next_time().map(|at| (at, Turn::Agenda));
        let timers = self.next_timer();
        // At the same time, planned events come first.
        let next = planned.into_iter().chain(timers).min_by_key(|(at, _)| *at);
        let Some((at, turn)) = next else { return Ok(false) };
        self.steps_at_once = if at > self.now { 0 } else { self.steps_at_once + 1 };
        if self.steps_at_once > MOST_AT_ONCE {
            return Err(format!("more than {MOST_AT_ONCE} steps at once"));
        }
        self.now = self.now.max(at);
        match turn {
            Turn::Agenda => {
                if let Some((_, due)) = self.agenda.pop() {
                    self.planned.remove(&due);
                    self.happen(due)?;
                }
            }
            Turn::Client => {
                self.client.clock.timer_fired(&mut self.coverage);
                self.feed_client(Input::Timer)?;
            }
            Turn::Pool(server) => {
                let its = self.client.servers.get_mut(&server);
                its.into_iter().for_each(|it| it.pool_clock.timer_fired(&mut self.coverage));
                self.feed_pool(server, pool::Input::Timer)?;
                self.forget_ended(server)?;
            }
        }
        self.expect_fresh()?;
        Ok(true)
    }

    /// Timers fire on time, late, or early.
    fn next_timer(&mut self) -> Option<(Instant, Turn)> {
        let (faults, now) = (self.time_faults(), self.now);
        let (random, coverage) = (&mut self.random, &mut self.coverage);
        let due = self.client.state.next_deadline();
        let mut next = due.map(|due| {
            let clock = &mut self.client.clock;
            (clock.timer_fires_at(due, now, faults, random, coverage), Turn::Client)
        });
        for (number, server) in &mut self.client.servers {
            let due = server.subject.pool().next_deadline();
            let pool = due.map(|due| {
                let clock = &mut server.pool_clock;
                (clock.timer_fires_at(due.at, now, faults, random, coverage), Turn::Pool(*number))
            });
            next = next.into_iter().chain(pool).min_by_key(|(at, _)| *at);
        }
        next
    }

    fn happen(&mut self, due: Due) -> Result<(), String> {
        match due {
            Due::Request { server, socket, exchange } => {
                self.request_arrives(server, socket, exchange)
            }
            Due::AwaitEnds { server, socket, exchange } => {
                self.await_ends(server, socket, exchange);
                Ok(())
            }
            Due::Message { server, socket } => self.message_arrives(server, socket),
            Due::SocketTimesOut { server, socket } => self.socket_times_out(server, socket),
            Due::Opened { server, connection } => self.opened(server, connection),
            Due::OpeningTimesOut { server, connection } => {
                self.opening_times_out(server, connection)
            }
            Due::Finish { server, connection, use_number } => {
                self.finish(server, connection, use_number)
            }
            Due::PeerCloses { server, connection } => self.peer_closes(server, connection),
            Due::Ask { caller } => self.ask(caller),
            Due::Cancel { server, request } => self.cancel(server, request),
            Due::Perform => {
                self.client.last_late = self.now;
                self.perform_all()
            }
            Due::LookedUp => self.looked_up(),
            Due::Change => self.happened(Self::next_change),
            Due::WrongAnswer => self.happened(Self::next_wrong_answer),
            Due::Churn => self.happened(Self::churn),
            Due::Credential => self.replace_credential(),
            Due::Election => self.happened(|world| {
                if world.cluster.needs_election() {
                    world.cluster.elect(&mut world.random);
                    world.after_change();
                }
            }),
            Due::StepDown { node, term } => self.happened(|world| {
                if world.cluster.outdated_primaries().contains(&(node, term)) {
                    world.cluster.step_down(node, term);
                }
                world.after_change();
            }),
        }
    }

    fn happened(&mut self, what: impl FnOnce(&mut Self)) -> Result<(), String> {
        what(self);
        Ok(())
    }

    pub(super) fn plan_in(&mut self, after: Duration, due: Due) {
        self.agenda.plan(self.now + after, due);
    }

    /// The same, unless it is planned already.
    pub(super) fn plan_once(&mut self, after: Duration, due: Due) {
        if self.planned.insert(due) {
            self.plan_in(after, due);
        }
    }

    pub(super) fn time(&mut self, latency: Latency) -> Duration {
        if self.is_recovering { FAST } else { latency.draw(&mut self.random) }
    }

    pub(super) fn time_faults(&self) -> TimeFaults {
        if self.is_recovering { TimeFaults::default() } else { self.plan.time }
    }

    /// How a server calls its next connection.
    pub(super) fn next_connection(&mut self) -> u64 {
        self.connections += 1;
        self.connections
    }
}
