//! The client: a topology, and a monitor and a pool for each of its servers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientSettings, SrvPolling};
use cenote_core::connect::{ClientMetadata, Environment, EstablishOptions};
use cenote_core::monitor::{self, Event, Monitor, MonitorOptions};
use cenote_core::pool::{self, Instant};
use cenote_core::topology::{Action, Input, ServerId, Topology, TopologyOptions};
use cenote_core::uri::ConnectionString;
use cenote_core::uri::srv::{SrvAnswers, SrvRecord};

use super::judge::Judge;
use super::plan::{Plan, SRV_HOST};
use super::server::{Server, ServerNumber};
use super::world::{Due, World};
use crate::lockstep::Tagged;
use crate::simulate::coverage::Situation;

/// The machines, and what an embedder keeps beside them.
pub(super) struct Client {
    pub(super) settings: ClientSettings,
    pub(super) monitoring: MonitorOptions,
    pub(super) establish: Arc<EstablishOptions>,
    pub(super) topology: Topology,
    /// Actions of the topology that were not performed yet.
    pub(super) outbox: VecDeque<Action>,
    /// One of them is being performed; the others come after it.
    is_performing: bool,
    pub(super) polling: Option<SrvPolling>,
    /// All that are not gone.
    pub(super) servers: BTreeMap<ServerNumber, Server>,
    /// Those that were not removed.
    pub(super) by_address: BTreeMap<ServerAddress, ServerNumber>,
    added: u64,
    /// Something is known of a server: callers that wait look again.
    pub(super) is_news: bool,
    pub(super) judge: Judge,
}

impl Client {
    pub(super) fn new(plan: &Plan, records: &[String]) -> Result<Self, String> {
        let uri = ConnectionString::parse(&plan.uri()).map_err(|error| error.to_string())?;
        let answers = SrvAnswers { srv: Ok(srv_records(records)), txt: Ok(Vec::new()) };
        let ttl = answers.ttl();
        let uri = match uri.hosts.is_empty() {
            true => uri.resolve(&answers, || 0).map_err(|error| error.to_string())?,
            false => uri,
        };
        let metadata = ClientMetadata::new(None, &Environment::default());
        let metadata = metadata.map_err(|error| error.to_string())?;
        let mut outbox = Vec::new();
        let options = TopologyOptions::new(&uri);
        let mut judge = Judge::new(&options);
        let topology = Topology::new(options, &mut outbox);
        for action in &outbox {
            judge.emitted(action)?;
        }
        judge.compare(topology.description())?;
        Ok(Self {
            settings: ClientSettings::new(&uri),
            monitoring: MonitorOptions::new(&uri, false),
            establish: Arc::new(EstablishOptions::for_client(&metadata).for_monitor()),
            topology,
            outbox: outbox.into(),
            is_performing: false,
            polling: SrvPolling::new(Instant::ORIGIN, &uri, ttl, plan.heartbeat / 2),
            servers: BTreeMap::new(),
            by_address: BTreeMap::new(),
            added: 0,
            is_news: false,
            judge,
        })
    }

    pub(super) fn server(&mut self, number: ServerNumber) -> Option<&mut Server> {
        self.servers.get_mut(&number)
    }

    pub(super) fn server_at(&self, address: &ServerAddress) -> Option<ServerNumber> {
        self.by_address.get(address).copied()
    }
}

/// The composition of the machines, as in `cenote-shell`.
impl World<'_> {
    pub(super) fn feed_topology(&mut self, input: Input) -> Result<(), String> {
        self.inputs += 1;
        let client = &mut self.client;
        let mut actions = Vec::new();
        let (told, about) = (input.clone(), client.judge.subject_of(&input));
        client.topology.handle(input, &mut actions);
        for action in &actions {
            self.coverage.count_topology(action);
            self.story.topology_acts(self.now, action);
            client.judge.emitted(action)?;
        }
        client.judge.follow(&told, about.as_deref(), client.topology.description())?;
        let actions = actions.into_iter();
        let kept = actions.filter(|action| !matches!(action, Action::EmitEvent(_)));
        client.outbox.extend(kept);
        Ok(())
    }

    /// Feeds a monitor. The description of the topology and the pool change under the same lock; then the pool is
    /// cleared, if a connection failed whose verdict says so.
    pub(super) fn feed_monitor(
        &mut self,
        number: ServerNumber,
        input: monitor::Input,
        clear: Option<pool::Input<Tagged>>,
    ) -> Result<(), String> {
        let Some(actions) = self.handle_input(number, input)? else { return Ok(()) };
        let mut others = Vec::new();
        for action in actions {
            match action {
                monitor::Action::MarkReady => self.mark_ready(number)?,
                monitor::Action::ClearPool { cause, interrupt } => {
                    self.expect_failed(number, &cause)?;
                    let cause = self.now.as_nanos();
                    let clear = pool::Input::Clear { cause, interrupt, service: None };
                    self.feed_pool(number, clear)?;
                }
                other @ (monitor::Action::Open { .. }
                | monitor::Action::Send { .. }
                | monitor::Action::Close { .. }
                | monitor::Action::EmitEvent(_)) => others.push(other),
            }
        }
        clear.map_or(Ok(()), |clear| self.feed_pool(number, clear))?;
        // Here the lock is released.
        self.expect_agreement()?;
        for action in others {
            self.perform(number, action)?;
        }
        self.release_topology()
    }

    /// The topology is told of a new description before the pool is fed.
    fn handle_input(
        &mut self,
        number: ServerNumber,
        input: monitor::Input,
    ) -> Result<Option<Vec<monitor::Action>>, String> {
        let faults = self.time_faults();
        let Some(server) = self.client.servers.get_mut(&number) else { return Ok(None) };
        let Some(monitor) = &mut server.monitor else { return Ok(None) };
        let (random, coverage) = (&mut self.random, &mut self.coverage);
        let now = server.monitor_clock.look(&mut self.now, faults, random, coverage);
        self.inputs += 1;
        self.story.monitor_is_fed(now, &server.address, &input);
        let is_timer = matches!(input, monitor::Input::Timer);
        let previous = Arc::clone(monitor.description());
        let mut actions = Vec::new();
        let handled = monitor.handle(now, input, &mut actions);
        handled.map_err(|misuse| format!("the monitor refuses: {misuse}"))?;
        let due = monitor.next_deadline().filter(|deadline| is_timer && deadline.at <= now);
        if let Some(due) = due {
            let reason = due.reason;
            return Err(format!("after the monitor's timer fired, {reason} is still due"));
        }
        let description = Arc::clone(monitor.description());
        if !Arc::ptr_eq(&previous, &description) {
            let id = server.id;
            self.feed_topology(Input::Described { id, description })?;
        }
        Ok(Some(actions))
    }

    fn mark_ready(&mut self, number: ServerNumber) -> Result<(), String> {
        let topology = self.client.topology.description();
        let server = self.client.servers.get(&number);
        match server.is_some_and(|server| topology.is_usable(&server.address)) {
            true => self.feed_pool(number, pool::Input::Ready),
            false => Ok(()),
        }
    }

    fn perform(&mut self, number: ServerNumber, action: monitor::Action) -> Result<(), String> {
        match action {
            monitor::Action::Open { socket, line } => self.open_socket(number, socket, line),
            monitor::Action::Send { socket, command, .. } => {
                self.send(number, socket, command.body())
            }
            monitor::Action::Close { socket } => self.close_socket(number, socket),
            monitor::Action::EmitEvent(event) => {
                self.client.is_news |= event.is_news();
                if let Event::ServerDescriptionChanged { new, .. } = &event {
                    let polling = self.client.polling.as_mut();
                    let kind = new.kind();
                    polling.zip(kind).into_iter().for_each(|(polling, kind)| polling.observe(kind));
                }
                self.check_heartbeats(number, &event)
            }
            monitor::Action::MarkReady | monitor::Action::ClearPool { .. } => Ok(()),
        }
    }

    /// Performs what the topology emitted: at once, or later as another thread does.
    pub(super) fn release_topology(&mut self) -> Result<(), String> {
        if self.client.outbox.is_empty() || self.client.is_performing {
            return Ok(());
        }
        match self.plan.delay.filter(|_| !self.is_recovering && !self.is_closed) {
            Some(delay) => {
                let after = delay.draw(&mut self.random);
                self.plan_once(after, Due::Perform);
                Ok(())
            }
            None => self.perform_all(),
        }
    }

    pub(super) fn perform_all(&mut self) -> Result<(), String> {
        while !self.client.outbox.is_empty() {
            self.perform_next()?;
        }
        Ok(())
    }

    pub(super) fn perform_next(&mut self) -> Result<(), String> {
        self.client.is_performing = true;
        match self.client.outbox.pop_front() {
            Some(Action::AddServer { id, address }) => self.add_server(id, &address)?,
            Some(Action::RemoveServer { id: _, address }) => self.remove_server(&address)?,
            Some(Action::EmitEvent(_)) | None => {}
        }
        self.client.is_performing = false;
        self.client.is_news = true;
        self.expect_agreement()
    }

    fn add_server(&mut self, id: ServerId, address: &Arc<ServerAddress>) -> Result<(), String> {
        self.client.added += 1;
        let number = self.client.added;
        let mut server = Server::new(id, Arc::clone(address), &self.plan.options, self.has_model)?;
        let mut actions = Vec::new();
        if self.client.settings.is_watched {
            let (options, establish) = (self.client.monitoring.clone(), &self.client.establish);
            let monitor = Monitor::new(self.now, options, Arc::clone(establish), &mut actions);
            server.monitor = Some(monitor.map_err(|error| error.to_string())?);
        }
        self.client.servers.insert(number, server);
        if self.client.by_address.insert(ServerAddress::clone(address), number).is_some() {
            return Err(format!("{address} is added twice"));
        }
        if !self.client.settings.is_watched {
            return self.feed_pool(number, pool::Input::Ready);
        }
        actions.into_iter().try_for_each(|action| self.perform(number, action))
    }

    /// Its monitor is closed, and then its pool. Connections in use go on until they are checked in.
    fn remove_server(&mut self, address: &ServerAddress) -> Result<(), String> {
        let removed = self.client.by_address.remove(address);
        let number = removed.ok_or_else(|| format!("{address} is removed, and was not added"))?;
        self.feed_monitor(number, monitor::Input::Close, None)?;
        let Some(server) = self.client.server(number) else { return Ok(()) };
        if !server.sockets.is_empty() {
            return Err(format!("a closed monitor keeps {:?}", server.sockets));
        }
        server.is_removed = true;
        self.feed_pool(number, pool::Input::Close)?;
        self.forget_ended(number)
    }

    /// Forgets a server of which nothing is left.
    pub(super) fn forget_ended(&mut self, number: ServerNumber) -> Result<(), String> {
        let Some(server) = self.client.server(number).filter(|server| server.has_ended()) else {
            return Ok(());
        };
        server.subject.finish()?;
        self.client.servers.remove(&number);
        self.coverage.count(Situation::ServerEnded);
        Ok(())
    }

    /// The SRV records are looked up again; in some worlds in vain.
    pub(super) fn rescan(&mut self) -> Result<(), String> {
        let fails = !self.is_recovering && self.random.one_in(8);
        let answer = srv_records(if fails { &[] } else { &self.cluster.records });
        let hosts: Vec<_> = self.client.by_address.keys().cloned().collect();
        let Some(polling) = &mut self.client.polling else { return Ok(()) };
        let is_due = polling.next_rescan().is_some();
        let changes = polling.rescan(self.now, &hosts, &Ok(answer), || 0);
        if is_due && polling.next_rescan().is_none() {
            return Err("the SRV records are not looked up again".to_owned());
        }
        if let Some(input) = changes.into_input(hosts) {
            self.coverage.count(Situation::HostsChanged);
            self.feed_topology(input)?;
            self.expect_agreement()?;
            self.release_topology()?;
        }
        self.plan_rescan();
        Ok(())
    }

    pub(super) fn plan_rescan(&mut self) {
        let next = self.client.polling.as_ref().and_then(SrvPolling::next_rescan);
        if let Some(next) = next.filter(|_| !self.is_closed) {
            let after = next.saturating_since(self.now);
            self.plan_in(after, Due::Rescan);
        }
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
