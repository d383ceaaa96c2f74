//! The bytes of a connection, for drivers that write and read messages themselves.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cenote_core::error::{InterruptedError, OperationError, Stage};
use cenote_core::wire::Exchange;
use cenote_shell::connection::ByteLayer;
use cenote_shell::connection::interrupt::Interrupt;
use cenote_shell::connection::operation::{CommandTimeouts, OperationOptions};
use cenote_shell::pool::{GuardParts, PoolDriver};

use super::blocking_socket::{BlockingSocket, Io};
use super::timeout::Timeout;
use super::{Connection, MongoConnector, os};
use crate::event_loop::EventLoop;
use crate::pooled_connection::PooledConnection;

/// The bytes of a connection that is checked out, without TLS, for drivers that write and read messages
/// themselves. Made by [`PooledConnection::raw_stream`].
///
/// Only the driver knows whether a reply is still to come. It says with [`done`](Self::done) that the
/// connection may be used again; otherwise the connection is closed when it is checked in.
///
/// Reading and writing block: all of it for `timeoutMS` at most or until the [deadline](Self::set_deadline), and
/// without both each wait for `socketTimeoutMS`. Then they fail with [`TimedOut`](ErrorKind::TimedOut).
/// Except on Windows, the connection can still be read from then, and may still be [`done`](Self::done). Bytes
/// are with the operating system when [`write`](Write::write) returns: write many small parts through a
/// [`BufWriter`](io::BufWriter).
///
/// What was negotiated in hello applies: messages may be compressed if
/// [`ConnectionDescription::compressor`](cenote_core::connect::ConnectionDescription::compressor) says so,
/// and replies may be, too.
///
/// When the pool interrupts the connection, calls that wait fail at once, and so do all later ones, with
/// [`ConnectionAborted`](ErrorKind::ConnectionAborted) and an [`InterruptedError`] inside. Other errors are not
/// shown to [`Builder::on_failure`](crate::Builder::on_failure) unless the driver
/// [marks](PooledConnection::mark_errored) the connection with them.
pub struct RawStream<'c> {
    bytes: &'c mut ByteLayer,
    exchange: &'c mut Exchange,
    socket: &'c mut BlockingSocket,
    driver: &'c Arc<PoolDriver<EventLoop, MongoConnector>>,
    interrupt: &'c Interrupt,
    timeouts: CommandTimeouts,
    timeout: Timeout,
    /// After an error other than a timeout, or the end of the stream. It cannot be done then.
    is_broken: bool,
}

impl PooledConnection<MongoConnector> {
    /// The connection's bytes, for drivers that write and read messages themselves.
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
    /// stream.done()?; // Every request has its reply: the connection may be used again.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// A reply is still to come, the connection is broken, or the pool interrupted it. Nothing changes then.
    pub fn raw_stream(&mut self) -> Result<RawStream<'_>, OperationError> {
        let GuardParts { driver, connection, interrupt, .. } = self.parts();
        check(driver, interrupt)?;
        let Connection { socket, transport, timeouts, .. } = connection;
        let lent = transport.lend();
        let (bytes, exchange) = lent.map_err(|error| error.at(Stage::Operation))?;
        let (timeouts, is_broken) = (*timeouts, false);
        let timeout = timeouts.limit(OperationOptions::new(), Instant::now).into();
        Ok(RawStream { bytes, exchange, socket, driver, interrupt, timeouts, timeout, is_broken })
    }
}

impl RawStream<'_> {
    /// Sets a time at which calls fail. With `None` it is `timeoutMS` from now, if that is set, as it is at first.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        let options = OperationOptions::new();
        let options = deadline.map_or(options, |deadline| options.with_deadline(deadline));
        self.timeout = self.timeouts.limit(options, Instant::now).into();
    }

    /// Says that every request has its reply and nothing is unread. The connection may be used again, and is
    /// healthy when it is checked in.
    ///
    /// # Errors
    ///
    /// The stream has ended, there was an error other than a timeout of reading, bytes of TLS itself cannot be
    /// sent, or the pool interrupted the connection. It cannot be used again then.
    // CO-19
    pub fn done(mut self) -> io::Result<()> {
        self.flush()?;
        if self.is_broken {
            let text = "the stream has ended, or an error came before: it cannot be used again";
            return Err(io::Error::new(ErrorKind::NotConnected, text));
        }
        self.exchange.take_back();
        Ok(())
    }

    /// Repeats a step until it is done, for as long as there is time.
    fn repeat<T>(
        &mut self,
        mut step: impl FnMut(&mut ByteLayer, Io<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            check(self.driver, self.interrupt).map_err(aborted)?;
            let wait = self.timeout.next().map_err(timed_out)?;
            let outcome = self.socket.block_for(wait.map(|wait| wait.left));
            match (outcome.and_then(|()| step(self.bytes, self.socket.io())), wait) {
                (Err(error), _) if error.kind() == ErrorKind::Interrupted => {}
                // How a blocking socket reports its timeout.
                (Err(error), Some(wait)) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_broken |= !os::IS_USABLE_AFTER_TIMEOUT;
                    return Err(timed_out(wait.timeout));
                }
                (Err(error), _) => {
                    self.is_broken = true;
                    // An interrupt may be the cause of any error.
                    check(self.driver, self.interrupt).map_err(aborted)?;
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
            return Ok(0);
        }
        let count = self.repeat(|bytes, mut io| bytes.read(&mut io, buffer))?;
        if count == 0 {
            self.is_broken = true;
            // An interrupt ends the stream.
            check(self.driver, self.interrupt).map_err(aborted)?;
        }
        Ok(count)
    }
}

impl Write for RawStream<'_> {
    /// Blocks until the operating system has that many bytes.
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.repeat(|bytes, mut io| bytes.write(&mut io, buffer))?;
        // TLS has only encrypted them by now. If they are not sent, a caller that writes again would send
        // them twice.
        let flushed = self.flush();
        self.is_broken |= flushed.is_err();
        flushed.map(|()| count)
    }

    /// Sends what TLS itself has to send. Bytes that were written are sent already.
    fn flush(&mut self) -> io::Result<()> {
        self.repeat(|bytes, mut io| bytes.flush(&mut io))
    }
}

/// Fails after an interrupt, and in a child of the process that opened the connection.
fn check(
    driver: &PoolDriver<EventLoop, MongoConnector>,
    interrupt: &Interrupt,
) -> Result<(), InterruptedError> {
    match interrupt.has_happened() || driver.is_inherited() {
        true => Err(InterruptedError::new(Arc::clone(driver.address()))),
        false => Ok(()),
    }
}

// ER-07
fn aborted(error: InterruptedError) -> io::Error {
    io::Error::new(ErrorKind::ConnectionAborted, error)
}

fn timed_out(after: Duration) -> io::Error {
    io::Error::new(ErrorKind::TimedOut, format!("nothing came of it within {after:?}"))
}

impl fmt::Debug for RawStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawStream").field("is_broken", &self.is_broken).finish_non_exhaustive()
    }
}
