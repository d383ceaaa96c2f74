use std::path::Path;
use std::sync::Arc;
#[cfg(feature = "srv")]
use std::sync::Mutex;
use std::time::Instant;
use std::{fmt, mem};

use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientSettings, Hosts, ServerStatus};
use cenote_core::connect::DriverInfo;
use cenote_core::error::ConnectionError;
use cenote_core::pool;
use cenote_core::topology::{Input, TopologyDescription, TopologyOptions};
use cenote_core::uri::Credential;

use super::discovery::Discovery;
#[cfg(feature = "srv")]
use super::polling::Poller;
use super::servers::{ServerList, Servers};
use super::{ClientBuildError, ClientPlan, DEFAULT_SERVER_EVENT_QUEUE, Server};
use crate::builder::{BuildError, BuiltPool};
use crate::connection::MongoConnector;
#[cfg(unix)]
use crate::inspect::Inspector;
use crate::monitor::{MonitorDriver, MonitorShared, TopologyDriver};
#[cfg(feature = "srv")]
use crate::runtime::Lock;
use crate::runtime::Network;
use crate::runtime::origin::Origin;
use crate::runtime::signal::Signal;
use crate::trace::{self, RecordingError, dump_each};

/// The servers of a client: a pool and a monitor each. Dropping it [closes](Self::close_at_once) it.
///
/// [`Client`](super::Client) is its asynchronous face. A face that blocks uses it directly: it waits with
/// [`wait_for_server_blocking`](Self::wait_for_server_blocking), and checks connections out of the
/// [pool](Server::pool) as it likes.
pub struct ClientInner<R: Network> {
    pub(super) servers: Arc<Servers<R>>,
    pub(super) settings: ClientSettings,
    pub(super) shared: Arc<MonitorShared<R>>,
    /// Looks the SRV records up again.
    #[cfg(feature = "srv")]
    polling: Mutex<Option<R::Task>>,
}

impl<R: Network> ClientInner<R> {
    /// Builds a pool for each host of the connection string, and starts the monitors.
    ///
    /// # Errors
    ///
    /// Options that contradict each other, or a folder for traces that cannot be created. Then nothing is left
    /// running.
    // OP-12, PCR-01, ND-01, ST-02
    pub fn start<P>(mut plan: ClientPlan<P>, runtime: R) -> Result<Self, ClientBuildError>
    where
        P: BuiltPool<Connector = MongoConnector<R>> + 'static,
    {
        let settings = plan.settings()?;
        let origin = Origin::new(R::now());
        let topology = TopologyDriver::new(
            TopologyOptions::new(&plan.uri),
            plan.log,
            mem::take(&mut plan.sdam_subscribers),
            plan.event_queue.unwrap_or(DEFAULT_SERVER_EVENT_QUEUE),
            plan.tracing.of_topology().map_err(BuildError::from)?,
            R::PROGRAM,
            (pool::Instant::ORIGIN, origin),
        );
        let topology = topology.map_err(BuildError::from)?;
        plan.tracing.each.beside = Some(trace::beside(&topology));
        let shared = Arc::new(MonitorShared {
            runtime,
            topology,
            connector: plan.connector.clone(),
            options: plan.monitoring.clone(),
            establish: plan.connector.monitor_options(),
            news: Signal::default(),
            #[cfg(feature = "srv")]
            srv: Mutex::new(None),
            origin,
        });
        let hosts = Hosts::new(&plan.uri.hosts);
        let servers = hosts.all().iter().map(|address| Server::build(&plan, &shared, address));
        let servers = ServerList::new(servers.collect::<Result<_, ClientBuildError>>()?);
        #[cfg(unix)]
        let inspector = match &plan.inspect {
            Some(path) => {
                let pools = servers.servers.iter().map(|server| server.pool().driver().inspected());
                Some(Inspector::start(path, R::PROGRAM, pools).map_err(BuildError::from)?)
            }
            None => None,
        };
        let servers = Servers::new(servers);
        #[cfg(unix)]
        let servers = servers.with_inspector(inspector);
        let servers = Arc::new(servers);
        #[cfg(feature = "srv")]
        let poller = Poller::new(&plan, &shared, &servers);
        // Only now, so that nothing runs when the pool of a later host cannot be built.
        let discovery =
            Discovery { plan, shared: Arc::downgrade(&shared), servers: Arc::downgrade(&servers) };
        shared.start(Box::new(discovery));
        Ok(Self {
            servers,
            settings,
            #[cfg(feature = "srv")]
            polling: Mutex::new(poller.map(Poller::start)),
            shared,
        })
    }

    /// The servers: those of the connection string or of the SRV records in their order, then those that were found.
    #[must_use]
    pub fn servers(&self) -> Arc<[Arc<Server<R>>]> {
        Arc::clone(&self.servers.list().servers)
    }

    /// The servers, and after them those that were removed and have connections still.
    #[must_use]
    pub fn all_servers(&self) -> Vec<Arc<Server<R>>> {
        self.servers.all()
    }

    /// The server of a host.
    #[must_use]
    pub fn server(&self, address: &ServerAddress) -> Option<Arc<Server<R>>> {
        self.servers.list().server(address).cloned()
    }

    /// What is known of each server now, and the counts of its pool.
    #[must_use]
    pub fn statuses(&self) -> Vec<ServerStatus> {
        let topology = self.topology();
        self.servers.list().servers.iter().map(|server| server.status(&topology)).collect()
    }

    /// What is known of the deployment: its type, its servers, and hosts that are not used.
    #[must_use]
    pub fn topology(&self) -> Arc<TopologyDescription> {
        self.shared.topology.description()
    }

    /// See [`Client::dropped_events`](super::Client::dropped_events).
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.shared.topology.dropped_events()
    }

    /// What the connection string says of servers.
    #[must_use]
    pub const fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    /// See [`Client::request_checks`](super::Client::request_checks).
    // SS-15
    pub fn request_checks(&self) {
        self.servers.list().servers.iter().for_each(|server| server.request_check());
    }

    /// See [`Client::append_metadata`](super::Client::append_metadata).
    pub fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.shared.connector.append_metadata(driver)
    }

    /// See [`Client::replace_credential`](super::Client::replace_credential).
    ///
    /// # Errors
    ///
    /// The credential cannot be used; nothing changes then.
    pub fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
        // All pools have the same connector.
        self.shared.connector.replace_credential(credential)?;
        for server in &*self.servers() {
            server.pool().driver().feed(pool::Input::RetireConnections);
        }
        Ok(())
    }

    /// See [`Client::release_idle`](super::Client::release_idle).
    pub fn release_idle(&self) {
        for server in &*self.servers() {
            server.pool().driver().feed(pool::Input::ReleaseIdle);
        }
    }

    /// See [`Client::dump_traces`](super::Client::dump_traces).
    ///
    /// # Errors
    ///
    /// There are no flight recorders, or the first file or folder that cannot be written.
    pub fn dump_traces(&self, folder: &Path) -> Result<(), RecordingError> {
        let servers = self.servers();
        let drivers = servers.iter().map(|server| server.pool().driver());
        let pools = drivers.map(|driver| (&**driver.address(), &**driver));
        dump_each(pools, &*self.shared.topology, folder)
    }

    /// See [`Client::end_recording`](super::Client::end_recording).
    ///
    /// # Errors
    ///
    /// Why the first of the incomplete traces could not be written.
    pub async fn end_recording(&self) -> Result<(), RecordingError> {
        let mut outcome = Ok(());
        for server in self.all_servers() {
            outcome = outcome.and(server.pool().end_recording().await);
        }
        outcome.and(trace::end(&*self.shared.topology).await)
    }

    /// As [`end_recording`](Self::end_recording), and blocks the thread.
    ///
    /// # Errors
    ///
    /// As [`end_recording`](Self::end_recording).
    pub fn end_recording_blocking(&self) -> Result<(), RecordingError> {
        let servers = self.all_servers();
        let pools = servers.iter().map(|server| server.pool().end_recording_blocking());
        let outcome = pools.fold(Ok(()), Result::and);
        outcome.and(trace::end_blocking(&*self.shared.topology))
    }

    /// Closes the client for good, and waits for nothing: first callers that wait for a server hear of it, then
    /// the monitors end, then the pools close, in the order of the connection string. In a child process the
    /// monitors and pools of the parent are left alone.
    // SD-10, ND-09.
    pub fn close_at_once(&self) {
        let was_closed = self.servers.close();
        self.shared.news.notify_all();
        if self.is_inherited() {
            return;
        }
        #[cfg(feature = "srv")]
        Lock::lock(&self.polling).take().into_iter().for_each(R::abort);
        let servers = self.servers();
        servers.iter().filter_map(|server| server.monitor()).for_each(MonitorDriver::close);
        servers.iter().for_each(|server| server.pool().driver().close());
        if !was_closed {
            self.shared.topology.feed(self.shared.now(), Input::Close);
            self.shared.perform_actions();
        }
    }

    /// Blocks until the subscribers of the servers were told everything, after [`close_at_once`](Self::close_at_once),
    /// until `deadline` at most.
    pub fn wait_for_subscribers(&self, deadline: Option<Instant>) {
        let topology = &self.shared.topology;
        loop {
            let ended = topology.ended().listen();
            if topology.has_ended() {
                return;
            }
            if !ended.wait(deadline) {
                return topology.close_gave_up();
            }
        }
    }

    /// Removes the socket of [`ClientBuilder::inspect`](super::ClientBuilder::inspect). Until then it shows
    /// what a client that is closing still waits for.
    pub fn end_inspection(&self) {
        #[cfg(unix)]
        self.servers.inspector.iter().for_each(Inspector::close);
    }

    /// Whether this is a child of the process in which the client lives.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.servers().iter().any(|server| server.pool().driver().is_inherited())
    }

    /// Whether this thread runs a callback of the client or of one of its pools, and therefore must not wait for
    /// any of them. Known only where [callers block](crate::runtime::Runtime::CALLERS_BLOCK).
    #[must_use]
    pub fn is_performing_here(&self) -> bool {
        let servers = self.all_servers();
        self.shared.is_performing_here()
            || servers.iter().any(|server| server.pool().driver().is_performing_here())
    }
}

impl<R: Network> Drop for ClientInner<R> {
    fn drop(&mut self) {
        self.close_at_once();
        self.end_inspection();
    }
}

impl<R: Network> fmt::Debug for ClientInner<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientInner").field("settings", &self.settings).finish_non_exhaustive()
    }
}
