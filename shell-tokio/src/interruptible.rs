use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use cenote_core::address::ServerAddress;
use cenote_core::error::InterruptedError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::futures::Notified;

use crate::connector::Connector;
use crate::guard::PooledConnection;
use crate::interrupt::Interrupt;

/// The bytes of a checked-out connection, until the pool breaks it off: then whatever waits fails at
/// once, and so does all that comes later, with [`ErrorKind::ConnectionAborted`] and an
/// [`InterruptedError`] in it (ER-07).
///
/// Made by [`PooledConnection::interruptible`].
pub struct Interruptible<'c, S> {
    stream: &'c mut S,
    break_off: BreakOff<'c>,
}

/// Where the pool says that a connection is broken off, for two who wait: whoever reads and whoever
/// writes may be two tasks.
struct BreakOff<'c> {
    interrupt: &'c Interrupt,
    address: &'c Arc<ServerAddress>,
    reading: Option<Pin<Box<Notified<'c>>>>,
    writing: Option<Pin<Box<Notified<'c>>>>,
}

#[derive(Clone, Copy)]
enum Direction {
    Reading,
    Writing,
}

impl<K: Connector> PooledConnection<K>
where
    K::Connection: AsyncRead + AsyncWrite + Unpin,
{
    /// The connection as a stream whose reads and writes fail when the pool breaks it off. For
    /// drivers whose [`Connector`] makes streams; whether the connection is fit when it comes back is
    /// [the connector's](Connector::fault) to say, or [marked](Self::mark_errored).
    ///
    /// Without it, the guard lends the stream as it is, and [`run`](Self::run) and
    /// [`interrupted`](Self::interrupted) say when to stop. Allocates when it waits for the first
    /// time, in each direction.
    pub fn interruptible(&mut self) -> Interruptible<'_, K::Connection> {
        let (stream, interrupt, address) = self.parts();
        Interruptible::new(stream, interrupt, address)
    }
}

impl<'c, S> Interruptible<'c, S> {
    pub(crate) fn new(
        stream: &'c mut S,
        interrupt: &'c Interrupt,
        address: &'c Arc<ServerAddress>,
    ) -> Self {
        Self { stream, break_off: BreakOff { interrupt, address, reading: None, writing: None } }
    }
}

impl BreakOff<'_> {
    fn check(&self) -> io::Result<()> {
        if self.interrupt.has_happened() {
            let error = InterruptedError::new(Arc::clone(self.address));
            return Err(io::Error::new(ErrorKind::ConnectionAborted, error));
        }
        Ok(())
    }

    /// Does what the stream does, unless it happens before or while that waits.
    fn poll<R>(
        &mut self,
        direction: Direction,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        self.check()?;
        let outcome = act(cx);
        if outcome.is_ready() {
            return outcome;
        }
        let interrupt = self.interrupt;
        let slot = match direction {
            Direction::Reading => &mut self.reading,
            Direction::Writing => &mut self.writing,
        };
        // The waker is put down before the flag is read, so that no wake-up falls between the two.
        let notified = slot.get_or_insert_with(|| Box::pin(interrupt.notified()));
        let _ = notified.as_mut().poll(cx);
        self.check()?;
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Interruptible<'_, S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, break_off } = self.get_mut();
        let read = |cx: &mut Context<'_>| Pin::new(&mut **stream).poll_read(cx, buffer);
        break_off.poll(Direction::Reading, cx, read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Interruptible<'_, S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, break_off } = self.get_mut();
        let write = |cx: &mut Context<'_>| Pin::new(&mut **stream).poll_write(cx, bytes);
        break_off.poll(Direction::Writing, cx, write)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, break_off } = self.get_mut();
        let flush = |cx: &mut Context<'_>| Pin::new(&mut **stream).poll_flush(cx);
        break_off.poll(Direction::Writing, cx, flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, break_off } = self.get_mut();
        let shut_down = |cx: &mut Context<'_>| Pin::new(&mut **stream).poll_shutdown(cx);
        break_off.poll(Direction::Writing, cx, shut_down)
    }
}

impl<S> fmt::Debug for Interruptible<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interruptible")
            .field("address", &self.break_off.address)
            .finish_non_exhaustive()
    }
}
