use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cenote_core::address::ServerAddress;
use cenote_core::error::InterruptedError;
use futures_io::{AsyncRead, AsyncWrite};

use super::connector::Connector;
use crate::connection::interrupt::Interrupt;
use crate::pool::{GuardParts, PooledConnection};
use crate::runtime::Runtime;
use crate::runtime::signal::Listener;

/// A checked-out connection as a stream that fails when the pool interrupts the connection: pending
/// and later reads and writes return [`ErrorKind::ConnectionAborted`] with an [`InterruptedError`]
/// inside.
///
/// Made by [`PooledConnection::interruptible`](crate::pool::PooledConnection::interruptible).
/// Implements the I/O traits of futures-io if the connection does, and tokio's (feature `tokio`) if
/// the connection does.
pub struct Interruptible<'c, S> {
    stream: &'c mut S,
    guard: InterruptGuard<'c>,
}

/// Fails I/O once a connection is interrupted. A reader and a writer may be different tasks, so
/// each direction has a listener, allocated when it waits for the first time.
pub(super) struct InterruptGuard<'c> {
    interrupt: &'c Interrupt,
    address: &'c Arc<ServerAddress>,
    reading: Option<Listener<'c>>,
    writing: Option<Listener<'c>>,
}

#[derive(Clone, Copy)]
pub(super) enum Direction {
    Reading,
    Writing,
}

impl<R: Runtime<Waiter = Waker>, K: Connector<R>> PooledConnection<R, K> {
    /// The connection as a stream that fails when the pool interrupts the connection: for drivers
    /// whose [`Connector`] makes streams. Whether the connection is healthy when it is checked in
    /// is up to [`Connector::fault`] and [`mark_errored`](Self::mark_errored).
    ///
    /// Allocates when it waits for the first time, in each direction. [`run`](Self::run) and
    /// [`interrupted`](Self::interrupted) do without.
    pub fn interruptible(&mut self) -> Interruptible<'_, K::Connection> {
        let GuardParts { driver, connection, interrupt, .. } = self.parts();
        let guard = InterruptGuard::new(interrupt, driver.address());
        Interruptible { stream: connection, guard }
    }
}

impl<S: Unpin> Interruptible<'_, S> {
    /// Runs one poll function of the stream, unless the connection is interrupted.
    fn poll<T>(
        self: Pin<&mut Self>,
        direction: Direction,
        cx: &mut Context<'_>,
        operation: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let Self { stream, guard } = self.get_mut();
        guard.poll(direction, cx, |cx| operation(Pin::new(stream), cx))
    }
}

impl<'c> InterruptGuard<'c> {
    pub(super) fn new(interrupt: &'c Interrupt, address: &'c Arc<ServerAddress>) -> Self {
        Self { interrupt, address, reading: None, writing: None }
    }

    fn check(&self) -> io::Result<()> {
        if self.interrupt.has_happened() {
            // ER-07
            let error = InterruptedError::new(Arc::clone(self.address));
            return Err(io::Error::new(ErrorKind::ConnectionAborted, error));
        }
        Ok(())
    }

    /// Runs `operation`, unless the connection is interrupted before or while it waits.
    pub(super) fn poll<T>(
        &mut self,
        direction: Direction,
        cx: &mut Context<'_>,
        operation: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.check()?;
        let outcome = operation(cx);
        if outcome.is_ready() {
            return outcome;
        }
        let listener = match direction {
            Direction::Reading => &mut self.reading,
            Direction::Writing => &mut self.writing,
        };
        // The waker is registered before the flag is read, so that no interrupt is missed in
        // between.
        if Pin::new(listener.get_or_insert_with(|| self.interrupt.listen())).poll(cx).is_ready() {
            *listener = None;
        }
        self.check()?;
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Interruptible<'_, S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(Direction::Reading, cx, |stream, cx| stream.poll_read(cx, buffer))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Interruptible<'_, S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(Direction::Writing, cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(Direction::Writing, cx, AsyncWrite::poll_flush)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(Direction::Writing, cx, AsyncWrite::poll_close)
    }
}

#[cfg(feature = "tokio")]
impl<S: tokio::io::AsyncRead + Unpin> tokio::io::AsyncRead for Interruptible<'_, S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(Direction::Reading, cx, |stream, cx| stream.poll_read(cx, buffer))
    }
}

#[cfg(feature = "tokio")]
impl<S: tokio::io::AsyncWrite + Unpin> tokio::io::AsyncWrite for Interruptible<'_, S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(Direction::Writing, cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(Direction::Writing, cx, tokio::io::AsyncWrite::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(Direction::Writing, cx, tokio::io::AsyncWrite::poll_shutdown)
    }
}

impl<S> fmt::Debug for Interruptible<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interruptible")
            .field("address", &self.guard.address)
            .finish_non_exhaustive()
    }
}
