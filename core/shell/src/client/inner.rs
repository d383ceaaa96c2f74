use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cenote_core::address::ServerAddress;
use cenote_core::client::machine::Input;
use cenote_core::client::{ClientSettings, OverloadRetries, ServerStatus};
use cenote_core::connect::DriverInfo;
use cenote_core::error::ConnectionError;
use cenote_core::pool;
use cenote_core::topology::TopologyDescription;
use cenote_core::uri::Credential;

use super::driver::ClientDriver;
use super::{ClientBuildError, ClientPlan, Server};
use crate::builder::BuiltPool;
use crate::connection::MongoConnector;
use crate::runtime::Network;
use crate::trace::{self, RecordingError, dump_each};

/// The servers of a client: a pool and a monitor each. Dropping it [closes](Self::close_at_once) it.
///
/// [`Client`](super::Client) is its asynchronous face. A face that blocks uses it directly: it waits with
/// [`wait_for_server_blocking`](Self::wait_for_server_blocking), and checks connections out of the
/// [pool](Server::pool) as it likes.
pub struct ClientInner<R: Network> {
    pub(super) driver: Arc<ClientDriver<R>>,
    pub(super) settings: ClientSettings,
    pub(super) heartbeat_frequency: Duration,
}

impl<R: Network> ClientInner<R> {
    /// Builds a pool for each host of the connection string, and starts the monitors.
    ///
    /// # Errors
    ///
    /// Options that contradict each other, or a folder for traces that cannot be created. Then nothing is left
    /// running.
    pub fn start<P>(plan: ClientPlan<P>, runtime: R) -> Result<Self, ClientBuildError>
    where
        P: BuiltPool<Connector = MongoConnector<R>> + 'static,
    {
        let settings = plan.settings()?;
        let heartbeat_frequency = plan.monitoring.heartbeat_frequency;
        let driver = ClientDriver::start(plan, &settings, runtime)?;
        Ok(Self { driver, settings, heartbeat_frequency })
    }

    /// The servers: those of the connection string or of the SRV records in their order, then those that were found.
    #[must_use]
    pub fn servers(&self) -> Vec<Arc<Server<R>>> {
        self.driver.lock().servers()
    }

    /// The servers, and after them those that were removed and have connections still.
    #[must_use]
    pub fn all_servers(&self) -> Vec<Arc<Server<R>>> {
        self.driver.lock().all_servers()
    }

    /// The server of a host.
    #[must_use]
    pub fn server(&self, address: &ServerAddress) -> Option<Arc<Server<R>>> {
        self.driver.lock().server_at(address)
    }

    /// What is known of each server now, and the counts of its pool.
    #[must_use]
    pub fn statuses(&self) -> Vec<ServerStatus> {
        let topology = self.topology();
        self.servers().iter().map(|server| server.status(&topology)).collect()
    }

    /// What is known of the deployment: its type, its servers, and hosts that are not used.
    #[must_use]
    pub fn topology(&self) -> Arc<TopologyDescription> {
        Arc::clone(self.driver.lock().state.description())
    }

    /// See [`Client::dropped_events`](super::Client::dropped_events).
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.driver.lock().notifications.dropped()
    }

    /// What the connection string says of servers.
    #[must_use]
    pub const fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    /// See [`Client::request_checks`](super::Client::request_checks).
    // SS-15
    pub fn request_checks(&self) {
        self.driver.feed(Input::RequestChecks);
    }

    /// See [`Client::overload_retries`](super::Client::overload_retries).
    #[must_use]
    pub fn overload_retries(&self) -> OverloadRetries {
        OverloadRetries::new(&self.settings.retries)
    }

    /// See [`Client::append_metadata`](super::Client::append_metadata).
    pub fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.driver.connector.append_metadata(driver)
    }

    /// See [`Client::replace_credential`](super::Client::replace_credential).
    ///
    /// # Errors
    ///
    /// The credential cannot be used; nothing changes then.
    pub fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
        // All pools have the same connector.
        self.driver.connector.replace_credential(credential)?;
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
        dump_each(pools, &*self.driver, folder)
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
        outcome.and(trace::end(&*self.driver).await)
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
        outcome.and(trace::end_blocking(&*self.driver))
    }

    /// Closes the client for good, and waits for nothing: first callers that wait for a server hear of it, then
    /// the monitors end, then the pools close, in the order of the connection string. In a child process the
    /// monitors and pools of the parent are left alone.
    pub fn close_at_once(&self) {
        self.driver.close();
    }

    /// Blocks until the subscribers of the servers were told everything, after [`close_at_once`](Self::close_at_once),
    /// until `deadline` at most.
    pub fn wait_for_subscribers(&self, deadline: Option<Instant>) {
        self.driver.told_blocking(deadline);
    }

    /// Removes the socket of [`ClientBuilder::inspect`](super::ClientBuilder::inspect). Until then it shows
    /// what a client that is closing still waits for.
    pub fn end_inspection(&self) {
        self.driver.end_inspection();
    }

    /// Whether this is a child of the process in which the client lives.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.driver.is_inherited()
    }

    /// Whether this thread runs a callback of the client or of one of its pools, and therefore must not wait for
    /// any of them. Known only where [callers block](crate::runtime::Runtime::CALLERS_BLOCK).
    #[must_use]
    pub fn is_performing_here(&self) -> bool {
        let servers = self.all_servers();
        self.driver.is_performing_here()
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
