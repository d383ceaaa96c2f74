//! A client of one or many servers as one state machine: the topology, a monitor for each server, the polling of SRV
//! records, and server selection with the callers that wait.
//!
//! ```text
//!   inputs: sockets of monitors, failed connections, records, SelectServer, Timer, Close
//!       │
//!   ┌───▼─────────────┐  Topology: which servers there are, and what is known of each
//!   │ ClientState     │  Monitor: one for each server
//!   └───┬─────────────┘  SrvPolling; requests for a server
//!       ▼
//!   actions: OpenPool, FeedPool, ClosePool, OpenSocket, Send, CloseSocket, LookUp, Deliver, EmitEvent
//! ```
//!
//! The pools are outside: a check-out needs no lock but that of its pool. The embedder feeds a pool
//! ([`Action::FeedPool`]) under the client's lock, which is taken before the pool's and never after it.
//!
//! The loop of a whole client, for one thread; `cenote-shell` does the same for many:
//!
//! ```
//! use std::error::Error;
//! use std::sync::Arc;
//!
//! use cenote_core::client::machine::{Action, ClientOptions, ClientState, Input};
//! use cenote_core::client::ClientSettings;
//! use cenote_core::connect::{ClientMetadata, Environment, EstablishOptions};
//! use cenote_core::monitor::MonitorOptions;
//! use cenote_core::pool::Instant;
//! use cenote_core::topology::TopologyOptions;
//! use cenote_core::uri::ConnectionString;
//!
//! type Caller = u32;
//!
//! /// What a driver brings: clock, sockets, pools, callers.
//! trait Driver {
//!     fn now(&self) -> Instant;
//!     /// The next thing that happens to a socket or a caller, or [`Input::Timer`] at the deadline.
//!     fn next_input(&mut self, deadline: Option<Instant>) -> Input<Caller>;
//!     /// Opens and closes pools and sockets, sends, answers callers, tells subscribers.
//!     fn perform(&mut self, action: Action<Caller>);
//! }
//!
//! fn run(uri: &str, driver: &mut impl Driver) -> Result<(), Box<dyn Error>> {
//!     let (uri, here) = (ConnectionString::parse(uri)?, Environment::default());
//!     let establish = EstablishOptions::for_client(&ClientMetadata::new(None, &here)?);
//!     let options = ClientOptions {
//!         topology: TopologyOptions::new(&uri),
//!         settings: ClientSettings::new(&uri),
//!         monitoring: MonitorOptions::new(&uri, here.is_faas()),
//!         establish: Arc::new(establish.for_monitor()),
//!         polling: None,
//!     };
//!     let mut actions = Vec::new();
//!     let mut client = ClientState::new(driver.now(), options, &mut actions)?;
//!     loop {
//!         actions.drain(..).for_each(|action| driver.perform(action));
//!         let input = driver.next_input(client.next_deadline());
//!         let is_last = matches!(input, Input::Close);
//!         client.handle(driver.now(), input, &mut actions).map_err(|misuse| misuse.reason)?;
//!         if is_last {
//!             actions.drain(..).for_each(|action| driver.perform(action));
//!             return Ok(());
//!         }
//!     }
//! }
//! ```

mod action;
mod input;
mod inspect;
mod members;
mod misuse;
mod newcomers;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::members::{Member, sort};
use self::newcomers::Newcomers;
use self::requests::Requests;
use super::{ClientSettings, SrvPolling};
use crate::address::ServerAddress;
use crate::connect::EstablishOptions;
use crate::monitor::{self, InvalidMonitorOptions, MonitorOptions, SocketInput};
use crate::pool::{Instant, mix};
use crate::topology::{self, ServerId, Topology, TopologyDescription, TopologyOptions};
use crate::trace::topology::Recorder;
use crate::uri::srv::{LookupError, SrvRecord};

pub use self::action::{Action, ActionSink, Chosen, Event, PoolChange};
pub use self::input::{Input, Request, SelectionId};
pub use self::inspect::ClientSnapshot;
pub use self::misuse::{Misuse, MisuseReason};

/// What a client is made of.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The hosts, and what is wanted of them.
    pub topology: TopologyOptions,
    /// How long is waited.
    pub settings: ClientSettings,
    /// How servers are watched.
    pub monitoring: MonitorOptions,
    /// What the monitors' hello says.
    pub establish: Arc<EstablishOptions>,
    /// When SRV records are looked up again; `None`: never.
    pub polling: Option<SrvPolling>,
}

/// The machine. `W` is what the embedder calls a caller that waits for a server.
#[derive(Debug)]
pub struct ClientState<W> {
    settings: ClientSettings,
    monitoring: MonitorOptions,
    establish: Arc<EstablishOptions>,
    topology: Recorder,
    members: BTreeMap<ServerId, Member>,
    by_address: BTreeMap<Arc<ServerAddress>, ServerId>,
    /// When monitors want to be woken.
    due: BTreeSet<(Instant, ServerId)>,
    polling: Option<SrvPolling>,
    /// Records are being looked up.
    is_asking: bool,
    requests: Requests<W>,
    /// `None`: the hosts of the connection string are being added, which do not count.
    newcomers: Option<Newcomers>,
    /// When a server was last removed.
    last_removal: Instant,
    /// Callers that wait look again.
    is_news: bool,
    now: Instant,
    is_closed: bool,
}

impl<W> ClientState<W> {
    /// Adds the hosts of the connection string, and begins to check them.
    ///
    /// # Errors
    ///
    /// Options that contradict each other.
    // SE-04, SE-11, ST-02
    pub fn new(
        now: Instant,
        options: ClientOptions,
        out: &mut impl ActionSink<W>,
    ) -> Result<Self, InvalidMonitorOptions> {
        let ClientOptions { topology, settings, monitoring, establish, polling } = options;
        if settings.is_watched {
            monitoring.validate()?;
            if establish.load_balanced {
                return Err(InvalidMonitorOptions::LoadBalanced);
            }
        }
        let mut changes = Vec::new();
        let topology = Topology::new(topology, &mut |action| sort(action, &mut changes, out));
        let mut client = Self {
            settings,
            monitoring,
            establish,
            topology: Recorder::new(topology),
            members: BTreeMap::new(),
            by_address: BTreeMap::new(),
            due: BTreeSet::new(),
            polling,
            is_asking: false,
            requests: Requests::default(),
            newcomers: None,
            last_removal: now,
            is_news: false,
            now,
            is_closed: false,
        };
        client.change_members(changes, out);
        client.newcomers = Some(Newcomers::none(now));
        Ok(client)
    }

    /// Takes one input, and emits what follows from it.
    ///
    /// # Errors
    ///
    /// An input that makes no sense. Nothing changes then.
    pub fn handle(
        &mut self,
        now: Instant,
        input: Input<W>,
        out: &mut impl ActionSink<W>,
    ) -> Result<(), Misuse<W>> {
        match self.permit(&input) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(reason) => return Err(Misuse { input, reason }),
        }
        self.now = self.now.max(now);
        match input {
            Input::SocketOpened { server, socket, hello, round_trip } => {
                self.feed_monitor(
                    server,
                    monitor::Input::Opened { socket, hello, round_trip },
                    None,
                    out,
                );
            }
            Input::SocketReplied { server, socket, reply, more_to_come } => {
                self.feed_monitor(
                    server,
                    monitor::Input::Replied { socket, reply, more_to_come },
                    None,
                    out,
                );
            }
            Input::SocketFailed { server, socket, error } => {
                self.feed_monitor(server, monitor::Input::Failed { socket, error }, None, out);
            }
            Input::ConnectionFailed { server, error, is_current, service } => {
                self.connection_failed(server, error, is_current, service, out);
            }
            Input::LookedUp { records, draw } => self.follow_records(&records, draw, out),
            Input::SelectServer(request) => self.select_server(request, out),
            Input::SelectionTimedOut { id } => self.fail_if_late(id, out),
            Input::CancelSelection { id } => self.cancel_selection(id),
            Input::RequestChecks => self.request_checks(out),
            Input::Timer => {
                self.wake_monitors(out);
                self.look_records_up(out);
                self.ask_excluded_again(out);
                self.fail_late_requests(out);
            }
            Input::Close => self.close(out),
        }
        self.follow_news(out);
        Ok(())
    }

    /// When to feed [`Input::Timer`] next: at this point or soon after.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let monitors = self.due.first().map(|(at, _)| *at);
        let records = self.next_look_up();
        let excluded = self.next_look_at_excluded();
        let others = records.into_iter().chain(excluded).chain(self.requests.next_deadline());
        monitors.into_iter().chain(others).min()
    }

    /// What is known of the deployment.
    #[must_use]
    pub fn description(&self) -> &Arc<TopologyDescription> {
        self.topology.description()
    }

    /// What records the inputs of the topology.
    #[must_use]
    pub const fn recorder(&self) -> &Recorder {
        &self.topology
    }

    /// The same, to take what was recorded.
    pub const fn recorder_mut(&mut self) -> &mut Recorder {
        &mut self.topology
    }

    /// The same client, whose topology is recorded.
    #[must_use]
    pub fn map_recorder(self, change: impl FnOnce(Recorder) -> Recorder) -> Self {
        Self { topology: change(self.topology), ..self }
    }

    /// When the SRV records are looked up again, if they are.
    #[must_use]
    pub const fn polling(&self) -> Option<&SrvPolling> {
        self.polling.as_ref()
    }

    /// How many callers wait for a server.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.requests.len()
    }

    /// Looked at before anything changes. `Ok(false)` is for inputs to ignore.
    fn permit(&self, input: &Input<W>) -> Result<bool, MisuseReason> {
        match input {
            Input::SocketOpened { server, socket, .. } => {
                self.permit_socket(*server, *socket, SocketInput::Opened)
            }
            Input::SocketReplied { server, socket, .. } => {
                self.permit_socket(*server, *socket, SocketInput::Replied)
            }
            Input::SocketFailed { server, socket, .. } => {
                self.permit_socket(*server, *socket, SocketInput::Failed)
            }
            Input::ConnectionFailed { server, .. } => self.permit_server(*server),
            Input::SelectServer(Request { id, .. }) if *id <= self.requests.last => {
                Err(MisuseReason::NotIncreasing { id: *id, last: self.requests.last })
            }
            Input::LookedUp { .. } if !self.is_asking => Err(MisuseReason::NotAsked),
            Input::LookedUp { .. }
            | Input::SelectServer(_)
            | Input::SelectionTimedOut { .. }
            | Input::CancelSelection { .. }
            | Input::RequestChecks
            | Input::Timer
            | Input::Close => Ok(true),
        }
    }

    /// Hosts that were found not to be part of the deployment may be by now: a standalone server that was made a member,
    /// one whose set has its name again. They are asked while a caller waits and no other server is known.
    fn ask_excluded_again(&mut self, out: &mut impl ActionSink<W>) {
        if self.next_look_at_excluded().is_some_and(|at| at <= self.now) {
            let topology = self.topology.description();
            let excluded = topology.excluded().map(|(address, _)| address);
            let hosts = topology.servers().map(|(address, _)| address).chain(excluded);
            let hosts = hosts.map(|address| (**address).clone()).collect();
            let changes = self.feed_topology(topology::Input::Hosts { hosts }, out);
            self.change_members(changes, out);
        }
    }

    fn next_look_at_excluded(&self) -> Option<Instant> {
        let is_wanted = self.requests.len() > 0 && self.topology.description().is_lost();
        is_wanted.then(|| self.last_removal + MonitorOptions::MIN_HEARTBEAT_FREQUENCY)
    }

    // SV-12
    fn look_records_up(&mut self, out: &mut impl ActionSink<W>) {
        if self.next_look_up().is_some_and(|at| at <= self.now) {
            self.is_asking = true;
            let name = self.polling.as_ref().map(SrvPolling::srv_name).unwrap_or_default();
            out.act(Action::LookUp { name });
        }
    }

    fn next_look_up(&self) -> Option<Instant> {
        if self.is_asking || self.is_closed {
            return None;
        }
        self.polling.as_ref().and_then(SrvPolling::next_rescan)
    }

    // SV-12, SV-13, SV-15
    fn follow_records(
        &mut self,
        records: &Result<Vec<SrvRecord>, LookupError>,
        draw: u64,
        out: &mut impl ActionSink<W>,
    ) {
        self.is_asking = false;
        let Some(polling) = &mut self.polling else { return };
        let hosts: Vec<_> = self.by_address.keys().map(|address| (**address).clone()).collect();
        let mut drawn = draw;
        let random = || {
            drawn = mix(drawn);
            drawn
        };
        let changes = polling.rescan(self.now, &hosts, records, random);
        for problem in &changes.problems {
            out.act(Action::ReportRecords(problem.clone()));
        }
        if let Some(input) = changes.into_input(hosts) {
            let changes = self.feed_topology(input, out);
            self.change_members(changes, out);
        }
    }

    /// First callers that wait hear of it, then the monitors end, then the pools are closed.
    // SD-10, ND-09, SE-05
    fn close(&mut self, out: &mut impl ActionSink<W>) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        self.fail_all_requests(out);
        // Records that are on their way change nothing.
        self.polling = None;
        let members: Vec<_> = self.servers().map(|(id, it)| (id, Arc::clone(it))).collect();
        members.iter().for_each(|(id, _)| self.close_monitor(*id, out));
        for (id, address) in members {
            self.forget_member(id, address, out);
        }
        self.feed_topology(topology::Input::Close, out);
    }
}
