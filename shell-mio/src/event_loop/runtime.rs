//! The event loop as a runtime of [`cenote_shell`].

use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc::Sender;
use std::time::Instant;

use cenote_shell::connection::dial;
use cenote_shell::event::PoolEvent;
use cenote_shell::runtime::fork::ForkError;
use cenote_shell::runtime::{Network, Runtime};
use mio::net::TcpStream;
use parking::Unparker;

use super::{EventLoop, OpenSocket, Socket, Watched};
use crate::connection::Connection;
use crate::source::Answered;

/// A task on the event loop.
#[derive(Debug)]
pub struct Task {
    event_loop: EventLoop,
    number: u64,
}

/// What is woken when a check-out has its answer.
#[non_exhaustive]
pub enum Waiter {
    /// A thread that blocks.
    Thread(Unparker),
    /// The application's loop, which finds the check-out in its queue of answered ones.
    Loop(Answered),
}

impl Runtime for EventLoop {
    type Mutex<T: Send + 'static> = Mutex<T>;
    type Waiter = Waiter;
    type Instant = Instant;
    type Task = Task;
    type EventSender = Sender<PoolEvent>;

    const PROGRAM: &'static str = concat!("cenote-mio ", env!("CARGO_PKG_VERSION"));
    const CALLERS_BLOCK: bool = true;

    fn wake(waiter: Waiter) {
        match waiter {
            Waiter::Thread(thread) => drop(thread.unpark()),
            Waiter::Loop(answered) => answered.notify(),
        }
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Task {
        Task { event_loop: self.clone(), number: self.start(work) }
    }

    fn abort(task: Task) {
        task.event_loop.stop(task.number);
    }

    fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + Send + 'static {
        Self::sleep_until(self, at)
    }

    fn send_event(sender: &Sender<PoolEvent>, event: PoolEvent) {
        drop(sender.send(event));
    }

    /// A child process needs a thread to turn another loop, which a command should not start: an explicit
    /// [`Pool::reset_after_fork`](crate::Pool::reset_after_fork) does.
    fn after_fork(&self) -> Result<Self, ForkError> {
        Err(ForkError::NotReset)
    }

    /// A socket that is closed in a child process stays open and registered in the parent.
    fn discard_inherited<T>(inherited: T) {
        drop(inherited);
    }
}

impl Network for EventLoop {
    type Stream = Watched<Socket>;
    type OpenSocket = OpenSocket;
    type Connection = Connection;

    /// On up to 16 threads. An [embedded](crate::PoolSource) pool, which has no threads, needs addresses instead of
    /// names, or [a resolver](crate::MongoConnector::with_resolver).
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.check_threads()?;
        self.inner.resolver.resolve(host, port).await
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<Watched<Socket>> {
        let mut stream = self.watch(TcpStream::connect(address)?)?;
        stream.ready(|stream| check_connected(stream.take_error()?, stream.peer_addr())).await?;
        dial::prepare(&*stream)?;
        Ok(stream.map(Socket::Tcp))
    }

    #[cfg(unix)]
    async fn connect_unix(&self, path: &str) -> io::Result<Watched<Socket>> {
        let mut stream = self.watch(mio::net::UnixStream::connect(path)?)?;
        stream.ready(|stream| check_connected(stream.take_error()?, stream.peer_addr())).await?;
        Ok(stream.map(Socket::Unix))
    }

    fn adopt(&self, socket: OpenSocket) -> io::Result<Watched<Socket>> {
        self.watch(Socket::try_from(socket)?)
    }

    /// On a thread of its own; at once in an [embedded](crate::PoolSource) pool, which has none.
    async fn unblock<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> io::Result<R> {
        if self.is_embedded() { Ok(work()) } else { self.on_thread(work).await }
    }
}

/// Whether a socket has finished connecting: [`WouldBlock`](ErrorKind::WouldBlock) if not yet.
fn check_connected<A>(error: Option<io::Error>, peer: io::Result<A>) -> io::Result<()> {
    match (error, peer) {
        (Some(error), _) => Err(error),
        (None, Ok(_)) => Ok(()),
        (None, Err(error)) if error.kind() == ErrorKind::NotConnected => {
            Err(ErrorKind::WouldBlock.into())
        }
        (None, Err(error)) => Err(error),
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Thread(_) => "Waiter::Thread",
            Self::Loop(_) => "Waiter::Loop",
        })
    }
}
