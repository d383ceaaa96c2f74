//! What a shell needs of the runtime that it runs on: [`Runtime`] for the pool, [`Network`] for
//! connections that the shell opens itself.
//!
//! tokio, mio and smol each implement these traits in about a page. Everything else (the lock and when
//! the clock is read, check-outs and their cancellation, establishment, monitors, the client) is written
//! once, generic over them, and dispatched statically.

pub mod fork;
#[cfg(feature = "tls")]
pub(crate) mod lookup;
pub mod origin;
pub mod platform;
pub mod process;
pub(crate) mod reentrancy;
pub mod signal;
#[cfg(feature = "tls")]
pub mod system_resolver;
pub mod wake_list;

use std::fmt;
use std::future::Future;
use std::mem;
use std::ops::DerefMut;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
#[cfg(feature = "tls")]
use std::{io, net::SocketAddr};

use futures_io::{AsyncRead, AsyncWrite};

#[cfg(feature = "tls")]
use crate::connection::OpenedConnection;
use crate::event::PoolEvent;
use crate::runtime::fork::ForkError;

/// A runtime: tasks, a timer, a lock, and a way to wake a caller that waits.
///
/// A value of this type is a handle; clones are the same runtime. Types of the shell take it as their first
/// parameter:
///
/// ```no_run
/// use cenote_shell::connection::MongoConnector;
/// use cenote_shell::pool::Pool;
/// use cenote_smol::Smol; // Or another runtime.
///
/// async fn ping() -> Result<(), Box<dyn std::error::Error>> {
///     let pool = Pool::<Smol, MongoConnector<Smol>>::connect_to("mongodb://db.example.com")?;
///     pool.ready();
///     pool.check_out().await?.command("admin", &bson::rawdoc! { "ping": 1 }).await?;
///     Ok(())
/// }
/// ```
pub trait Runtime: Clone + fmt::Debug + Send + Sync + 'static {
    /// The lock around a pool. [`std::sync::Mutex`], unless a model checker brings its own.
    type Mutex<T: Send + 'static>: Lock<T>;

    /// Wakes a caller that waits for a connection: a [`Waker`] for asynchronous
    /// callers, an unparker for callers that block.
    type Waiter: Send + 'static;

    /// The runtime's type for points in time, in which callers give their deadlines.
    type Instant: Copy + fmt::Debug + Send + Sync + From<Instant> + Into<Instant> + 'static;

    /// A spawned task. The pool drops the handle when the task has ended or is to be
    /// [aborted](Self::abort), so that a handle whose drop cancels the task is fine.
    type Task: Send + 'static;

    /// The sending half of the channel that [`Builder::event_channel`](crate::builder::Builder::event_channel)
    /// takes.
    type EventSender: Send + Sync + 'static;

    /// The program that traces name as their origin: name and version.
    const PROGRAM: &'static str;

    /// Whether callers block their thread. Then `close` must know when it is called from a callback of
    /// the same pool, because it would wait for itself.
    const CALLERS_BLOCK: bool = false;

    /// The time now. A runtime with a clock of its own, such as tokio's paused one, reads that.
    fn now() -> Instant {
        Instant::now()
    }

    /// Wakes a waiter. Called without a lock. A panic in it does not reach the pool.
    fn wake(waiter: Self::Waiter);

    /// Runs a future to its end. A runtime that has shut down drops it.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Self::Task;

    /// Drops a task's future as soon as it does not run. Need not wait for that.
    fn abort(task: Self::Task) {
        drop(task);
    }

    /// Waits until that time. Must be called for as long as the runtime runs only.
    fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + Send + 'static;

    /// Sends an event, unless the receiver is gone.
    fn send_event(sender: &Self::EventSender, event: PoolEvent);

    /// Runs the first poll of a check-out. A runtime with cooperative scheduling answers `Pending` instead,
    /// and wakes the task, when the task has to yield first.
    fn poll_cooperatively<T>(
        cx: &mut Context<'_>,
        work: impl FnOnce(&Waker) -> Poll<T>,
    ) -> Poll<T> {
        work(cx.waker())
    }

    /// The runtime on which a pool goes on by itself in a child process, where `self` is the parent's.
    ///
    /// # Errors
    ///
    /// There is none here: then connections fail until the pool is reset.
    fn after_fork(&self) -> Result<Self, ForkError>;

    /// Disposes of tasks, wakers and connections that belong to the parent process. The default forgets
    /// them: dropping a socket whose registration is shared with the parent would deregister the parent's.
    fn discard_inherited<T>(inherited: T) {
        mem::forget(inherited);
    }
}

/// A stream of any type: what a [`Network`] connects to, unless its connections need to know more of it.
pub type BoxedStream = Box<dyn AsyncStream>;

/// Reads and writes bytes asynchronously.
pub trait AsyncStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> AsyncStream for S {}

/// A runtime that can be found where the caller is: what builders of asynchronous pools run on.
pub trait CurrentRuntime: Runtime<Waiter = Waker> {
    /// The runtime of the calling task or thread.
    ///
    /// # Panics
    ///
    /// Where there is none.
    fn current() -> Self;
}

/// A runtime that opens connections to MongoDB servers (feature `tls`).
#[cfg(feature = "tls")]
pub trait Network: Runtime {
    /// A socket on the runtime: TCP or a Unix domain socket.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// A connected socket that an application brings for
    /// [`MongoConnector::establish`](crate::connection::MongoConnector::establish).
    type OpenSocket: Send;

    /// What a pool hands out. [`Connection`](crate::connection::Connection), unless callers block.
    type Connection: OpenedConnection<Self>;

    /// The addresses of a host name, in the system's order of preference. A runtime without a resolver of its own has a
    /// [`SystemResolver`](system_resolver::SystemResolver): its threads for work that blocks belong to the application.
    fn resolve(
        &self,
        host: &str,
        port: u16,
    ) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;

    /// Connects to one address, and [prepares](crate::connection::dial::prepare) the socket.
    fn connect(&self, address: SocketAddr)
    -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Connects to a Unix domain socket. The default is for operating systems without them.
    ///
    /// # Errors
    ///
    /// Those of the operating system; by default [`Unsupported`](io::ErrorKind::Unsupported).
    fn connect_unix(&self, path: &str) -> impl Future<Output = io::Result<Self::Stream>> + Send {
        let _ = path;
        let reason = "Unix domain sockets are not supported on this operating system";
        std::future::ready(Err(io::Error::new(io::ErrorKind::Unsupported, reason)))
    }

    /// Puts a socket of the application's on the runtime.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    fn adopt(&self, socket: Self::OpenSocket) -> io::Result<Self::Stream>;

    /// Whether a read would find bytes, the end or an error now, if that is known without a call that could
    /// change anything: asked before each check-out, of the connection that it would get. With `None`, the
    /// default, a read tries.
    fn is_readable(stream: &mut Self::Stream) -> Option<bool> {
        let _ = stream;
        None
    }

    /// Runs work that blocks for some milliseconds, such as PBKDF2, where it does not delay other tasks.
    fn unblock<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = io::Result<R>> + Send;
}

/// A mutual exclusion lock that a panic does not poison.
pub trait Lock<T>: Send + Sync + 'static {
    /// Holds the lock until it is dropped.
    type Guard<'a>: DerefMut<Target = T>
    where
        T: 'a;

    /// A lock that is free.
    fn new(value: T) -> Self;

    /// Waits for the lock.
    fn lock(&self) -> Self::Guard<'_>;

    /// The lock, if it is free.
    fn try_lock(&self) -> Option<Self::Guard<'_>>;
}

impl<T: Send + 'static> Lock<T> for Mutex<T> {
    type Guard<'a> = MutexGuard<'a, T>;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A timer that fires so late did not run in time: the process was stopped, or had no processor.
const LATE: Duration = Duration::from_millis(100);

/// How long the process then has to read what has come meanwhile.
const CATCH_UP: Duration = Duration::from_millis(100);

/// Waits until a deadline of something that others do, such as a reply. If this process did not run at that
/// time, it waits a little longer: what came in time and was not read counts. So it does for a deadline that
/// was already long past: the process may have been stopped between two steps of an establishment.
pub async fn deadline<R: Runtime>(runtime: R, at: Instant) {
    runtime.sleep_until(at).await;
    if R::now().saturating_duration_since(at) >= LATE {
        runtime.sleep_until(R::now() + CATCH_UP).await;
    }
}

/// Waits for `work` until a [`deadline`]; `None` if it is not done then. `work` comes first at the same moment.
///
/// It is pinned by the caller: an asynchronous function has room for a future that it is given and for the same future pinned.
pub async fn timeout_at<R: Runtime, T>(
    runtime: &R,
    at: Instant,
    work: impl Future<Output = T> + Unpin,
) -> Option<T> {
    before(pin!(deadline(runtime.clone(), at)), work).await
}

/// As [`timeout_at`], but never waits longer, also if this process did not run at that time: for a time that
/// a caller is ready to wait.
pub async fn timeout_exactly_at<R: Runtime, T>(
    runtime: &R,
    at: Instant,
    work: impl Future<Output = T> + Unpin,
) -> Option<T> {
    before(pin!(runtime.sleep_until(at)), work).await
}

async fn before<T>(
    mut sleep: impl Future<Output = ()> + Unpin,
    mut work: impl Future<Output = T> + Unpin,
) -> Option<T> {
    std::future::poll_fn(|cx| match Pin::new(&mut work).poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => Pin::new(&mut sleep).poll(cx).map(|()| None),
    })
    .await
}

/// Runs code of the application, whose panics end here: the panic hook has reported them. `None`: it has panicked.
pub fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
    // What it panicked with may panic when it is dropped.
    catch_unwind(AssertUnwindSafe(work)).map_err(mem::forget).ok()
}

/// Lets the other tasks of the runtime go on.
pub(crate) async fn yield_once() {
    let mut has_yielded = false;
    std::future::poll_fn(|cx| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
