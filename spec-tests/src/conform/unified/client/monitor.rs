//! Polls the server on a connection of its own, and makes the pool ready or clears it.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bson::rawdoc;
use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::uri::ConnectionString;

use super::server::Server;
use crate::blocking::{Connection, Connector};
use crate::conform::shell::Pool;

/// A thread that polls. It does not stream: what the server has to tell between two polls comes late.
pub(super) struct Monitor {
    server: Arc<Server>,
    thread: JoinHandle<()>,
}

/// What the thread has.
struct Watch {
    address: ServerAddress,
    heartbeat: Duration,
    connector: Connector,
    connection: Option<Connection>,
    server: Arc<Server>,
    pool: Arc<dyn Pool>,
}

impl Monitor {
    /// Between two checks, if the connection string does not say.
    const HEARTBEAT: Duration = Duration::from_secs(10);

    /// # Errors
    ///
    /// What is wrong with the connection string.
    pub(super) fn start(
        uri: &ConnectionString,
        server: Arc<Server>,
        pool: Arc<dyn Pool>,
    ) -> Result<Self, String> {
        let mut uri = uri.clone();
        uri.credential = None; // Monitors do not authenticate.
        uri.timeouts.socket = Some(uri.timeouts.connect.unwrap_or(Duration::from_secs(10)));
        let connector = Connector::new(&uri).map_err(|error| error.to_string())?;
        let watched = Arc::clone(&server);
        let address = uri.hosts.first().cloned().ok_or("no server to watch")?;
        let heartbeat = uri.monitoring.heartbeat_frequency.unwrap_or(Self::HEARTBEAT);
        let connection = None;
        let watch = Watch { address, heartbeat, connector, connection, server: watched, pool };
        let thread = thread::spawn(move || watch.run());
        Ok(Self { server, thread })
    }

    /// Returns when the thread has ended.
    pub(super) fn stop(self) {
        self.server.end();
        let _ = self.thread.join();
    }
}

impl Watch {
    fn run(mut self) {
        loop {
            let checked = self.check();
            let again = match checked {
                Ok(()) => false,
                Err(error) => {
                    self.connection = None;
                    let may_be_back = error.is_network_error() && !error.is_timeout();
                    self.server.failed_check(error, &*self.pool) && may_be_back
                }
            };
            if !again && self.server.pause(self.heartbeat) {
                return;
            }
        }
    }

    /// One check: the first hello of a connection, or another one on it.
    fn check(&mut self) -> Result<(), ConnectionError> {
        let connection = match &mut self.connection {
            Some(connection) => {
                connection.command("admin", &rawdoc! { "hello": 1, "helloOk": true })?;
                connection
            }
            None => {
                let opened = self.connector.open(&self.address)?;
                self.connection.insert(opened)
            }
        };
        self.server.answered(connection.description(), &*self.pool);
        Ok(())
    }
}
