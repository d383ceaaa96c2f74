//! Connections of the tokio shell on the simulated network.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::uri::ConnectionString;
use cenote_shell::connection::DrainReporter;
use cenote_shell::runtime::{CurrentRuntime as _, timeout_at};
use cenote_tokio::{Connection, Connector, HandshakeReporter, MongoConnector, Target, Tokio};
use tokio::time::Instant;
use turmoil::net::TcpStream;

use crate::worlds::endpoint::{NAME, PORT};

pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_000);

/// For each wait of a command.
pub(crate) const SOCKET_TIMEOUT: Duration = Duration::from_millis(800);

/// The shell's own establishment, on sockets of the simulation.
pub(crate) struct Simulated {
    mongo: MongoConnector,
    /// Connections, open and being opened, that exist.
    pub(crate) alive: Alive,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Alive(Arc<AtomicU32>);

/// Counts as long as it exists.
struct Counted(Alive);

pub(crate) struct Socket {
    pub(crate) connection: Connection,
    /// As the server knows the client's end.
    pub(crate) address: String,
    _counted: Counted,
}

impl Simulated {
    pub(crate) fn new() -> Self {
        let (connect, socket) = (CONNECT_TIMEOUT.as_millis(), SOCKET_TIMEOUT.as_millis());
        let uri = format!("mongodb://{NAME}/?connectTimeoutMS={connect}&socketTimeoutMS={socket}");
        let uri = ConnectionString::parse(&uri).expect("a connection string");
        Self { mongo: MongoConnector::new(&uri).expect("nothing to read"), alive: Alive::default() }
    }
}

impl Connector<Tokio> for Simulated {
    type Connection = Socket;
    type Error = ConnectionError;

    async fn connect(
        &self,
        target: Target,
        progress: HandshakeReporter,
    ) -> Result<Socket, ConnectionError> {
        let counted = self.alive.count();
        // For opening and for what comes after that together.
        let limit = Instant::now() + CONNECT_TIMEOUT;
        let runtime = Tokio::current();
        let connecting = TcpStream::connect((NAME, PORT));
        let stream = match timeout_at(&runtime, limit.into_std(), pin!(connecting)).await {
            Some(Ok(stream)) => stream,
            Some(Err(error)) => return Err(ConnectionError::network(Stage::Tcp, error)),
            None => return Err(ConnectionError::timeout(Stage::Tcp, CONNECT_TIMEOUT)),
        };
        let address = stream.local_addr().expect("an address").to_string();
        let establishing = self.mongo.establish(stream, &target, &progress);
        let established = timeout_at(&runtime, limit.into_std(), pin!(establishing)).await;
        let timed_out = || ConnectionError::timeout(Stage::Hello, CONNECT_TIMEOUT);
        let connection = established.ok_or_else(timed_out)??;
        Ok(Socket { connection, address, _counted: counted })
    }

    fn pending_response(&self, socket: &Socket) -> Option<i32> {
        self.mongo.pending_response(&socket.connection)
    }

    async fn drain(
        &self,
        runtime: Tokio,
        socket: Socket,
        reporter: DrainReporter,
    ) -> Result<Socket, ConnectionError> {
        let Socket { connection, address, _counted } = socket;
        let connection = self.mongo.drain(runtime, connection, reporter).await?;
        Ok(Socket { connection, address, _counted })
    }

    fn fault(&self, socket: &Socket) -> Option<ConnectionError> {
        self.mongo.fault(&socket.connection)
    }
}

impl Alive {
    pub(crate) fn count_now(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    fn count(&self) -> Counted {
        self.0.fetch_add(1, Ordering::SeqCst);
        Counted(self.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}
