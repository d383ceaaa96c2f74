//! tokio as a runtime whose connections are pipes in memory.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Instant;

use tokio::io::DuplexStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

use super::Connection;
use crate::event::PoolEvent;
use crate::runtime::fork::ForkError;
use crate::runtime::{CurrentRuntime, Network, Runtime};

/// What a server does with the address that a client connects to.
type Accept = dyn Fn(SocketAddr) -> Attempt + Send + Sync;

pub(super) enum Attempt {
    Connected(DuplexStream),
    Refused,
    /// With that number of the operating system.
    Fails(i32),
    /// Neither, for ever.
    Silent,
}

#[derive(Clone)]
pub(super) struct TestRuntime {
    accept: Arc<Accept>,
}

impl TestRuntime {
    pub(super) fn new(accept: impl Fn(SocketAddr) -> Attempt + Send + Sync + 'static) -> Self {
        Self { accept: Arc::new(accept) }
    }
}

impl std::fmt::Debug for TestRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestRuntime").finish_non_exhaustive()
    }
}

impl Runtime for TestRuntime {
    type Mutex<T: Send + 'static> = Mutex<T>;
    type Waiter = Waker;
    type Instant = tokio::time::Instant;
    type Task = AbortHandle;
    type EventSender = UnboundedSender<PoolEvent>;

    const PROGRAM: &'static str = "test";

    fn now() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn wake(waker: Waker) {
        waker.wake();
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        tokio::spawn(work).abort_handle()
    }

    fn abort(task: AbortHandle) {
        task.abort();
    }

    fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + Send + 'static {
        tokio::time::sleep_until(at.into())
    }

    fn send_event(sender: &UnboundedSender<PoolEvent>, event: PoolEvent) {
        drop(sender.send(event));
    }

    fn after_fork(&self) -> Result<Self, ForkError> {
        Err(ForkError::InheritedRuntime)
    }
}

impl CurrentRuntime for TestRuntime {
    fn current() -> Self {
        Self::new(|_| Attempt::Refused)
    }
}

impl Network for TestRuntime {
    type Stream = Compat<DuplexStream>;
    type OpenSocket = DuplexStream;
    type Connection = Connection<Self>;

    async fn resolve(&self, host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        Err(io::Error::other(format!("{host} is not known")))
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<Self::Stream> {
        match (self.accept)(address) {
            Attempt::Connected(stream) => Ok(stream.compat()),
            Attempt::Refused => Err(io::ErrorKind::ConnectionRefused.into()),
            Attempt::Fails(code) => Err(io::Error::from_raw_os_error(code)),
            Attempt::Silent => std::future::pending().await,
        }
    }

    fn adopt(&self, socket: DuplexStream) -> io::Result<Self::Stream> {
        Ok(socket.compat())
    }

    async fn unblock<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        Ok(work())
    }
}
