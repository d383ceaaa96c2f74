use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::catch_unwind;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker, ready};
use std::thread;
use std::time::{Duration, Instant};

use cenote_shell::connection::dial::prepare;
use cenote_shell::event::PoolEvent;
use cenote_shell::runtime::fork::ForkError;
use cenote_shell::runtime::system_resolver::SystemResolver;
use cenote_shell::runtime::{CurrentRuntime, Network, Runtime};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet, coop};

use crate::stream::{self, OpenStream, TokioIo};

/// A tokio runtime that pools and clients live on.
#[derive(Clone, Debug)]
pub struct Tokio {
    handle: Handle,
    resolver: SystemResolver,
}

impl From<Handle> for Tokio {
    fn from(handle: Handle) -> Self {
        Self { handle, resolver: SystemResolver::default() }
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

    /// On the caller's runtime, if there is one with time: it may outlive the pool's.
    fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + Send + 'static {
        let is_inside = Handle::try_current().is_ok();
        // A runtime says by a panic, and in no other way, that it was built without time.
        let on_callers = is_inside.then(|| catch_unwind(|| tokio::time::sleep_until(at.into())));
        let sleep = on_callers.and_then(Result::ok).ok_or_else(|| self.handle.clone());
        async move {
            match sleep {
                Ok(sleep) => sleep.await,
                Err(pools) => sleep_elsewhere(&pools, at).await,
            }
        }
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
        Ok(handle.into())
    }
}

/// Sleeps on the pool's runtime, for a caller without a timer; on a thread if that runtime has ended.
async fn sleep_elsewhere(pools: &Handle, at: Instant) {
    let mut tasks = JoinSet::new(); // Aborts the task when it is dropped.
    tasks.spawn_on(async move { tokio::time::sleep_until(at.into()).await }, pools);
    if tasks.join_next().await.is_some_and(|joined| joined.is_ok()) {
        return;
    }
    let (done, is_done) = oneshot::channel::<()>();
    let (_waits, is_given_up) = mpsc::channel::<Infallible>();
    thread::spawn(move || {
        let left = at.saturating_duration_since(Instant::now());
        let _ = is_given_up.recv_timeout(left);
        drop(done);
    });
    let _ = is_done.await;
}

impl CurrentRuntime for Tokio {
    /// # Panics
    ///
    /// Outside of a tokio runtime, or in one without time.
    fn current() -> Self {
        // Panics where there is no time: here, and not in the pool's timer when a deadline is due.
        drop(tokio::time::sleep(Duration::ZERO));
        Handle::current().into()
    }
}

impl Network for Tokio {
    type Stream = Box<dyn TokioIo>;
    type OpenSocket = OpenStream;
    type Connection = cenote_shell::connection::Connection<Self>;

    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.resolver.resolve(host, port).await
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn TokioIo>> {
        let stream = TcpStream::connect(address).await?;
        prepare(&stream)?;
        Ok(stream::tcp(stream))
    }

    #[cfg(unix)]
    async fn connect_unix(&self, path: &str) -> io::Result<Box<dyn TokioIo>> {
        Ok(stream::unix(tokio::net::UnixStream::connect(path).await?))
    }

    fn adopt(&self, stream: OpenStream) -> io::Result<Box<dyn TokioIo>> {
        Ok(stream.into_inner())
    }

    fn is_readable(stream: &mut Box<dyn TokioIo>) -> Option<bool> {
        stream.is_readable()
    }

    /// Fails when the runtime shuts down.
    async fn unblock<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        self.handle.spawn_blocking(work).await.map_err(io::Error::other)
    }
}
