//! For drivers that have their own way to write and read messages.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cenote_core::error::{InterruptedError, OperationError, Stage};
use cenote_core::wire::Exchange;

use super::MongoConnector;
use super::patience::Patience;
use super::stream::Stream;
use crate::guard::{Parts, PooledConnection};
use crate::interrupt::Interrupt;
use crate::shared::Shared;

/// The bytes of a connection that is checked out, decrypted, for drivers that have their own way to
/// write and read messages. Made by [`PooledConnection::raw_stream`].
///
/// Nobody but the driver knows whether a reply is still to come. So it is the driver who says that
/// the connection may be used again, with [`done`](Self::done); dropped without, the connection comes
/// back broken and is closed (CO-19).
///
/// Reading and writing block: for each wait until `socketTimeoutMS` is over, and for all of them
/// until the [deadline](Self::set_deadline), if there is one. Then they fail with
/// [`TimedOut`](ErrorKind::TimedOut), and what was read until then is the driver's; the connection may
/// still be read from, and goes back as a healthy one if the driver is done with it after all. What
/// is written is with the operating system when [`write`](Write::write) returns, so that many small
/// parts are best written through a [`BufWriter`](io::BufWriter).
///
/// What was agreed in hello holds here, too: messages may be compressed if
/// [`ConnectionDescription::compressor`](cenote_core::connect::ConnectionDescription::compressor)
/// says so, and replies are as the server likes.
///
/// When the pool breaks the connection off, whatever waits fails at once, and so does all that comes
/// later, with [`ConnectionAborted`](ErrorKind::ConnectionAborted) and an
/// [`InterruptedError`] in it (ER-07). Any other error is not shown to
/// [`Builder::on_failure`](crate::Builder::on_failure) before the driver
/// [marks](PooledConnection::mark_errored) the connection with it.
pub struct RawStream<'c> {
    stream: &'c mut Stream,
    exchange: &'c mut Exchange,
    shared: &'c Arc<Shared<MongoConnector>>,
    interrupt: &'c Interrupt,
    socket_timeout: Option<Duration>,
    patience: Patience,
    /// An error, an end: nobody can be done with that.
    is_over: bool,
}

impl PooledConnection<MongoConnector> {
    /// The bytes themselves, for drivers that have their own way to write and read messages.
    ///
    /// ```no_run
    /// use std::io::{Read, Write};
    ///
    /// # fn example(pool: cenote_mio::Pool, request: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = pool.check_out()?;
    /// let mut stream = connection.raw_stream()?;
    /// stream.write_all(request)?;
    /// let mut length = [0; 4];
    /// stream.read_exact(&mut length)?;
    /// let mut rest = vec![0; usize::try_from(i32::from_le_bytes(length))? - 4];
    /// stream.read_exact(&mut rest)?;
    /// stream.done()?; // All that was asked is answered: the connection may be used again.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// A reply is still to come, the connection is broken, or was interrupted; nothing changes then.
    pub fn raw_stream(&mut self) -> Result<RawStream<'_>, OperationError> {
        let Parts { shared, connection, interrupt, .. } = self.parts();
        check(shared, interrupt)?;
        let socket_timeout = connection.socket_timeout;
        let lent = connection.messages.lend();
        let (stream, exchange) = lent.map_err(|failure| failure.at(Stage::Operation))?;
        let patience = Patience::new(socket_timeout, None);
        let is_over = false;
        Ok(RawStream { stream, exchange, shared, interrupt, socket_timeout, patience, is_over })
    }
}

impl RawStream<'_> {
    /// From now on, whatever waits fails at this time; with `None`, which is how it begins, only
    /// `socketTimeoutMS` is a limit, for each wait anew.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.patience = Patience::new(self.socket_timeout, deadline);
    }

    /// Says that nothing is under way and nothing unread. The connection may be used again, and goes
    /// back to its pool as a healthy one.
    ///
    /// # Errors
    ///
    /// There was an end of the stream, or an error, before, other than that the time for reading was
    /// over; something that TLS has to say cannot be said; or the pool has broken the connection off.
    /// It must not be used again then.
    pub fn done(mut self) -> io::Result<()> {
        self.flush()?;
        if self.is_over {
            let text = "the stream has ended, or an error came before: it cannot be used again";
            return Err(io::Error::new(ErrorKind::NotConnected, text));
        }
        self.exchange.take_back();
        Ok(())
    }

    /// One operation, with all of its steps and for as long as patience is. Remembers an error that
    /// nobody can be done with: any but that the time was over.
    fn persist<R>(&mut self, mut step: impl FnMut(&mut Stream) -> io::Result<R>) -> io::Result<R> {
        loop {
            check(self.shared, self.interrupt).map_err(aborted)?;
            let wait = self.patience.next().map_err(late)?;
            let steps = self.stream.block_for(wait.map(|wait| wait.left));
            match (steps.and_then(|()| step(self.stream)), wait) {
                (Err(error), _) if error.kind() == ErrorKind::Interrupted => {}
                // How the operating system says that it has waited for long enough.
                (Err(error), Some(wait)) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(late(wait.after));
                }
                (Err(error), _) => {
                    self.is_over = true;
                    // Whatever it says, this may be why.
                    check(self.shared, self.interrupt).map_err(aborted)?;
                    return Err(error);
                }
                (Ok(outcome), _) => return Ok(outcome),
            }
        }
    }
}

impl Read for RawStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            // Nothing is not waited for.
            return Ok(0);
        }
        let count = self.persist(|stream| stream.read(buffer))?;
        if count == 0 {
            self.is_over = true;
            // An interrupt ends the stream.
            check(self.shared, self.interrupt).map_err(aborted)?;
        }
        Ok(count)
    }
}

impl Write for RawStream<'_> {
    /// Blocks until the operating system has as many bytes as this says.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.persist(|stream| stream.write(bytes))?;
        // With TLS, they are only encrypted by now. If they do not go out, whoever were to write
        // again would send them twice.
        let flushed = self.persist(Stream::flush);
        self.is_over |= flushed.is_err();
        flushed.map(|()| count)
    }

    /// What is written is out already, but for what TLS has to say by itself.
    fn flush(&mut self) -> io::Result<()> {
        self.persist(Stream::flush)
    }
}

/// Fails when the pool has broken the connection off, and in a child of the process that it is of.
fn check(
    shared: &Arc<Shared<MongoConnector>>,
    interrupt: &Interrupt,
) -> Result<(), InterruptedError> {
    match interrupt.has_happened() || shared.is_foreign() {
        true => Err(InterruptedError::new(Arc::clone(&shared.address))),
        false => Ok(()),
    }
}

fn aborted(error: InterruptedError) -> io::Error {
    io::Error::new(ErrorKind::ConnectionAborted, error)
}

fn late(after: Duration) -> io::Error {
    io::Error::new(ErrorKind::TimedOut, format!("nothing came of it within {after:?}"))
}

impl fmt::Debug for RawStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawStream").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}
