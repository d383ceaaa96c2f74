//! A client: a pool and a monitor for each server of a deployment.
//!
//! [`ClientInner`] is what all clients have in common: it builds the servers, selects one, and closes them.
//! [`Client`] is its asynchronous face. Which server fits, the [core](cenote_core::client) decides.

mod builder;
mod close;
mod driver;
mod error;
mod inner;
mod locked;
#[cfg(feature = "srv")]
mod name_service;
mod pinned;
mod plan;
mod request;
mod selection;
mod selection_log;
mod server;
mod sockets;
#[cfg(feature = "srv")]
mod srv;
mod timer;
mod told;
mod traces;

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, ClientStatus, OverloadRetries, Selector, ServerStatus};
use cenote_core::connect::DriverInfo;
use cenote_core::error::ConnectionError;
use cenote_core::pool::Purpose;
use cenote_core::topology::TopologyDescription;
use cenote_core::uri::Credential;

use crate::connection::operation::OperationOptions;
use crate::connection::{Connection, MongoConnector};
use crate::pool::{Pool, PooledConnection, Until};
use crate::runtime::{CurrentRuntime, Network};
use crate::trace::RecordingError;

pub use self::builder::{BuiltClient, ClientBuilder, DEFAULT_SERVER_EVENT_QUEUE};
pub use self::error::ClientBuildError;
pub use self::inner::ClientInner;
pub use self::pinned::{Pinned, PinnedState};
pub use self::plan::ClientPlan;
pub use self::selection::ClientLimit;
pub use self::selection_log::SelectedFor;
pub use self::server::Server;

/// Pools for all servers of a deployment, each ready while its server is available. A clone is the same
/// client; dropping the last one closes it.
///
/// A monitor checks each server on two sockets at most, which are not the pool's. What it learns marks the
/// pool ready, and a failed check clears it. Behind a load balancer there are no monitors, and the pool is
/// ready at once.
///
/// The first hosts are those of the connection string, or of the SRV records of `mongodb+srv://`
/// ([`ClientBuilder::resolve`], feature `srv`). The members of a replica set name the others. Servers that are found get
/// a pool, and those that go have it closed, while the client is in use. The client retries nothing: that is left to
/// drivers.
///
/// A client has one credential, or none, and [can change it](Self::replace_credential). An application with two credentials needs two clients, whose
/// connections never mix.
///
/// ```no_run
/// use bson::rawdoc;
/// use cenote_core::client::{ClientError, Selector};
/// use cenote_shell::client::Client;
/// # use cenote_shell::connection::Connection;
/// # use cenote_shell::runtime::{CurrentRuntime, Network};
///
/// # async fn example<R: Network<Connection = Connection<R>> + CurrentRuntime>(
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// let uri = "mongodb://app:pencil@a.example.com,b.example.com/?replicaSet=rs0";
/// let client = Client::<R>::new(uri)?; // R is the runtime; cenote_tokio::Client has tokio for it.
/// client.command("admin", &rawdoc! { "ping": 1 }).await?;
///
/// // Several commands on one connection to a secondary.
/// let names = client.with_connection(&Selector::Secondary, async |connection| {
///     let reply = connection.command("admin", &rawdoc! { "listDatabases": 1 }).await?;
///     Ok::<_, ClientError>(reply)
/// });
/// println!("{:?}", names.await?);
///
/// for server in client.servers() {
///     println!("{server}"); // a.example.com:27017: RSPrimary of rs0, round trip 1.2ms [ready  gen 0 | …
/// }
/// client.close().await;
/// # Ok(())
/// # }
/// ```
// LN-02: a credential each. SD-50: the sockets of monitors. LB-08: no monitors.
pub struct Client<R: Network> {
    inner: Arc<ClientInner<R>>,
}

type Checked<R> = PooledConnection<R, MongoConnector<R>>;

impl<R: Network<Connection = Connection<R>> + CurrentRuntime> Client<R> {
    /// A client for a connection string. Nothing is connected yet when this returns, but the first checks
    /// have begun.
    ///
    /// # Errors
    ///
    /// The connection string is invalid, a file it names cannot be read, or options contradict each other.
    ///
    /// # Panics
    ///
    /// Outside of the runtime, or in one without time and I/O.
    ///
    /// ```no_run
    /// use cenote_tokio::Client;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
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
    /// use cenote_tokio::Client;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::builder("mongodb://a.example.com,b.example.com/?maxPoolSize=20")?
    ///     .on_event(|event| println!("{}: {event}", event.address))
    ///     .on_leak(|leak| eprintln!("{leak}"))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(uri: &str) -> Result<ClientBuilder<Self>, ClientBuildError> {
        ClientBuilder::from_uri(uri)
    }

    /// As [`new`](Self::new), also for `mongodb+srv://`, whose servers it looks up first: see
    /// [`ClientBuilder::resolve`] (feature `srv`).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new) and [`ClientBuilder::resolve`].
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    ///
    /// ```no_run
    /// use cenote_tokio::Client;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::connect_to("mongodb+srv://app:pencil@cluster.example.com/").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "srv")]
    pub async fn connect_to(uri: &str) -> Result<Self, ClientBuildError> {
        Self::builder(uri)?.resolve().await?.build()
    }

    /// Runs one command on a server that accepts writes: a primary, a mongos, a standalone server.
    ///
    /// # Errors
    ///
    /// There is no such server within `serverSelectionTimeoutMS`, no connection, or the command failed.
    /// [`ClientError::labels`] has the labels for a driver. A write that the server refuses is none of these: the reply has
    /// it, and [`CommandError::of_writes`](cenote_core::error::CommandError::of_writes) finds it.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    /// use cenote_tokio::CommandError;
    ///
    /// # async fn example(client: cenote_tokio::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let reply = client.command("shop", &rawdoc! { "insert": "orders", "documents": [{}] }).await?;
    /// for (document, error) in CommandError::of_writes(&reply) {
    ///     eprintln!("not written: {document:?}: {error}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn command<'a>(
        &'a self,
        database: &'a str,
        command: &'a RawDocument,
    ) -> impl Future<Output = Result<RawDocumentBuf, ClientError>> + Send + 'a {
        self.command_with(database, command, OperationOptions::new())
    }

    /// As [`command`](Self::command), with options of this call.
    ///
    /// The time of the operation, `timeoutMS` or that of the call, is for selection, check-out, a connection that is
    /// made for it, and the command together; of that `serverSelectionTimeoutMS` at most is for what comes before the
    /// command. The server gets the rest as `maxTimeMS`, less a round trip: see
    /// [`Connection::command_with`](crate::connection::Connection::command_with).
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command); [`ClientError::TimedOut`] when the time of the operation was over.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use bson::rawdoc;
    /// use cenote_tokio::OperationOptions;
    ///
    /// # async fn example(client: cenote_tokio::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let options = OperationOptions::new().with_timeout(Duration::from_millis(200));
    /// let reply = client.command_with("admin", &rawdoc! { "ping": 1 }, options).await?;
    /// println!("{reply:?}");
    /// # Ok(())
    /// # }
    /// ```
    // CS-17
    #[track_caller]
    pub fn command_with<'a>(
        &'a self,
        database: &'a str,
        command: &'a RawDocument,
        options: OperationOptions,
    ) -> impl Future<Output = Result<RawDocumentBuf, ClientError>> + Send + 'a {
        let caller = Location::caller();
        async move {
            let limit = self.inner.limit(options);
            let selected_for = SelectedFor::Command(command);
            let primary = &Selector::Primary;
            let checked_out =
                self.check_out_at(caller, primary, Purpose::Other, &limit, selected_for);
            let (_, mut connection) = checked_out.await?;
            let reply = connection.command_with(database, command, limit.options).await;
            reply.map_err(|error| limit.named(error))
        }
    }

    /// Checks out a connection to a server that fits, passes it to `operation`, and checks it in.
    ///
    /// # Errors
    ///
    /// There is no such server or no connection, or the error of `operation`.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    /// use cenote_tokio::{ClientError, Selector};
    ///
    /// # async fn example(client: cenote_tokio::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let names = client.with_connection(&Selector::Secondary, async |connection| {
    ///     let reply = connection.command("shop", &rawdoc! { "listCollections": 1 }).await?;
    ///     Ok::<_, ClientError>(reply)
    /// });
    /// println!("{:?}", names.await?);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn with_connection<'a, T, E: From<ClientError>>(
        &'a self,
        selector: &'a Selector,
        operation: impl AsyncFnOnce(&mut Checked<R>) -> Result<T, E>,
    ) -> impl Future<Output = Result<T, E>> {
        let caller = Location::caller();
        async move {
            let limit = self.inner.limit(OperationOptions::new());
            let selected_for = SelectedFor::Method("with_connection");
            let checked_out =
                self.check_out_at(caller, selector, Purpose::Other, &limit, selected_for);
            let (_, mut connection) = checked_out.await?;
            operation(&mut connection).await
        }
    }

    /// Checks out a connection to a server that fits. Dropping it checks it in.
    ///
    /// Waits for such a server for `serverSelectionTimeoutMS`, by default 30 s, and for a connection as
    /// [`Pool::check_out`] does. With `timeoutMS`, the smaller of both is for selection and check-out together, and
    /// each command on the connection then has `timeoutMS` of its own. Cancel-safe.
    ///
    /// # Errors
    ///
    /// There is no such server, or no connection.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    /// use cenote_tokio::Selector;
    ///
    /// # async fn example(client: cenote_tokio::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = client.check_out(&Selector::Primary).await?;
    /// connection.command("admin", &rawdoc! { "ping": 1 }).await?;
    /// drop(connection); // Checks it in.
    /// # Ok(())
    /// # }
    /// ```
    // CS-02.
    #[track_caller]
    pub fn check_out<'a>(
        &'a self,
        selector: &'a Selector,
    ) -> impl Future<Output = Result<Checked<R>, ClientError>> + Send + 'a {
        // A function that returns a future, because an `async fn` would not know the caller.
        self.check_out_with(selector, OperationOptions::new())
    }

    /// As [`check_out`](Self::check_out), with a limit of this call for selection and check-out.
    ///
    /// # Errors
    ///
    /// As [`check_out`](Self::check_out).
    #[track_caller]
    pub fn check_out_with<'a>(
        &'a self,
        selector: &'a Selector,
        options: OperationOptions,
    ) -> impl Future<Output = Result<Checked<R>, ClientError>> + Send + 'a {
        let caller = Location::caller();
        async move {
            let limit = self.inner.limit(options);
            let selected_for = SelectedFor::Method("check_out");
            let checked_out =
                self.check_out_at(caller, selector, Purpose::Other, &limit, selected_for);
            checked_out.await.map(|(_, connection)| connection)
        }
    }

    async fn check_out_at(
        &self,
        caller: &'static Location<'static>,
        selector: &Selector,
        purpose: Purpose,
        limit: &ClientLimit,
        selected_for: SelectedFor<'_>,
    ) -> Result<(Arc<Server<R>>, Checked<R>), ClientError> {
        let server = self.inner.wait_for_server(selector, limit, selected_for).await;
        let server = server.map_err(|error| limit.named_before_command(error))?;
        let until = Until::Deadline(limit.check_out);
        let connection = server.pool().check_out_at(caller, purpose, until).await;
        Ok((server, connection.map_err(|error| limit.named_before_command(error))?))
    }

    /// Waits until the traces of [`ClientBuilder::record_into`] are complete, those of the pools and that of the
    /// topology, and ends them: [`Pool::end_recording`]. Every recording is ended, even if another one fails.
    ///
    /// # Errors
    ///
    /// Why the first of the incomplete traces could not be written.
    pub async fn end_recording(&self) -> Result<(), RecordingError> {
        self.inner.end_recording().await
    }
}

impl<R: Network> Client<R> {
    /// The pool of a server of this client.
    #[must_use]
    pub fn pool(&self, address: &ServerAddress) -> Option<Pool<R, MongoConnector<R>>> {
        self.inner.server(address).map(|server| server.pool().clone())
    }

    /// What is known of each server now, and the counts of its pool: the hosts of the connection string in its order, then
    /// those that were found.
    ///
    /// ```no_run
    /// # async fn example(client: cenote_tokio::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// for server in client.servers() {
    ///     println!("{server}"); // a.example.com:27017: RSPrimary of rs0, round trip 1.2ms [ready  gen 0 | …
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn servers(&self) -> Vec<ServerStatus> {
        self.inner.statuses()
    }

    /// Whether the client can be used, as far as is known now, and if not, why: for a program that checks its configuration
    /// when it starts. Monitors do not authenticate: whether a credential is taken, the first check-out tells.
    ///
    /// ```no_run
    /// use cenote_tokio::{Client, ClientStatus};
    ///
    /// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// for _ in 0..200 {
    ///     if !matches!(client.status(), ClientStatus::Looking) {
    ///         break;
    ///     }
    ///     tokio::time::sleep(std::time::Duration::from_millis(10)).await;
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
    /// [`ClientBuilder::event_queue`]. What a pool drops, [`Pool::dropped_events`] counts.
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

    /// Adds a driver or library that uses this client to the metadata that servers get, on connections of
    /// pools and monitors that are opened from now on. No connection is opened or closed for it, and no hello
    /// is sent. Returns whether it is new.
    // HS-29, HS-30.
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

    /// Writes what the [flight recorders](ClientBuilder::flight_recorder) hold into files of this folder,
    /// named by the servers' addresses, and `topology.bson`; overwrites existing ones. Creates the folder if
    /// necessary. Blocks as [`Pool::dump_trace`] does.
    ///
    /// # Errors
    ///
    /// There are no flight recorders, or the first file or folder that cannot be written.
    pub fn dump_traces(&self, folder: impl AsRef<Path>) -> Result<(), RecordingError> {
        self.inner.dump_traces(folder.as_ref())
    }
}

impl<R: Network<Connection = Connection<R>> + CurrentRuntime> BuiltClient for Client<R> {
    type Pool = Pool<R, MongoConnector<R>>;

    fn build(plan: ClientPlan<Self::Pool>) -> Result<Self, ClientBuildError> {
        Ok(Self { inner: Arc::new(ClientInner::start(plan, R::current())?) })
    }
}

impl<R: Network> Clone for Client<R> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<R: Network> fmt::Debug for Client<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("servers", &self.inner.servers().len())
            .finish_non_exhaustive()
    }
}
