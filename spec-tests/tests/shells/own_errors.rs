//! A driver's own error type, through a pool with real sockets.

use std::time::Duration;

use cenote_core::error::{ConnectionError, PoolError, RetryWrites, Stage};
use cenote_core::uri::ConnectionString;
use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};
use cenote_shell::connection::{Connector, HandshakeReporter, MongoConnector, Target};
use cenote_shell::runtime::Network;
use thiserror::Error;

/// What the driver says of a connection.
#[derive(Debug, Error)]
#[error("connection {connection} to the driver's cluster: {error}")]
struct DriverError {
    connection: u64,
    #[source]
    error: ConnectionError,
}

impl From<DriverError> for ConnectionError {
    fn from(error: DriverError) -> Self {
        error.error.clone().with_source(error)
    }
}

struct Driver<R>(MongoConnector<R>);

impl<R: Network> Connector<R> for Driver<R> {
    type Connection = R::Connection;
    type Error = DriverError;

    async fn connect(
        &self,
        target: Target<R>,
        reporter: HandshakeReporter,
    ) -> Result<R::Connection, DriverError> {
        let connection = target.connection_id;
        let connected = self.0.connect(target, reporter).await;
        connected.map_err(|error| DriverError { connection, error })
    }

    fn connect_timeout(&self) -> Option<Duration> {
        self.0.connect_timeout()
    }
}

/// A server that knows another password, and the connection string with the wrong one.
fn refusing() -> (Endpoint, ConnectionString) {
    let users = vec![User::new("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it listens");
    let uri = endpoint.uri_of(Some(&User::new("app", "eraser")));
    (endpoint, ConnectionString::parse(&uri).expect("a connection string"))
}

/// An address at which no server listens.
fn absent() -> ConnectionString {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let uri = format!("mongodb://{}", listener.local_addr().expect("its address"));
    ConnectionString::parse(&uri).expect("a connection string")
}

#[track_caller]
fn assert_passed_on(error: &PoolError, stage: Stage, labels: &[&str]) {
    let cause = error.cause().expect("a failed establishment");
    assert_eq!(cause.stage(), stage, "{error}");
    assert_eq!(error.labels(RetryWrites::Disabled).collect::<Vec<_>>(), labels);
    let own = cause.source_as::<DriverError>().expect("the driver's error");
    assert_eq!(own.connection, 1);
    assert_eq!(own.error.stage(), stage);
}

const OVERLOAD: [&str; 2] = ["SystemOverloadedError", "RetryableError"];

#[tokio::test]
async fn on_tokio_they_come_back_as_they_were() {
    async fn fail(uri: &ConnectionString) -> PoolError {
        let connector = Driver(MongoConnector::new(uri).expect("no files"));
        let builder = cenote_tokio::Builder::new(uri.hosts[0].clone(), connector);
        let pool: cenote_tokio::Pool<Driver<cenote_tokio::Tokio>> =
            builder.build().expect("good options");
        pool.ready();
        pool.check_out().await.expect_err("no connection")
    }
    let (_endpoint, uri) = refusing();
    assert_passed_on(&fail(&uri).await, Stage::Authentication, &[]);
    assert_passed_on(&fail(&absent()).await, Stage::Tcp, &OVERLOAD);
}

#[test]
fn on_mio_they_come_back_as_they_were() {
    fn fail(uri: &ConnectionString) -> PoolError {
        let connector = Driver(MongoConnector::new(uri).expect("no files"));
        let builder = cenote_mio::Builder::new(uri.hosts[0].clone(), connector);
        let pool: cenote_mio::Pool<Driver<cenote_mio::EventLoop>> =
            builder.build().expect("good options");
        pool.ready();
        pool.check_out().expect_err("no connection")
    }
    let (_endpoint, uri) = refusing();
    assert_passed_on(&fail(&uri), Stage::Authentication, &[]);
    assert_passed_on(&fail(&absent()), Stage::Tcp, &OVERLOAD);
}
