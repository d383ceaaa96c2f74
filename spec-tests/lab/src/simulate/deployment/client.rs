//! The client: its machine, and the pools that the machine feeds.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::client::machine::{
    Action, ClientOptions, ClientState, Event, Input, PoolChange, SelectionId,
};
use cenote_core::client::{ClientSettings, SrvPolling};
use cenote_core::connect::{ClientMetadata, Environment, EstablishOptions};
use cenote_core::monitor::MonitorOptions;
use cenote_core::pool::{self, Instant};
use cenote_core::topology::{self, ServerId, TopologyOptions};
use cenote_core::uri::ConnectionString;
use cenote_core::uri::srv::{SrvAnswers, SrvRecord};

use super::judge::Judge;
use super::plan::{Plan, SRV_HOST};
use super::server::Server;
use super::world::{Due, World};
use crate::simulate::clock::Clock;
use crate::simulate::coverage::Situation;

/// Which attempt of which caller.
pub(super) type Attempt = (u32, u64);

/// The machine, and what an embedder keeps beside it.
pub(super) struct Client {
    pub(super) settings: ClientSettings,
    pub(super) establish: Arc<EstablishOptions>,
    pub(super) state: ClientState<Attempt>,
    pub(super) clock: Clock,
    /// Actions that were not performed yet: another thread may do so.
    pub(super) outbox: VecDeque<Action<Attempt>>,
    /// One of them is being performed; the others come after it.
    is_performing: bool,
    /// When actions were last performed late, as by another thread.
    pub(super) last_late: Instant,
    /// All whose pools were made, until nothing of them is left.
    pub(super) servers: BTreeMap<ServerId, Server>,
    /// Those whose pools were not closed.
    pub(super) by_address: BTreeMap<ServerAddress, ServerId>,
    last_selection: u64,
    pub(super) judge: Judge,
}

impl Client {
    /// The machine, and the actions with which it begins.
    pub(super) fn new(
        plan: &Plan,
        records: &[String],
    ) -> Result<(Self, Vec<Action<Attempt>>), String> {
        let uri = ConnectionString::parse(&plan.uri()).map_err(|error| error.to_string())?;
        let answers = SrvAnswers { srv: Ok(srv_records(records)), txt: Ok(Vec::new()) };
        let ttl = answers.ttl();
        let uri = match uri.hosts.is_empty() {
            true => uri.resolve(&answers, || 0).map_err(|error| error.to_string())?,
            false => uri,
        };
        let metadata = ClientMetadata::new(None, &Environment::default());
        let metadata = metadata.map_err(|error| error.to_string())?;
        let establish = Arc::new(EstablishOptions::for_client(&metadata).for_monitor());
        let settings = ClientSettings::new(&uri);
        let options = ClientOptions {
            topology: TopologyOptions::new(&uri),
            settings: settings.clone(),
            monitoring: MonitorOptions::new(&uri, false),
            establish: Arc::clone(&establish),
            polling: SrvPolling::new(Instant::ORIGIN, &uri, ttl, plan.heartbeat / 2),
        };
        let judge = Judge::new(&options.topology);
        let mut actions = Vec::new();
        let state = ClientState::new(Instant::ORIGIN, options, &mut actions);
        let client = Self {
            settings,
            establish,
            state: state.map_err(|error| error.to_string())?,
            clock: Clock::default(),
            outbox: VecDeque::new(),
            is_performing: false,
            last_late: Instant::ORIGIN,
            servers: BTreeMap::new(),
            by_address: BTreeMap::new(),
            last_selection: 0,
            judge,
        };
        Ok((client, actions))
    }

    pub(super) fn server(&mut self, id: ServerId) -> Option<&mut Server> {
        self.servers.get_mut(&id)
    }

    pub(super) fn server_at(&self, address: &ServerAddress) -> Option<ServerId> {
        self.by_address.get(address).copied()
    }

    pub(super) fn next_selection(&mut self) -> SelectionId {
        self.last_selection += 1;
        SelectionId(self.last_selection)
    }

    /// Whether actions wait to be performed.
    pub(super) fn is_late(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Whether the SRV records are looked up again.
    pub(super) fn is_polled(&self) -> bool {
        self.state.polling().is_some_and(|polling| polling.next_rescan().is_some())
    }
}

/// What an embedder does.
impl World<'_> {
    pub(super) fn feed_client(&mut self, input: Input<Attempt>) -> Result<(), String> {
        let faults = self.time_faults();
        let (random, coverage) = (&mut self.random, &mut self.coverage);
        let now = self.client.clock.look(&mut self.now, faults, random, coverage);
        self.inputs += 1;
        self.story.client_is_fed(now, &input);
        let is_timer = matches!(input, Input::Timer);
        let mut actions = Vec::new();
        let handled = self.client.state.handle(now, input, &mut actions);
        handled.map_err(|misuse| misuse.to_string())?;
        if is_timer && self.client.state.next_deadline().is_some_and(|due| due <= now) {
            return Err("after the client's timer fired, something is still due".to_owned());
        }
        self.take(actions)
    }

    /// What is done under the client's lock: pools are fed, and events get their order. The rest waits in the outbox.
    pub(super) fn take(&mut self, actions: Vec<Action<Attempt>>) -> Result<(), String> {
        let mut about = Vec::new();
        for action in actions {
            match action {
                Action::FeedPool { server, change, .. } => self.change_pool(server, change)?,
                Action::EmitEvent(event) => about.extend(self.told(event)?),
                Action::OpenPool { .. }
                | Action::ClosePool { .. }
                | Action::OpenSocket { .. }
                | Action::Send { .. }
                | Action::CloseSocket { .. }
                | Action::LookUp { .. }
                | Action::Deliver { .. }
                | Action::ReportRecords(_) => {
                    self.announce(&action)?;
                    self.client.outbox.push_back(action);
                }
            }
        }
        self.client.judge.follow(&about, self.client.state.description())?;
        // Here the lock is released.
        self.expect_agreement()?;
        self.release()
    }

    /// Returns the server that the topology was told of.
    fn told(&mut self, event: Event) -> Result<Option<Arc<ServerAddress>>, String> {
        match event {
            Event::Heartbeat { server, address, event } => {
                self.check_heartbeats(server, &address, &event)?;
                Ok(None)
            }
            Event::Topology(event) => {
                self.topology_acts(&topology::Action::EmitEvent(event))?;
                Ok(None)
            }
            Event::ToTopology(input) => {
                if matches!(input, topology::Input::Hosts { .. }) {
                    self.coverage.count(Situation::HostsChanged);
                }
                Ok(self.client.judge.feed(&input))
            }
        }
    }

    /// Servers that come and go, and selections, are judged when they are decided, be they performed later.
    fn announce(&mut self, action: &Action<Attempt>) -> Result<(), String> {
        match action {
            Action::OpenPool { server, address, .. } => {
                let (id, address) = (*server, Arc::clone(address));
                self.topology_acts(&topology::Action::AddServer { id, address })
            }
            Action::ClosePool { server, address } => {
                let (id, address) = (*server, Arc::clone(address));
                self.topology_acts(&topology::Action::RemoveServer { id, address })
            }
            Action::Deliver { waiter, outcome } => self.expect_selected(*waiter, outcome),
            Action::OpenSocket { .. }
            | Action::Send { .. }
            | Action::CloseSocket { .. }
            | Action::LookUp { .. }
            | Action::FeedPool { .. }
            | Action::EmitEvent(_)
            | Action::ReportRecords(_) => Ok(()),
        }
    }

    fn topology_acts(&mut self, action: &topology::Action) -> Result<(), String> {
        self.coverage.count_topology(action);
        self.story.topology_acts(self.now, action);
        self.client.judge.emitted(action)
    }

    fn change_pool(&mut self, server: ServerId, change: PoolChange) -> Result<(), String> {
        match change {
            PoolChange::Ready => {
                self.client.judge.made_ready(server)?;
                self.feed_pool(server, pool::Input::Ready)
            }
            PoolChange::Clear { cause, interrupt, service } => {
                if service.is_none() {
                    self.expect_failed(server, &cause)?;
                }
                let cause = self.now.as_nanos();
                self.feed_pool(server, pool::Input::Clear { cause, interrupt, service })
            }
            PoolChange::MinRoundTrip(time) => {
                if let Some(server) = self.client.server(server) {
                    server.min_round_trip = Some(time);
                }
                Ok(())
            }
        }
    }

    /// Performs what waits in the outbox: at once, or later as another thread does.
    pub(super) fn release(&mut self) -> Result<(), String> {
        if self.client.outbox.is_empty() || self.client.is_performing {
            return Ok(());
        }
        let changes_servers = |action: &Action<Attempt>| {
            matches!(action, Action::OpenPool { .. } | Action::ClosePool { .. })
        };
        let is_delayed = self.client.outbox.iter().any(changes_servers);
        match self.plan.delay.filter(|_| is_delayed && !self.is_recovering && !self.is_closed) {
            Some(delay) => {
                let after = delay.draw(&mut self.random);
                self.plan_once(after, Due::Perform);
                Ok(())
            }
            None => self.perform_all(),
        }
    }

    pub(super) fn perform_all(&mut self) -> Result<(), String> {
        while !self.client.is_performing && !self.client.outbox.is_empty() {
            self.perform_next()?;
        }
        Ok(())
    }

    fn perform_next(&mut self) -> Result<(), String> {
        let Some(action) = self.client.outbox.pop_front() else { return Ok(()) };
        self.client.is_performing = true;
        let performed = self.perform(action);
        self.client.is_performing = false;
        performed?;
        self.expect_agreement()
    }

    fn perform(&mut self, action: Action<Attempt>) -> Result<(), String> {
        match action {
            Action::OpenPool { server, address, is_ready } => {
                self.open_pool(server, &address, is_ready)
            }
            Action::ClosePool { server, address } => self.close_pool(server, &address),
            Action::OpenSocket { server, socket, line } => self.open_socket(server, socket, line),
            Action::Send { server, socket, command, .. } => {
                self.send(server, socket, command.body())
            }
            Action::CloseSocket { server, socket } => self.close_socket(server, socket),
            Action::LookUp { .. } => {
                self.plan_in(self.plan.heartbeat / 10, Due::LookedUp);
                Ok(())
            }
            Action::Deliver { waiter, outcome } => self.selected(waiter, outcome.ok()),
            Action::FeedPool { .. } | Action::EmitEvent(_) | Action::ReportRecords(_) => Ok(()),
        }
    }

    fn open_pool(
        &mut self,
        id: ServerId,
        address: &Arc<ServerAddress>,
        is_ready: bool,
    ) -> Result<(), String> {
        let server = Server::new(id, Arc::clone(address), &self.plan.options, self.has_model)?;
        self.client.servers.insert(id, server);
        if self.client.by_address.insert(ServerAddress::clone(address), id).is_some() {
            return Err(format!("{address} is added twice"));
        }
        if is_ready { self.feed_pool(id, pool::Input::Ready) } else { Ok(()) }
    }

    /// Its monitor is closed by now. Connections in use go on until they are checked in.
    fn close_pool(&mut self, id: ServerId, address: &ServerAddress) -> Result<(), String> {
        if self.client.by_address.remove(address) != Some(id) {
            return Err(format!("{address} is removed, and was not added"));
        }
        let Some(server) = self.client.server(id) else { return Ok(()) };
        if !server.sockets.is_empty() {
            return Err(format!("a closed monitor keeps {:?}", server.sockets));
        }
        server.is_removed = true;
        self.feed_pool(id, pool::Input::Close)?;
        self.forget_ended(id)
    }

    /// Monitors do not authenticate, and go on; the connections of each pool retire.
    pub(super) fn replace_credential(&mut self) -> Result<(), String> {
        let Some(every) = self.plan.credential_every.filter(|_| !self.is_recovering) else {
            return Ok(());
        };
        self.plan_in(every, Due::Credential);
        self.coverage.count(Situation::CredentialReplaced);
        let servers: Vec<_> = self.client.by_address.values().copied().collect();
        servers.into_iter().try_for_each(|id| self.feed_pool(id, pool::Input::RetireConnections))
    }

    /// Forgets a server of which nothing is left.
    pub(super) fn forget_ended(&mut self, id: ServerId) -> Result<(), String> {
        let Some(server) = self.client.server(id).filter(|server| server.has_ended()) else {
            return Ok(());
        };
        server.subject.finish()?;
        self.client.servers.remove(&id);
        self.coverage.count(Situation::ServerEnded);
        Ok(())
    }

    /// The SRV records are there; in some worlds none.
    pub(super) fn looked_up(&mut self) -> Result<(), String> {
        let fails = !self.is_recovering && self.random.one_in(8);
        let records = Ok(srv_records(if fails { &[] } else { &self.cluster.records }));
        let was_polled = self.client.is_polled();
        self.feed_client(Input::LookedUp { records, draw: 0 })?;
        if was_polled && !self.client.is_polled() && !self.is_closed {
            return Err("the SRV records are not looked up again".to_owned());
        }
        Ok(())
    }
}

fn srv_records(hosts: &[String]) -> Vec<SrvRecord> {
    debug_assert!(SRV_HOST.ends_with("example.com"), "the domain of all hosts");
    let record = |host: &String| {
        let name = host.split(':').next().unwrap_or_default();
        SrvRecord::new(name, ServerAddress::DEFAULT_PORT).with_ttl(std::time::Duration::ZERO)
    };
    hosts.iter().map(record).collect()
}
