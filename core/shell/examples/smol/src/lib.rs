//! smol as a runtime of [`cenote_shell`]: everything that another runtime has to implement.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex};
use std::task::Waker;
use std::time::Instant;

use cenote_shell::connection::dial::prepare;
use cenote_shell::event::PoolEvent;
use cenote_shell::runtime::fork::ForkError;
use cenote_shell::runtime::system_resolver::SystemResolver;
use cenote_shell::runtime::{BoxedStream, CurrentRuntime, Network, Runtime};
use smol::net::TcpStream;

/// smol's global executor.
#[derive(Clone, Copy, Debug)]
pub struct Smol;

static RESOLVER: LazyLock<SystemResolver> = LazyLock::new(SystemResolver::default);

impl Runtime for Smol {
    type Mutex<T: Send + 'static> = Mutex<T>;
    type Waiter = Waker;
    type Instant = Instant;
    type Task = smol::Task<()>;
    type EventSender = smol::channel::Sender<PoolEvent>;

    const PROGRAM: &'static str = concat!("cenote-smol ", env!("CARGO_PKG_VERSION"));

    fn wake(waker: Waker) {
        waker.wake();
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> smol::Task<()> {
        smol::spawn(work)
    }

    fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + Send + 'static {
        let timer = smol::Timer::at(at);
        async move { _ = timer.await }
    }

    fn send_event(sender: &smol::channel::Sender<PoolEvent>, event: PoolEvent) {
        drop(sender.try_send(event));
    }

    fn after_fork(&self) -> Result<Self, ForkError> {
        Err(ForkError::InheritedRuntime) // The executor's threads do not exist in a child process.
    }
}

impl CurrentRuntime for Smol {
    fn current() -> Self {
        Self
    }
}

impl Network for Smol {
    type Stream = BoxedStream;
    type OpenSocket = BoxedStream;
    type Connection = Connection;

    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        RESOLVER.resolve(host, port).await
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<BoxedStream> {
        let stream = TcpStream::connect(address).await?;
        prepare(&stream)?;
        Ok(Box::new(stream))
    }

    #[cfg(unix)]
    async fn connect_unix(&self, path: &str) -> io::Result<BoxedStream> {
        Ok(Box::new(smol::net::unix::UnixStream::connect(path).await?))
    }

    fn adopt(&self, stream: BoxedStream) -> io::Result<BoxedStream> {
        Ok(stream)
    }

    async fn unblock<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        Ok(smol::unblock(work).await)
    }
}

/// A pool on smol.
pub type Pool<K = MongoConnector> = cenote_shell::pool::Pool<Smol, K>;
/// Opens connections on smol.
pub type MongoConnector = cenote_shell::connection::MongoConnector<Smol>;
/// A connection on smol.
pub type Connection = cenote_shell::connection::Connection<Smol>;
/// A client on smol.
pub type Client = cenote_shell::client::Client<Smol>;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
