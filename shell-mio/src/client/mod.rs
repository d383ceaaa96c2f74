//! A client: a pool for each host, and somebody who watches the servers.

mod builder;
mod close;
mod news;
mod pinned;
mod recording;
mod selection;
mod talk;
mod watch;

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, Selector, ServerStatus};
use cenote_core::connect::DriverInfo;
use cenote_core::pool::{Purpose, Snapshot};
use cenote_shell::client::{self, ClientPool};

use self::news::News;
use self::watch::Means;
use crate::connection::MongoConnector;
use crate::drainer::Drainer;
use crate::event_loop::EventLoop;
use crate::guard::PooledConnection;
use crate::pool::Pool;
use crate::thread::LoopThread;

pub use self::builder::{ClientBuildError, ClientBuilder};
pub use self::pinned::Pinned;

/// Pools for all hosts of a connection string, each as ready as its server is. A clone is the same
/// client; when the last one is dropped, it closes.
///
/// Every server is watched on two sockets at most, which are not the pool's (SD-50): what is known of
/// it decides whether its pool is ready, and a failed check clears the pool. Behind a load balancer
/// nothing is watched, and the pool is ready at once (LB-08).
///
/// One thread, `cenote-loop`, opens the connections of all pools and watches all servers, however many
/// there are. Names are resolved on a few threads more, for as long as that takes.
///
/// The hosts are those of the connection string: replica sets are not discovered, a server is chosen
/// by what it was last seen as, nothing is tried again. That is for drivers to do.
///
/// ```no_run
/// use bson::rawdoc;
/// use cenote_mio::{Client, ClientError, Selector};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::new("mongodb://app:pencil@a.example.com,b.example.com/?replicaSet=rs0")?;
/// client.command("admin", &rawdoc! { "ping": 1 })?;
///
/// // Several commands on one connection, of a server that is a secondary.
/// let names = client.with_connection(&Selector::Secondary, |connection| {
///     let reply = connection.command("admin", &rawdoc! { "listDatabases": 1 })?;
///     Ok::<_, ClientError>(reply)
/// });
/// println!("{:?}", names?);
///
/// for server in client.servers() {
///     println!("{server}"); // a.example.com:27017: RSPrimary of rs0 [ready  gen 0 | …
/// }
/// client.close();
/// # Ok(())
/// # }
/// ```
///
/// A client has one credential, or none; whoever needs two has two clients, and their connections
/// never mix (LN-02).
pub struct Client {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    servers: client::Servers<Pool, Means>,
    /// All pools and monitors have it.
    connector: MongoConnector,
    /// Something was learnt of a server, or the client was closed.
    news: Arc<News>,
    /// Turns the event loop of all pools and monitors.
    thread: LoopThread,
}

type Server = client::Server<Pool, Means>;

impl Client {
    /// A client as a connection string says. Nothing is connected yet when this returns, but the
    /// first checks are under way.
    ///
    /// # Errors
    ///
    /// A connection string that is none, files of it that cannot be read, options that contradict
    /// each other; no event loop, or no thread, to be had.
    pub fn new(uri: &str) -> Result<Self, ClientBuildError> {
        Self::builder(uri)?.build()
    }

    /// A client as a connection string says, with more besides.
    ///
    /// # Errors
    ///
    /// A connection string that is none, or files of it that cannot be read.
    pub fn builder(uri: &str) -> Result<ClientBuilder, ClientBuildError> {
        ClientBuilder::from_uri(uri)
    }

    /// Runs one command on a server that takes writes: a primary, a router, a server of its own. Blocks
    /// until it is answered.
    ///
    /// # Errors
    ///
    /// There is no such server within `serverSelectionTimeoutMS`, no connection, or the command
    /// failed. [`ClientError::labels`] says what a driver would do about it.
    #[track_caller]
    pub fn command(
        &self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError> {
        let mut connection = self.check_out(&Selector::Primary)?;
        Ok(connection.command(database, command)?)
    }

    /// Checks a connection out of a server that fits, does something with it, and checks it in.
    ///
    /// # Errors
    ///
    /// There is no such server or no connection, or what `operation` fails with.
    #[track_caller]
    pub fn with_connection<R, E: From<ClientError>>(
        &self,
        selector: &Selector,
        operation: impl FnOnce(&mut PooledConnection<MongoConnector>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut connection = self.check_out(selector)?;
        operation(&mut connection)
    }

    /// Checks a connection out of a server that fits. It comes back when it is dropped.
    ///
    /// Blocks until there is such a server, for `serverSelectionTimeoutMS`, by default 30 s, and for a connection
    /// as [`Pool::check_out`] does; `timeoutMS` is for both together (CS-02).
    ///
    /// # Errors
    ///
    /// There is no such server, or no connection.
    #[track_caller]
    pub fn check_out(
        &self,
        selector: &Selector,
    ) -> Result<PooledConnection<MongoConnector>, ClientError> {
        let checked_out = self.check_out_at(Location::caller(), selector, Purpose::Other);
        checked_out.map(|(_, connection)| connection)
    }

    /// The pool of a host of this client.
    #[must_use]
    pub fn pool(&self, address: &ServerAddress) -> Option<&Pool> {
        self.inner.servers.get(address).map(|server| &server.pool)
    }

    /// What is known of each server now, and the counts of its pool, in the order of the connection
    /// string.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerStatus> {
        self.inner.servers.statuses()
    }

    /// Has every server checked as soon as the floor of 500 ms between two checks allows.
    pub fn request_checks(&self) {
        self.inner.servers.iter().for_each(|server| server.request_check());
    }

    /// Tells servers of a driver or library that uses this client, too, on connections of pools and
    /// monitors that are opened from now on; none is opened or closed on that account, and no hello
    /// sent (HS-29, HS-30). Says whether it was not told of before.
    pub fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.inner.connector.append_metadata(driver)
    }
}

/// Whether this thread is telling somebody of the server or its pool.
fn is_telling(server: &Server) -> bool {
    Drainer::is_here(server.pool.shared()) || server.watch().is_some_and(Drainer::is_here)
}

/// Nobody turns this loop any more.
fn end_loop(server: &Server, event_loop: &EventLoop) {
    server.watch().into_iter().for_each(|watch| watch.runtime().talks.end_loop());
    server.pool.shared().end_loop(event_loop);
}

impl ClientPool for Pool {
    fn shared_address(&self) -> &Arc<ServerAddress> {
        &self.shared().address
    }

    fn snapshot(&self) -> Snapshot {
        self.shared().snapshot()
    }
}

impl Clone for Client {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("servers", &self.inner.servers.iter().len())
            .finish_non_exhaustive()
    }
}
