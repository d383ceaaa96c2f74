//! Connections on sockets that a connector of one's own has opened.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Kind, Stage};
use cenote_core::pool::CheckOutError;
use cenote_core::uri::ConnectionString;
use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};
use cenote_mio::{
    Builder, Connection, Connector, EventLoop, HandshakeReporter, Interrupter, MongoConnector,
    OperationError, Pool, Target,
};

use super::world::checked;
use crate::world::plain;
use crate::world::{block_ping, until_seen};

/// Connects in its own way, which blocks, and leaves everything else to [`MongoConnector`].
struct Own(MongoConnector);

impl Own {
    fn pool(uri: &str) -> Pool<Self> {
        let uri = ConnectionString::parse(uri).expect("a connection string");
        let mongo = MongoConnector::new(&uri).expect("no files");
        let builder = checked(Builder::new(uri.hosts[0].clone(), Self(mongo)));
        let pool = builder.build().expect("good options");
        pool.ready();
        pool
    }
}

impl Connector<EventLoop> for Own {
    type Connection = Connection;
    type Error = ConnectionError;

    const LOOKS_AT_IDLE: bool = true;

    async fn connect(
        &self,
        target: Target,
        progress: HandshakeReporter,
    ) -> Result<Connection, ConnectionError> {
        let address = target.address.to_string();
        let connected = target.runtime.on_thread(|| TcpStream::connect(address)).await;
        let socket = connected.and_then(|connected| connected);
        let socket = socket.map_err(|error| ConnectionError::network(Stage::Tcp, error))?;
        self.0.establish(socket, &target, &progress).await
    }

    fn fault(&self, connection: &Connection) -> Option<ConnectionError> {
        self.0.fault(connection)
    }

    fn idle_fault(&self, connection: &mut Connection) -> Option<ConnectionError> {
        self.0.idle_fault(connection)
    }

    fn interrupter(&self, connection: &Connection) -> Option<Interrupter> {
        self.0.interrupter(connection)
    }
}

fn ping(pool: &Pool<Own>) -> Result<(), OperationError> {
    let mut connection = pool.check_out().expect("a connection");
    connection.run(|it| it.command("admin", &rawdoc! { "ping": 1 })).map(drop)
}

#[test]
fn they_log_in_and_are_used_again() {
    let users = vec![User::new("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).unwrap();
    let pool = Own::pool(&endpoint.uri());
    for _ in 0..3 {
        ping(&pool).unwrap();
    }
    assert_eq!(pool.snapshot().connections_created, 1);
    pool.close();
}

#[test]
fn an_interrupt_ends_what_is_done_on_them() {
    let endpoint = plain();
    let pool = Own::pool(&endpoint.uri());
    block_ping(&endpoint, 60_000);
    let running = thread::spawn({
        let pool = pool.clone();
        move || ping(&pool).unwrap_err()
    });
    until_seen(&endpoint, 1);
    pool.clear(ConnectionError::timeout(Stage::Hello, Duration::from_secs(10)), true);
    let error = running.join().unwrap();
    assert!(matches!(error, OperationError::Interrupted(_)), "{error}");
}

/// A server that accepts, and never sends a byte.
#[test]
fn silence_ends_in_time() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let pool = Own::pool(&format!("mongodb://{address}/?connectTimeoutMS=50"));
    let error = pool.check_out().unwrap_err();
    let CheckOutError::EstablishFailed { cause } = error.error() else { panic!("{error}") };
    assert_eq!(cause.stage(), Stage::Hello);
    assert!(matches!(cause.kind(), Kind::NetworkTimeout { .. }), "{cause}");
}
