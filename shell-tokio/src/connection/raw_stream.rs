//! For drivers that have their own way to write and read messages.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use cenote_core::error::{OperationError, Stage};
use cenote_core::wire::Exchange;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::MongoConnector;
use super::stream::Stream;
use crate::guard::PooledConnection;
use crate::interruptible::Interruptible;

/// The bytes of a connection that is checked out, decrypted, for drivers that have their own way to
/// write and read messages. Made by [`PooledConnection::raw_stream`].
///
/// Nobody but the driver knows whether a reply is still to come. So it is the driver who says that
/// the connection may be used again, with [`done`](Self::done); dropped without, the connection comes
/// back broken and is closed (CO-19).
///
/// What was agreed in hello holds here, too: messages may be compressed if
/// [`ConnectionDescription::compressor`](cenote_core::connect::ConnectionDescription::compressor)
/// says so, and replies are as the server likes. `socketTimeoutMS` is the driver's to obey.
///
/// When the pool breaks the connection off, whatever waits fails at once, and so does all that comes
/// later, with [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) and an
/// [`InterruptedError`](cenote_core::error::InterruptedError) in it (ER-07). Any other error is not
/// shown to [`Builder::on_failure`](crate::Builder::on_failure) before the driver
/// [marks](PooledConnection::mark_errored) the connection with it.
pub struct RawStream<'c> {
    stream: Interruptible<'c, Stream>,
    exchange: &'c mut Exchange,
    /// An error, an end, a shutdown: nobody can be done with that.
    is_over: bool,
}

impl PooledConnection<MongoConnector> {
    /// The bytes themselves, for drivers that have their own way to write and read messages.
    ///
    /// ```no_run
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// # async fn example(pool: cenote_tokio::Pool, request: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = pool.check_out().await?;
    /// let mut stream = connection.raw_stream()?;
    /// stream.write_all(request).await?;
    /// let length = stream.read_i32_le().await?;
    /// let mut rest = vec![0; usize::try_from(length)? - 4];
    /// stream.read_exact(&mut rest).await?;
    /// stream.done().await?; // All that was asked is answered: the connection may be used again.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// A reply is still to come, or the connection is broken; nothing changes then.
    pub fn raw_stream(&mut self) -> Result<RawStream<'_>, OperationError> {
        self.check_process()?;
        let (connection, interrupt, address) = self.parts();
        let lent = connection.messages.lend();
        let (stream, exchange) = lent.map_err(|failure| failure.at(Stage::Operation))?;
        let stream = Interruptible::new(stream, interrupt, address);
        Ok(RawStream { stream, exchange, is_over: false })
    }
}

impl RawStream<'_> {
    /// Says that nothing is under way and nothing unread, after what was written is
    /// [flushed](AsyncWriteExt::flush). The connection may be used again, and goes back to its pool
    /// as a healthy one.
    ///
    /// Dropping the future in the middle is as if this had not been said.
    ///
    /// # Errors
    ///
    /// What was written cannot be flushed; or there was an error, an end of the stream or a shutdown
    /// before. The connection must not be used again then.
    pub async fn done(mut self) -> io::Result<()> {
        self.flush().await?;
        if self.is_over {
            let text = "the stream has ended, or an error came before: it cannot be used again";
            return Err(io::Error::new(io::ErrorKind::NotConnected, text));
        }
        self.exchange.take_back();
        Ok(())
    }

    /// Remembers what nobody can be done with.
    fn note<R>(&mut self, outcome: io::Result<R>) -> io::Result<R> {
        self.is_over |= outcome.is_err();
        outcome
    }
}

impl AsyncRead for RawStream<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let (before, room) = (buffer.filled().len(), buffer.remaining());
        let outcome = ready!(Pin::new(&mut this.stream).poll_read(cx, buffer));
        this.is_over |= room > 0 && buffer.filled().len() == before;
        Poll::Ready(this.note(outcome))
    }
}

impl AsyncWrite for RawStream<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = ready!(Pin::new(&mut this.stream).poll_write(cx, bytes));
        Poll::Ready(this.note(outcome))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = ready!(Pin::new(&mut this.stream).poll_flush(cx));
        Poll::Ready(this.note(outcome))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.is_over = true;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

impl fmt::Debug for RawStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawStream").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}
