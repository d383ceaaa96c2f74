use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use cenote_core::address::ServerAddress;
use cenote_core::wire::Exchange;
use futures_io::{AsyncRead, AsyncWrite};

use super::operations::Connection;
use super::poll_io::{PollIo, poll_steps};
use super::transport::ByteLayer;
use crate::connection::interrupt::Interrupt;
use crate::connection::interruptible::{Direction, InterruptGuard};
use crate::connection::transport_error::TransportError;
use crate::runtime::Network;

/// The decrypted bytes of a checked-out connection, for drivers with their own way to write and
/// read messages. Made by
/// [`PooledConnection::raw_stream`](crate::pool::PooledConnection::raw_stream).
///
/// Implements the I/O traits of futures-io, and tokio's with the feature `tokio`.
///
/// Only the driver knows whether a reply is still due. It calls [`done`](Self::done) when the
/// connection may be used again; otherwise the connection counts as broken, and the pool closes it
/// when it is checked in.
///
/// What hello has negotiated applies: messages may be compressed if
/// [`ConnectionDescription::compressor`](cenote_core::connect::ConnectionDescription::compressor)
/// is set, and the server may compress replies. `socketTimeoutMS` is up to the driver.
///
/// When the pool interrupts the connection, pending and later reads and writes return
/// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) with an
/// [`InterruptedError`](cenote_core::error::InterruptedError) inside. Other errors are reported to
/// [`Builder::on_failure`](crate::builder::Builder::on_failure) only when the driver
/// [marks](crate::pool::PooledConnection::mark_errored) the connection with them.
pub struct RawStream<'c, R: Network> {
    stream: &'c mut R::Stream,
    layer: &'c mut ByteLayer,
    exchange: &'c mut Exchange,
    guard: InterruptGuard<'c>,
    /// After an error, the end of the stream or a shutdown.
    is_over: bool,
}

impl<'c, R: Network> RawStream<'c, R> {
    pub(super) fn new(
        connection: &'c mut Connection<R>,
        interrupt: &'c Interrupt,
        address: &'c Arc<ServerAddress>,
    ) -> Result<Self, TransportError> {
        let messages = &mut connection.messages;
        let (layer, exchange) = messages.transport.lend()?;
        let guard = InterruptGuard::new(interrupt, address);
        Ok(Self { stream: &mut messages.stream, layer, exchange, guard, is_over: false })
    }

    /// Says that nothing is under way and nothing unread, after flushing what was written. The
    /// connection may be used again.
    ///
    /// Dropping the future before it ends is as if this was not called.
    ///
    /// # Errors
    ///
    /// Flushing failed; or there was an error, the end of the stream or a shutdown before. The
    /// connection cannot be used again then.
    // CO-19
    pub async fn done(mut self) -> io::Result<()> {
        std::future::poll_fn(|cx| AsyncWrite::poll_flush(Pin::new(&mut self), cx)).await?;
        if self.is_over {
            let text = "the stream has ended, or an error came before: it cannot be used again";
            return Err(io::Error::new(io::ErrorKind::NotConnected, text));
        }
        self.exchange.take_back();
        Ok(())
    }

    /// Runs steps of the byte layer, and remembers that they failed.
    fn poll<T>(
        &mut self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut step: impl FnMut(&mut ByteLayer, &mut PollIo<'_, '_, R::Stream>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let Self { stream, layer, .. } = self;
        let outcome = self
            .guard
            .poll(direction, cx, |cx| poll_steps(*stream, cx, |io| step(layer, io), || {}));
        self.is_over |= matches!(outcome, Poll::Ready(Err(_)));
        outcome
    }
}

impl<R: Network> AsyncRead for RawStream<'_, R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = this.poll(Direction::Reading, cx, |layer, io| layer.read(io, buffer));
        this.is_over |= !buffer.is_empty() && matches!(outcome, Poll::Ready(Ok(0)));
        outcome
    }
}

impl<R: Network> AsyncWrite for RawStream<'_, R> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = this.poll(Direction::Writing, cx, |layer, io| layer.write(io, bytes));
        if matches!(outcome, Poll::Ready(Ok(_))) {
            // Encrypted bytes leave at once if they can, also when the driver does not flush.
            let sent = this.poll(Direction::Writing, cx, |layer, io| layer.send(io));
            if let Poll::Ready(Err(error)) = sent {
                return Poll::Ready(Err(error));
            }
        }
        outcome
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll(Direction::Writing, cx, |layer, io| layer.flush(io))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.is_over = true;
        std::task::ready!(this.poll(Direction::Writing, cx, |layer, io| layer.end(io)))?;
        Pin::new(&mut *this.stream).poll_close(cx)
    }
}

#[cfg(feature = "tokio")]
impl<R: Network> tokio::io::AsyncRead for RawStream<'_, R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count =
            std::task::ready!(AsyncRead::poll_read(self, cx, buffer.initialize_unfilled()))?;
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }
}

#[cfg(feature = "tokio")]
impl<R: Network> tokio::io::AsyncWrite for RawStream<'_, R> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(self, cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(self, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_close(self, cx)
    }
}

impl<R: Network> fmt::Debug for RawStream<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawStream").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}
