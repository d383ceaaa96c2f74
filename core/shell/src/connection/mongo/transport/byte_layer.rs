//! Bytes on a socket, with TLS or without.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};

use rustls::ClientConnection;

use crate::runtime::process::Process;

/// The bytes of a connection, with TLS or without. Its functions that take `io` are steps as those
/// of [`Transport`](super::Transport).
pub struct ByteLayer {
    pub(super) tls: Option<Box<ClientConnection>>,
    /// The process that opened the socket.
    pub(super) process: Process,
    /// Since [`Transport::take_received`](super::Transport::take_received).
    pub(super) has_received: bool,
}

/// A socket that no process writes to but the one that opened it.
struct Guarded<'a, IO> {
    io: &'a mut IO,
    process: Process,
}

impl ByteLayer {
    pub(super) fn shake(&mut self, io: &mut (impl Read + Write)) -> io::Result<()> {
        self.flush(io)?;
        let Some(tls) = self.tls.as_mut().filter(|tls| tls.is_handshaking()) else {
            return Ok(());
        };
        if read_tls(tls, &mut Guarded { io, process: self.process })? && tls.is_handshaking() {
            let reason = "closed by the peer in the TLS handshake";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, reason));
        }
        Err(again())
    }

    /// Reads some decrypted bytes; 0 is the end of the stream.
    ///
    /// # Errors
    ///
    /// Those of `io`, and of TLS.
    pub fn read(&mut self, io: &mut (impl Read + Write), buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            let count = io.read(buffer)?;
            self.has_received = true;
            return Ok(count);
        };
        match tls.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            outcome => return outcome,
        }
        // What TLS has to send by itself, such as new keys, does not have to be sent before
        // reading.
        match self.send(io) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            outcome => outcome?,
        }
        let Some(tls) = &mut self.tls else { unreachable!("there is TLS") };
        // At the end of the stream, the next step returns how it ended.
        read_tls(tls, &mut Guarded { io, process: self.process })?;
        self.has_received = true;
        Err(again())
    }

    /// Takes some bytes, and returns how many. They are with the operating system after
    /// [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// Those of `io`.
    pub fn write(&mut self, io: &mut (impl Read + Write), bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return Guarded { io, process: self.process }.write(bytes);
        };
        match tls.writer().write(bytes)? {
            // The buffer of TLS is full.
            0 if !bytes.is_empty() => self.send(io).and(Err(again())),
            count => Ok(count),
        }
    }

    /// A step of flushing what was written.
    ///
    /// # Errors
    ///
    /// Those of `io`.
    pub fn flush(&mut self, io: &mut (impl Read + Write)) -> io::Result<()> {
        self.send(io)?;
        io.flush()
    }

    /// A step of sending what TLS has encrypted.
    pub(in crate::connection::mongo) fn send(
        &mut self,
        io: &mut (impl Read + Write),
    ) -> io::Result<()> {
        let Some(tls) = self.tls.as_mut().filter(|tls| tls.wants_write()) else { return Ok(()) };
        let mut io = Guarded { io, process: self.process };
        match tls.write_tls(&mut io) {
            Ok(0) => Err(ErrorKind::WriteZero.into()),
            Ok(_) => Err(again()),
            Err(error) if is_end(&error) => match read_tls(tls, &mut io) {
                // What the peer said before it closed the connection tells more.
                Err(refusal) if refusal.kind() == ErrorKind::InvalidData => Err(refusal),
                Ok(_) | Err(_) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// A step of ending the stream before the socket is shut down.
    pub(in crate::connection::mongo) fn end(
        &mut self,
        io: &mut (impl Read + Write),
    ) -> io::Result<()> {
        check(self.process)?;
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush(io)
    }

    /// A step of writing and flushing all of `bytes`, of which `written` are written.
    pub(in crate::connection::mongo) fn write_all(
        &mut self,
        io: &mut (impl Read + Write),
        bytes: &[u8],
        written: &mut usize,
    ) -> io::Result<()> {
        let unsent = bytes.get(*written..).unwrap_or_default();
        if !unsent.is_empty() {
            *written += match self.write(io, unsent)? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => count,
            };
            if *written < bytes.len() {
                return Err(again());
            }
        }
        self.flush(io)
    }
}

/// Whether that was the end of the stream. What TLS refuses is [`ErrorKind::InvalidData`].
fn read_tls(tls: &mut ClientConnection, io: &mut (impl Read + Write)) -> io::Result<bool> {
    let count = tls.read_tls(io)?;
    match tls.process_new_packets() {
        Ok(state) => Ok(count == 0 || state.peer_has_closed()),
        Err(error) => {
            // The peer is told why, if that can be done at once.
            let _ = tls.write_tls(io);
            Err(io::Error::new(ErrorKind::InvalidData, error))
        }
    }
}

/// Whether the peer does not read any more.
fn is_end(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};

    matches!(error.kind(), BrokenPipe | ConnectionReset | ConnectionAborted)
}

/// The step is to be called again at once.
pub(super) fn again() -> io::Error {
    ErrorKind::Interrupted.into()
}

pub(super) fn check(process: Process) -> io::Result<()> {
    if process.is_current() {
        return Ok(());
    }
    Err(io::Error::other("it was opened by the process that this one was forked from"))
}

impl<IO: Read> Read for Guarded<'_, IO> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.io.read(buffer)
    }
}

impl<IO: Write> Write for Guarded<'_, IO> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check(self.process)?;
        self.io.write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        check(self.process)?;
        self.io.write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.io.flush()
    }
}

impl fmt::Debug for ByteLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteLayer").field("is_tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}
