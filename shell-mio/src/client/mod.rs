//! A client for callers that block: [`cenote_shell::client`] with a thread for its event loop.

mod close;
mod pinned;

use std::fmt;
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, ClientStatus, OverloadRetries, Selector, ServerStatus};
use cenote_core::connect::DriverInfo;
use cenote_core::pool::Purpose;
use cenote_core::topology::TopologyDescription;
use cenote_core::uri::Credential;
use cenote_shell::client::{
    self, BuiltClient, ClientInner, ClientLimit, ClientPlan, SelectedFor, Server,
};
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::pool::Until;

use crate::check_out::check_out;
use crate::connection::MongoConnector;
use crate::event_loop::{EventLoop, Owner};
use crate::loop_thread::{LoopThread, new_event_loop};
use crate::pool::Pool;
use crate::pooled_connection::PooledConnection;
use crate::{BuildError, ClientBuildError, ConnectionError, RecordingError};

pub use self::pinned::Pinned;

/// Makes a [`Client`], and the thread of the event loop that all of its pools share.
pub type ClientBuilder = client::ClientBuilder<Client>;

/// Pools for all servers of a deployment, each ready while its server is available. A clone is the same
/// client; dropping the last one closes it.
///
/// A monitor checks each server on two sockets at most, which are not the pool's. What it learns marks the
/// pool ready, and a failed check clears it. Behind a load balancer there are no monitors, and the pool is
/// ready at once.
///
/// One thread, `cenote-loop`, opens the connections of all pools and monitors all servers. Up to 16 more
/// resolve host names, for as long as there are names to resolve.
///
/// The first hosts are those of the connection string, or of the SRV records of `mongodb+srv://`, which
/// [`new`](Self::new) and [`ClientBuilder::build`](client::ClientBuilder::build) look up first (feature `srv`). The
/// members of a replica set name the others. Servers that are found get a pool, and those that go have it closed, while
/// the client is in use. The client retries nothing: that is left to drivers.
///
/// ```no_run
/// use bson::rawdoc;
/// use cenote_mio::{Client, ClientError, Selector};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::new("mongodb://app:pencil@a.example.com,b.example.com/?replicaSet=rs0")?;
/// client.command("admin", &rawdoc! { "ping": 1 })?;
///
/// // Several commands on one connection to a secondary.
/// let names = client.with_connection(&Selector::Secondary, |connection| {
///     let reply = connection.command("admin", &rawdoc! { "listDatabases": 1 })?;
///     Ok::<_, ClientError>(reply)
/// });
/// println!("{:?}", names?);
///
/// for server in client.servers() {
///     println!("{server}"); // a.example.com:27017: RSPrimary of rs0, round trip 1.2ms [ready  gen 0 | …
/// }
/// client.close();
/// # Ok(())
/// # }
/// ```
///
/// A client has one credential, or none, and [can change it](Self::replace_credential). An application with two credentials needs two clients, whose
/// connections never mix.
#[derive(Clone)]
pub struct Client {
    inner: Arc<ClientInner<EventLoop>>,
    thread: Arc<LoopThread>,
}

impl Client {
    /// A client for a connection string. Nothing is connected yet when this returns, but the first checks
    /// have begun.
    ///
    /// # Errors
    ///
    /// The connection string is invalid, a file it names cannot be read, options contradict each other, the
    /// operating system has no event loop or thread, or the servers of `mongodb+srv://` cannot be looked up.
    ///
    /// ```no_run
    /// use cenote_mio::Client;
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::new("mongodb://a.example.com,b.example.com/?replicaSet=rs0")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(uri: &str) -> Result<Self, ClientBuildError> {
        Self::builder(uri)?.build()
    }

    /// A builder for a client with more settings than a connection string has.
    ///
    /// # Errors
    ///
    /// The connection string is invalid.
    ///
    /// ```no_run
    /// use cenote_mio::Client;
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::builder("mongodb://a.example.com,b.example.com/?maxPoolSize=20")?
    ///     .on_event(|event| println!("{}: {event}", event.address))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(uri: &str) -> Result<ClientBuilder, ClientBuildError> {
        ClientBuilder::from_uri(uri)
    }

    /// Runs one command on a server that accepts writes: a primary, a mongos, a standalone server. Blocks
    /// until its reply is there.
    ///
    /// # Errors
    ///
    /// There is no such server within `serverSelectionTimeoutMS`, no connection, or the command failed.
    /// [`ClientError::labels`] has the labels for a driver. A write that the server refuses is none of these: the reply has
    /// it, and [`CommandError::of_writes`](cenote_core::error::CommandError::of_writes) finds it.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    /// use cenote_mio::CommandError;
    ///
    /// # fn example(client: cenote_mio::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let reply = client.command("shop", &rawdoc! { "insert": "orders", "documents": [{}] })?;
    /// for (document, error) in CommandError::of_writes(&reply) {
    ///     eprintln!("not written: {document:?}: {error}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn command(
        &self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ClientError> {
        self.command_with(database, command, OperationOptions::new())
    }

    /// As [`command`](Self::command), with options of this call.
    ///
    /// The time of the operation, `timeoutMS` or that of the call, is for selection, check-out, a connection that is
    /// opened for it, and the command together; of that `serverSelectionTimeoutMS` at most is for what comes before
    /// the command. The server gets the rest as `maxTimeMS`, less a round trip: see
    /// [`Connection::command_with`](crate::Connection::command_with).
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command); [`ClientError::TimedOut`] when the time of the operation was over.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use bson::rawdoc;
    /// use cenote_mio::OperationOptions;
    ///
    /// # fn example(client: cenote_mio::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let options = OperationOptions::new().with_timeout(Duration::from_millis(200));
    /// let reply = client.command_with("admin", &rawdoc! { "ping": 1 }, options)?;
    /// println!("{reply:?}");
    /// # Ok(())
    /// # }
    /// ```
    // CS-17
    #[track_caller]
    pub fn command_with(
        &self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, ClientError> {
        let (caller, limit) = (Location::caller(), self.inner.limit(options));
        let (primary, selected_for) = (&Selector::Primary, SelectedFor::Command(command));
        let checked_out = self.check_out_at(caller, primary, Purpose::Other, limit, selected_for);
        let (_, mut connection) = checked_out?;
        let reply = connection.command_with(database, command, limit.options);
        reply.map_err(|error| limit.named(error))
    }

    /// Checks out a connection to a server that fits, passes it to `operation`, and checks it in.
    ///
    /// # Errors
    ///
    /// There is no such server or no connection, or the error of `operation`.
    #[track_caller]
    pub fn with_connection<R, E: From<ClientError>>(
        &self,
        selector: &Selector,
        operation: impl FnOnce(&mut PooledConnection<MongoConnector>) -> Result<R, E>,
    ) -> Result<R, E> {
        let (caller, limit) = (Location::caller(), self.inner.limit(OperationOptions::new()));
        let selected_for = SelectedFor::Method("with_connection");
        let checked_out = self.check_out_at(caller, selector, Purpose::Other, limit, selected_for);
        let (_, mut connection) = checked_out?;
        operation(&mut connection)
    }

    /// Checks out a connection to a server that fits. Dropping it checks it in.
    ///
    /// Blocks until there is such a server, for `serverSelectionTimeoutMS` at most, by default 30 s, and for a
    /// connection as [`Pool::check_out`] does. With `timeoutMS`, the smaller of both is for selection and check-out
    /// together, and each command on the connection then has `timeoutMS` of its own.
    ///
    /// # Errors
    ///
    /// There is no such server, or no connection.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    /// use cenote_mio::Selector;
    ///
    /// # fn example(client: cenote_mio::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = client.check_out(&Selector::Primary)?;
    /// connection.command("admin", &rawdoc! { "ping": 1 })?;
    /// drop(connection); // Checks it in.
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn check_out(
        &self,
        selector: &Selector,
    ) -> Result<PooledConnection<MongoConnector>, ClientError> {
        self.check_out_with(selector, OperationOptions::new())
    }

    /// As [`check_out`](Self::check_out), with a limit of this call for selection and check-out.
    ///
    /// # Errors
    ///
    /// As [`check_out`](Self::check_out).
    #[track_caller]
    pub fn check_out_with(
        &self,
        selector: &Selector,
        options: OperationOptions,
    ) -> Result<PooledConnection<MongoConnector>, ClientError> {
        let (caller, limit) = (Location::caller(), self.inner.limit(options));
        let selected_for = SelectedFor::Method("check_out");
        let checked_out = self.check_out_at(caller, selector, Purpose::Other, limit, selected_for);
        checked_out.map(|(_, connection)| connection)
    }

    fn check_out_at(
        &self,
        caller: &'static Location<'static>,
        selector: &Selector,
        purpose: Purpose,
        limit: ClientLimit,
        selected_for: SelectedFor<'_>,
    ) -> Result<(Arc<Server<EventLoop>>, PooledConnection<MongoConnector>), ClientError> {
        let server = self.inner.wait_for_server_blocking(selector, &limit, selected_for);
        let server = server.map_err(|error| limit.named_before_command(error))?;
        let checked_out =
            check_out(server.pool().driver(), caller, purpose, Until::Deadline(limit.check_out));
        Ok((server, checked_out.map_err(|error| limit.named_before_command(error))?))
    }

    /// The pool of a server of this client.
    #[must_use]
    pub fn pool(&self, address: &ServerAddress) -> Option<Pool> {
        self.inner.server(address).map(|server| pool_of(&server))
    }

    /// What is known of each server now, and the counts of its pool: the hosts of the connection string in its order, then
    /// those that were found.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerStatus> {
        self.inner.statuses()
    }

    /// Whether the client can be used, as far as is known now, and if not, why: for a program that checks its configuration
    /// when it starts. Monitors do not authenticate: whether a credential is taken, the first check-out tells.
    ///
    /// ```no_run
    /// use cenote_mio::{Client, ClientStatus};
    ///
    /// # fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// for _ in 0..200 {
    ///     if !matches!(client.status(), ClientStatus::Looking) {
    ///         break;
    ///     }
    ///     std::thread::sleep(std::time::Duration::from_millis(10));
    /// }
    /// if client.status().is_misconfigured() {
    ///     return Err(client.status().to_string().into()); // db.exmaple.com:27017 cannot be used: name resolution: …
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn status(&self) -> ClientStatus {
        ClientStatus::of(&self.topology())
    }

    /// What is known of the deployment now: its type, its servers, and hosts of the connection string that are not used,
    /// each with the reason.
    #[must_use]
    pub fn topology(&self) -> Arc<TopologyDescription> {
        self.inner.topology()
    }

    /// How many heartbeats and events of the topology were dropped because a subscriber blocks:
    /// [`ClientBuilder::event_queue`](client::ClientBuilder::event_queue). What a pool drops, [`Pool::dropped_events`]
    /// counts.
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.inner.dropped_events()
    }

    /// For an operation that begins: whether to try it again when an attempt fails by an overload, when, and on which
    /// server, by `maxAdaptiveRetries` and `enableOverloadRetargeting` of the connection string. The client itself
    /// retries nothing.
    #[must_use]
    pub fn overload_retries(&self) -> OverloadRetries {
        self.inner.overload_retries()
    }

    /// Has every server checked as soon as the minimum of 500 ms between two checks allows.
    pub fn request_checks(&self) {
        self.inner.request_checks();
    }

    /// Adds a driver or library to the client metadata of connections of pools and monitors that are opened
    /// from now on: [`MongoConnector::append_metadata`].
    pub fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.inner.append_metadata(driver)
    }

    /// Changes the user or the password on all servers without an outage: [`Pool::replace_credential`]. Monitors do not
    /// authenticate.
    ///
    /// # Errors
    ///
    /// As [`Pool::replace_credential`].
    pub fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
        self.inner.replace_credential(credential)
    }

    /// Closes the connections of all pools that no caller uses or waits for, before the process is frozen:
    /// [`Pool::release_idle`]. Monitors keep theirs: one for each server, or two where it streams its state.
    pub fn release_idle(&self) {
        self.inner.release_idle();
    }

    /// Ends [the recordings](ClientBuilder::record_into) of all pools and of the topology, and blocks until the traces
    /// are complete: [`Pool::end_recording`]. Every recording is ended, even if another one fails.
    ///
    /// # Errors
    ///
    /// Why the first of the incomplete traces could not be written.
    pub fn end_recording(&self) -> Result<(), RecordingError> {
        self.inner.end_recording_blocking()
    }

    /// Writes what the [flight recorders](ClientBuilder::flight_recorder) hold into files of this folder, named
    /// by the servers' addresses, and `topology.bson`; overwrites existing ones. Creates the folder if necessary. Blocks as
    /// [`Pool::dump_trace`] does.
    ///
    /// # Errors
    ///
    /// There are no flight recorders, or the first file or folder that cannot be written.
    pub fn dump_traces(&self, folder: impl AsRef<Path>) -> Result<(), RecordingError> {
        self.inner.dump_traces(folder.as_ref())
    }
}

fn pool_of(server: &Server<EventLoop>) -> Pool {
    Pool::new(server.pool().clone())
}

impl BuiltClient for Client {
    type Pool = Pool;

    fn build(plan: ClientPlan<Pool>) -> Result<Self, ClientBuildError> {
        #[cfg(feature = "srv")]
        let plan = plan.resolve_blocking()?;
        let (event_loop, poll) = new_event_loop(Owner::Client).map_err(BuildError::from)?;
        let inner = ClientInner::start(plan, event_loop.clone());
        // The pools of the first hosts may have tasks on the loop.
        let inner = inner.inspect_err(|_| event_loop.end())?;
        let thread = Arc::<LoopThread>::default();
        thread.start(event_loop, poll).map_err(BuildError::from)?;
        Ok(Self { inner: Arc::new(inner), thread })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.inner.servers().len();
        f.debug_struct("Client").field("servers", &servers).finish_non_exhaustive()
    }
}
