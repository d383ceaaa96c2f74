use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use cenote_shell::dial::prepare;
use cenote_shell::event::PoolEvent;
use cenote_shell::fork::ForkError;
use cenote_shell::runtime::{BoxedStream, CurrentRuntime, Network, Runtime};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{AbortHandle, coop};

use crate::stream::{OpenStream, TokioStream};

/// A tokio runtime that pools and clients live on.
#[derive(Clone, Debug)]
pub struct Tokio {
    handle: Handle,
}

impl From<Handle> for Tokio {
    fn from(handle: Handle) -> Self {
        Self { handle }
    }
}

impl Runtime for Tokio {
    type Mutex<T: Send + 'static> = std::sync::Mutex<T>;
    type Waiter = Waker;
    type Instant = tokio::time::Instant;
    type Task = AbortHandle;
    type EventSender = UnboundedSender<PoolEvent>;

    const PROGRAM: &'static str = concat!("cenote-tokio ", env!("CARGO_PKG_VERSION"));

    /// tokio's clock, which a test may have paused.
    fn now() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn wake(waker: Waker) {
        waker.wake();
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.handle.spawn(work).abort_handle()
    }

    fn abort(task: AbortHandle) {
        task.abort();
    }

    /// On the caller's runtime, if there is one: it may outlive the pool's.
    fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + Send + 'static {
        let _context = Handle::try_current().is_err().then(|| self.handle.enter());
        tokio::time::sleep_until(at.into())
    }

    fn send_event(sender: &UnboundedSender<PoolEvent>, event: PoolEvent) {
        drop(sender.send(event));
    }

    /// Check-outs take part in tokio's budget, as all of its resources do.
    fn poll_cooperatively<T>(
        cx: &mut Context<'_>,
        work: impl FnOnce(&Waker) -> Poll<T>,
    ) -> Poll<T> {
        let budget = ready!(coop::poll_proceed(cx));
        let outcome = work(cx.waker());
        if outcome.is_ready() {
            budget.made_progress();
        }
        outcome
    }

    fn after_fork(&self) -> Result<Self, ForkError> {
        let handle = Handle::try_current().map_err(|_| ForkError::NoRuntime)?;
        if handle.id() == self.handle.id() {
            return Err(ForkError::InheritedRuntime);
        }
        Ok(Self { handle })
    }
}

impl CurrentRuntime for Tokio {
    /// # Panics
    ///
    /// Outside of a tokio runtime, or in one without time.
    fn current() -> Self {
        // Panics where there is no time: here, and not in the pool's timer when a deadline is due.
        drop(tokio::time::sleep(Duration::ZERO));
        Self { handle: Handle::current() }
    }
}

impl Network for Tokio {
    type Stream = BoxedStream;
    type OpenSocket = OpenStream;
    type Connection = cenote_shell::connection::Connection<Self>;

    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(lookup_host((host, port)).await?.collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<BoxedStream> {
        let stream = TcpStream::connect(address).await?;
        prepare(&stream)?;
        Ok(Box::new(TokioStream(stream)))
    }

    async fn connect_unix(&self, path: &str) -> io::Result<BoxedStream> {
        Ok(Box::new(TokioStream(UnixStream::connect(path).await?)))
    }

    fn adopt(&self, stream: OpenStream) -> io::Result<BoxedStream> {
        Ok(stream.into_inner())
    }

    /// Fails when the runtime shuts down.
    async fn unblock<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        self.handle.spawn_blocking(work).await.map_err(io::Error::other)
    }
}
