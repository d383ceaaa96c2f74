use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::{fmt, mem};

use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientSettings, ServerStatus};
use cenote_core::connect::{DriverInfo, ServerKind};
use cenote_core::error::ConnectionError;
use cenote_core::pool::Input;
use cenote_core::uri::Credential;

use super::{ClientBuildError, ClientPlan, Server};
use crate::builder::BuiltPool;
use crate::connection::MongoConnector;
use crate::monitor::{MonitorDriver, MonitorShared, TopologyLog};
use crate::pool::Pool;
use crate::runtime::Network;
use crate::signal::Signal;
use crate::trace::{RecordingError, dump_each};

/// The servers of a client: a pool and a monitor each. Dropping it [closes](Self::close_at_once) it.
///
/// [`Client`](super::Client) is its asynchronous face. A face that blocks uses it directly: it waits with
/// [`wait_for_server_blocking`](Self::wait_for_server_blocking), and checks connections out of the
/// [pool](Server::pool) as it likes.
pub struct ClientInner<R: Network> {
    /// In the order of the hosts of the settings.
    pub(super) servers: Vec<Arc<Server<R>>>,
    pub(super) settings: ClientSettings,
    pub(super) is_closed: AtomicBool,
    pub(super) shared: Arc<MonitorShared<R>>,
}

impl<R: Network> ClientInner<R> {
    /// Builds a pool for each host, and starts the monitors.
    ///
    /// # Errors
    ///
    /// Options that contradict each other, or a folder for traces that cannot be created. Then nothing is left
    /// running.
    pub fn start<P>(mut plan: ClientPlan<P>, runtime: R) -> Result<Self, ClientBuildError>
    where
        P: BuiltPool<Connector = MongoConnector<R>>,
    {
        let settings = plan.settings()?;
        let shared = Arc::new(MonitorShared {
            runtime,
            topology: TopologyLog::new(settings.hosts(), plan.log),
            subscribers: mem::take(&mut plan.server_subscribers),
            connector: plan.connector.clone(),
            options: plan.monitoring.clone(),
            establish: plan.connector.monitor_options(),
            news: Signal::default(),
            origin: R::now(),
        });
        let servers = settings.hosts().iter().map(|address| {
            let monitor = Arc::new(OnceLock::new());
            let of_pool = Arc::clone(&monitor);
            let builder = plan.pool(address)?.on_failure(move |failure| {
                Server::handle_failure(failure, of_pool.get());
            });
            let pool = Pool::start(builder.into_plan(), shared.runtime.clone())?;
            if !settings.is_watched {
                return Ok(Arc::new(Server::new(pool, None)));
            }
            let driver = MonitorDriver::new(&shared, pool.driver())?;
            let _ = monitor.set(Arc::downgrade(&driver));
            Ok(Arc::new(Server::new(pool, Some(driver))))
        });
        let servers = servers.collect::<Result<Vec<_>, ClientBuildError>>()?;
        // Only now, so that nothing runs when the pool of a later host cannot be built.
        shared.topology.opened();
        if !settings.is_watched {
            let log = |address| shared.topology.changed(address, &ServerKind::LoadBalancer);
            settings.hosts().iter().for_each(log);
        }
        servers.iter().for_each(|server| server.start());
        Ok(Self { servers, settings, is_closed: AtomicBool::new(false), shared })
    }

    /// The servers, in the order of the connection string.
    #[must_use]
    pub fn servers(&self) -> &[Arc<Server<R>>] {
        &self.servers
    }

    /// The server of a host.
    #[must_use]
    pub fn server(&self, address: &ServerAddress) -> Option<&Arc<Server<R>>> {
        self.servers.get(self.settings.place_of(address)?)
    }

    /// What is known of each server now, and the counts of its pool.
    #[must_use]
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.servers.iter().map(|server| server.status()).collect()
    }

    /// What the connection string says of servers.
    #[must_use]
    pub const fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    /// See [`Client::request_checks`](super::Client::request_checks).
    pub fn request_checks(&self) {
        self.servers.iter().for_each(|server| server.request_check());
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
        let drivers = self.servers.iter().map(|server| server.pool().driver());
        drivers.for_each(|driver| driver.feed(Input::RetireConnections));
        Ok(())
    }

    /// See [`Client::dump_traces`](super::Client::dump_traces).
    ///
    /// # Errors
    ///
    /// There are no flight recorders, or the first file or folder that cannot be written.
    pub fn dump_traces(&self, folder: &Path) -> Result<(), RecordingError> {
        let drivers = self.servers.iter().map(|server| server.pool().driver());
        dump_each(drivers.map(|driver| (&**driver.address(), &**driver)), folder)
    }

    /// Closes the client for good, and waits for nothing: first callers that wait for a server hear of it, then
    /// the monitors end, then the pools close, in the order of the connection string. In a child process the
    /// monitors and pools of the parent are left alone.
    // SD-10.
    pub fn close_at_once(&self) {
        let was_closed = self.is_closed.swap(true, Ordering::AcqRel);
        self.shared.news.notify_all();
        if self.is_inherited() {
            return;
        }
        self.servers.iter().filter_map(|server| server.monitor()).for_each(MonitorDriver::close);
        self.servers.iter().for_each(|server| server.pool().driver().close());
        if !was_closed {
            self.shared.topology.closed();
        }
    }

    /// Whether this is a child of the process in which the client lives.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.servers.iter().any(|server| server.pool().driver().is_inherited())
    }

    /// Whether this thread runs a callback of one of the pools or monitors, and therefore must not wait for
    /// any of them. Known only where [callers block](crate::runtime::Runtime::CALLERS_BLOCK).
    #[must_use]
    pub fn is_performing_here(&self) -> bool {
        self.servers.iter().any(|server| server.is_performing_here())
    }
}

impl<R: Network> Drop for ClientInner<R> {
    fn drop(&mut self) {
        self.close_at_once();
    }
}

impl<R: Network> fmt::Debug for ClientInner<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientInner").field("settings", &self.settings).finish_non_exhaustive()
    }
}
