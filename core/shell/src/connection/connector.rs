use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::ServiceId;

use crate::connection::interrupt::Interrupter;
use crate::connection::stages::Stages;
use crate::runtime::Runtime;

/// Whether an idle connection is open, and nothing has come on it: [`Connector::idle_probe`]. Must not block.
pub type IdleProbe = Box<dyn FnOnce() -> bool + Send>;

/// Makes and judges connections: what a driver implements that has sockets and a handshake of its
/// own.
///
/// [`MongoConnector`](super::MongoConnector) is the one that this crate brings.
///
/// ```no_run
/// use cenote_core::error::{ConnectionError, Stage};
/// use cenote_shell::connection::{Connector, HandshakeReporter};
/// use cenote_tokio::{Builder, Pool, Target, Tokio};
/// use tokio::net::TcpStream;
///
/// /// Opens TCP connections, without a handshake.
/// struct Plain;
///
/// impl Connector<Tokio> for Plain {
///     type Connection = TcpStream;
///     type Error = ConnectionError;
///
///     async fn connect(
///         &self,
///         target: Target,
///         _: HandshakeReporter,
///     ) -> Result<TcpStream, ConnectionError> {
///         let address = (target.address.host(), target.address.port().unwrap_or(27017));
///         let connected = TcpStream::connect(address).await;
///         connected.map_err(|error| ConnectionError::network(Stage::Tcp, error))
///     }
/// }
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let pool: Pool<Plain> = Builder::new("db.example.com".parse()?, Plain).build()?;
/// pool.ready();
/// let stream = pool.check_out().await?;
/// println!("{}", stream.local_addr()?);
/// # Ok(())
/// # }
/// ```
pub trait Connector<R: Runtime>: Send + Sync + Sized + 'static {
    /// What is pooled. It is dropped to close it, on any thread, and must not block there. A panic
    /// in its drop is contained.
    // KX-02
    type Connection: Send + 'static;

    /// The driver's own error. The pool converts it to a [`ConnectionError`], whose stage and kind decide what is
    /// cleared and which labels apply, and which is the cause in pool errors, events and log records. A conversion
    /// by [`with_source`](ConnectionError::with_source) keeps the driver's error inside, where
    /// [`source_as`](ConnectionError::source_as) finds it. A driver without an error type of its own takes
    /// `ConnectionError`.
    type Error: Into<ConnectionError> + Send;

    /// Checks, when a pool is built, whether its settings can work. The default accepts them. A connector that wraps
    /// another one asks it: [`MongoConnector`](super::mongo::MongoConnector) reads the files of TLS here.
    ///
    /// # Errors
    ///
    /// Why no connection could ever be opened. The pool is not built then.
    fn check(&self) -> Result<(), ConnectionError> {
        Ok(())
    }

    /// Opens a connection to `target`, ready for its first command. The future runs on the pool's
    /// runtime.
    ///
    /// In load-balanced mode it calls [`HandshakeReporter::handshaken`] once hello is done; a
    /// connection without that call is closed, and the check-out fails with a configuration error. It
    /// belongs to the pool, not to the check-out that it was begun for: that one's deadline ends its wait, and the connection
    /// serves the next. The future is dropped after the [`connect_timeout`](Self::connect_timeout), and when the pool has no
    /// use for the connection any more.
    ///
    /// # Errors
    ///
    /// Why there is no connection. It fails the check-out that the connection was for.
    fn connect(
        &self,
        target: Target<R>,
        reporter: HandshakeReporter,
    ) -> impl Future<Output = Result<Self::Connection, Self::Error>> + Send;

    /// How long [`connect`](Self::connect) may take, whether or not a caller waits for it: an attempt that hangs keeps a permit
    /// of `maxConnecting`. The default is 10 s, as that of `connectTimeoutMS`; `None` is for a connector that has a limit of
    /// its own, as [`MongoConnector`](super::MongoConnector) has. One that calls another's `connect` forwards this, too.
    ///
    /// Its end is a timeout of the stage connect, whatever the connector was at.
    fn connect_timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(10))
    }

    /// Why a connection that is checked in must not be used again, such as a reply that was not
    /// read to its end; `None`, the default, means that it is healthy. Called when a guard is
    /// dropped: it must not block. After a panic the connection counts as broken.
    fn fault(&self, connection: &Self::Connection) -> Option<Self::Error> {
        let _ = connection;
        None
    }

    /// Whether there is an [`idle_fault`](Self::idle_fault) to ask for. Without it, the default, the peer's
    /// end is noticed by the next operation only.
    const LOOKS_AT_IDLE: bool = false;

    /// Why an idle connection must not be handed out: the peer has closed it, or has sent what nothing
    /// asked for. `None`, the default, means that there is no reason. The pool closes the connection with the
    /// reason `error`, and the error as the cause.
    ///
    /// Called under the pool's lock: when a check-out is about to get the connection, and every half second
    /// for all that are idle, unless a [probe](Self::idle_probe) says that they are silent. It must take less than a
    /// microsecond as a rule, and must not block or use the pool. After a panic the connection counts as broken.
    fn idle_fault(&self, connection: &mut Self::Connection) -> Option<Self::Error> {
        let _ = connection;
        None
    }

    /// A look at an idle connection without the pool's lock, where [`idle_fault`](Self::idle_fault) makes a system call: that
    /// is then called for those alone that are not silent. `None`, the default, if it makes none.
    ///
    /// Called every half second for all that are idle.
    fn idle_probe(&self, connection: &Self::Connection) -> Option<IdleProbe> {
        let _ = connection;
        None
    }

    /// Whether anything has come from the peer since this was last asked. After a command timed out on a connection that
    /// had been idle and on which nothing came, the pool closes the others that have been idle for as long, and on which
    /// nothing came either. With `true`, the default, it believes every connection.
    ///
    /// Called where an [`idle_fault`](Self::idle_fault) is looked for, with the same limits, and after a timeout.
    fn has_received(&self, connection: &mut Self::Connection) -> bool {
        let _ = connection;
        true
    }

    /// The request whose reply is still to come on a connection whose operation has timed out or was dropped, by its request id;
    /// `None`, the default, if there is none, if there may be more than one reply, or if the connector cannot
    /// [drain](Self::drain) it. The pool then keeps the connection, if its options have
    /// [`experimental_pending_response`](cenote_core::pool::PoolOptions::experimental_pending_response); otherwise it
    /// closes it. Called when a guard is dropped: it must not block.
    fn pending_response(&self, connection: &Self::Connection) -> Option<i32> {
        let _ = connection;
        None
    }

    /// Reads the reply that is still to come and discards it: the connection that is returned is ready for its next
    /// command. The future runs on the pool's runtime, takes as long as it takes, and calls `reporter` when bytes
    /// come; the pool drops it when they stay away for too long.
    ///
    /// # Errors
    ///
    /// Why the connection must not be used again, such as a reply to another request: `?` converts the driver's own
    /// [`Error`](Self::Error). The default fails; it is for connectors that never report a
    /// [pending response](Self::pending_response).
    fn drain(
        &self,
        runtime: R,
        connection: Self::Connection,
        reporter: DrainReporter,
    ) -> impl Future<Output = Result<Self::Connection, ConnectionError>> + Send {
        let _ = (runtime, connection, reporter);
        let reason = "the connector cannot read late replies";
        std::future::ready(Err(ConnectionError::configuration(Stage::Operation, reason)))
    }

    /// How to interrupt an operation that blocks on the connection, such as by `shutdown` of its
    /// socket. Called once for each connection, and dropped with it; must not block. With `None`,
    /// the default, an operation that blocks notices the interrupt when it returns. Asynchronous
    /// operations are interrupted without it.
    fn interrupter(&self, connection: &Self::Connection) -> Option<Interrupter> {
        let _ = connection;
        None
    }
}

/// Tells the pool that a part of a late reply has come.
pub struct DrainReporter(Box<dyn Fn() + Send + Sync>);

impl DrainReporter {
    pub(crate) fn new(report: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Box::new(report))
    }

    /// Some bytes were read. To be called as often as that happens.
    pub fn bytes_read(&self) {
        (self.0)();
    }
}

impl fmt::Debug for DrainReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrainReporter").finish_non_exhaustive()
    }
}

/// Where to connect, and by when.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Target<R: Runtime> {
    /// The server.
    pub address: Arc<ServerAddress>,
    /// The connection's number, as in events: 1, 2, 3, …
    pub connection_id: u64,
    /// Whether the connection is made to reach `minPoolSize`.
    pub background: bool,
    /// Whether the check-out that it is made for has a deadline: then `socketTimeoutMS`, which is older, does not apply.
    pub has_deadline: bool,
    /// The pool's runtime.
    pub runtime: R,
}

/// Tells the pool what a connector learns before the connection is ready.
pub struct HandshakeReporter {
    handshaken: Box<dyn Fn(ServiceId) + Send + Sync>,
    stages: Stages,
}

impl HandshakeReporter {
    pub(crate) fn new(
        handshaken: impl Fn(ServiceId) + Send + Sync + 'static,
        stages: Stages,
    ) -> Self {
        Self { handshaken: Box::new(handshaken), stages }
    }

    /// The connection enters a stage of its establishment, which ends the stage before it. For the stages
    /// in metrics and spans: without these calls there are none. A call in the same stage does nothing.
    pub fn entered(&self, stage: Stage) {
        self.stages.enter(stage);
    }

    /// Hello is done, and the server belongs to this service. To be called once, and only in
    /// load-balanced mode: from now on a clear of that service concerns the connection.
    ///
    /// # Panics
    ///
    /// On the second call, and for a pool that is not load-balanced.
    pub fn handshaken(&self, service: ServiceId) {
        (self.handshaken)(service);
    }

    #[cfg(feature = "tls")]
    pub(super) const fn stages(&self) -> &Stages {
        &self.stages
    }
}

impl fmt::Debug for HandshakeReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeReporter").finish_non_exhaustive()
    }
}
