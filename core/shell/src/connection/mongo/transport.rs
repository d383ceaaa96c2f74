use std::convert::Infallible;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::{fmt, mem};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::ServerApi;
use cenote_core::wire::{
    Channel, Compressor, Exchange, Flags, MessageBuf, MessageLimit, RequestIds, WireError,
};
use rustls::ClientConnection;

use crate::connection::transport_error::TransportError;
use crate::runtime::process::Process;

/// The messages of one connection, and TLS below them, without the socket: every function that
/// needs the socket takes it as `io`.
///
/// Such a function is one step: it makes about one system call, and returns
/// [`Interrupted`](ErrorKind::Interrupted) when it is to be called again at once, and
/// [`WouldBlock`](ErrorKind::WouldBlock) when it is to be called again once the socket is ready.
/// Neither loses anything. [`TransportError::split_would_block`] tells them from failures.
///
/// Only the process that made it writes: in a forked child, steps that write fail.
pub struct Transport {
    pub(super) channel: Channel,
    pub(super) layer: ByteLayer,
    /// How many bytes of the outgoing message are written.
    written: usize,
    /// Declared in commands that name no database of their own.
    server_api: Option<ServerApi>,
}

/// The bytes of a connection, with TLS or without. Its functions that take `io` are steps as those
/// of [`Transport`].
pub struct ByteLayer {
    tls: Option<Box<ClientConnection>>,
    /// The process that opened the socket.
    process: Process,
    /// Since [`Transport::take_received`].
    has_received: bool,
}

/// A socket that no process writes to but the one that opened it.
struct Guarded<'a, IO> {
    io: &'a mut IO,
    process: Process,
}

impl Transport {
    /// A new connection without TLS.
    #[must_use]
    pub fn new() -> Self {
        Self::with_channel(Channel::new())
    }

    /// For monitors, which read leniently: `docs/decisions/0008-what-monitors-accept.md`.
    #[must_use]
    pub fn lenient() -> Self {
        Self::with_channel(Channel::lenient())
    }

    fn with_channel(channel: Channel) -> Self {
        let layer = ByteLayer { tls: None, process: Process::current(), has_received: false };
        Self { channel, layer, written: 0, server_api: None }
    }

    /// Numbers its requests with these, instead of from 1 on: see [`RequestIds`].
    #[must_use]
    pub fn with_request_ids(mut self, requests: RequestIds) -> Self {
        self.channel = self.channel.with_request_ids(requests);
        self
    }

    /// From now on bytes are encrypted; [`shake`](Self::shake) comes next.
    pub fn start_tls(&mut self, tls: ClientConnection) {
        self.layer.tls = Some(Box::new(tls));
    }

    /// A step of the TLS handshake.
    ///
    /// # Errors
    ///
    /// Those of `io`, [`InvalidData`](ErrorKind::InvalidData) with rustls's error inside, and
    /// [`UnexpectedEof`](ErrorKind::UnexpectedEof) when the server closes the connection.
    pub fn shake(&mut self, io: &mut (impl Read + Write)) -> io::Result<()> {
        self.layer.shake(io)
    }

    /// Sets what hello has negotiated.
    pub fn agree(&mut self, limit: MessageLimit, compressor: Option<Compressor>) {
        self.channel.agree(limit, compressor);
    }

    /// Declares the version of the server's API in every command that is [begun](Self::begin) with a database.
    // HS-12
    pub const fn declare(&mut self, api: Option<ServerApi>) {
        self.server_api = api;
    }

    /// The largest message that the server accepts.
    #[must_use]
    pub const fn limit(&self) -> MessageLimit {
        self.channel.limit()
    }

    /// A number for the next request.
    pub fn next_request_id(&mut self) -> i32 {
        self.channel.next_request_id()
    }

    /// Whether the connection may go back to its pool: nothing is begun, due or unread, and nothing
    /// failed.
    // CO-19
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.channel.is_reusable()
    }

    /// Whether anything was read since this was last called, the end of the stream included.
    pub fn take_received(&mut self) -> bool {
        mem::take(&mut self.layer.has_received)
    }

    /// The request whose only reply is still to come, after it was written:
    /// [`Exchange::pending_response`].
    #[must_use]
    pub fn pending_response(&self) -> Option<i32> {
        self.channel.pending_response()
    }

    /// Whether a request is begun and not yet [written](Self::write).
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.channel.is_writing()
    }

    /// Whether a request is begun of which no byte is written: it can be [taken back](Self::withdraw).
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        self.is_writing() && self.written == 0
    }

    /// Begins a request, to be [written](Self::write). `database` is `None` for a command that
    /// names its own; its bytes may be secret and are overwritten once they are written.
    ///
    /// # Errors
    ///
    /// [`TransportError::Refused`] for a command that is too large or names a database besides, and
    /// while another exchange is under way; nothing is begun then.
    pub fn begin(
        &mut self,
        command: &RawDocument,
        database: Option<&str>,
        flags: Flags,
    ) -> Result<(), TransportError> {
        let declared = self.server_api.filter(|_| database.is_some());
        let declared = declared.map(|api| api.declared_in(command));
        let command = declared.as_deref().unwrap_or(command);
        self.channel.begin(command, database, flags).map_err(TransportError::Refused)?;
        self.written = 0;
        Ok(())
    }

    /// Begins a request with a copy of one whole OP_MSG, uncompressed, with its header.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn begin_message(&mut self, message: &[u8]) -> Result<(), TransportError> {
        self.channel.begin_message(message).map_err(TransportError::Refused)?;
        self.written = 0;
        Ok(())
    }

    /// Takes back a request of which no byte was written. The connection is as it was before.
    ///
    /// # Panics
    ///
    /// When no request was begun.
    pub fn withdraw(&mut self) {
        self.channel.withdraw();
    }

    /// A step of writing the request that was begun; `Ok` when the operating system has all of it.
    ///
    /// # Errors
    ///
    /// Those of `io`.
    pub fn write(&mut self, io: &mut (impl Read + Write)) -> io::Result<()> {
        self.layer.write_all(io, self.channel.outgoing(), &mut self.written)?;
        self.channel.written();
        Ok(())
    }

    /// A step of reading; `Ok` when the body of the reply is there.
    ///
    /// # Errors
    ///
    /// Those of `io`, the end of the stream, and what breaks the protocol.
    pub fn read(&mut self, io: &mut (impl Read + Write)) -> Result<RawDocumentBuf, TransportError> {
        // What came with an earlier reply.
        if let Some(reply) = self.channel.reply()? {
            return Ok(reply);
        }
        self.fill(io)?;
        self.channel.reply()?.ok_or_else(|| again().into())
    }

    /// A step of reading; `Ok` when the next of the replies is there, whose buffer it keeps if it
    /// is large.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); [`TransportError::Refused`] when no reply is due.
    pub fn read_message(
        &mut self,
        io: &mut (impl Read + Write),
    ) -> Result<MessageBuf, TransportError> {
        if !self.channel.awaits_reply() {
            return Err(TransportError::Refused(WireError::NothingDue));
        }
        self.channel.reply_message()?.map_or_else(|| self.fill(io).and(Err(again().into())), Ok)
    }

    /// A step of looking at an idle connection: nothing may come but messages of TLS itself, which are
    /// processed. Never `Ok`; [`WouldBlock`](ErrorKind::WouldBlock) when all is well.
    ///
    /// # Errors
    ///
    /// Those of `io` and of TLS; [`UnexpectedEof`](ErrorKind::UnexpectedEof) when the peer has closed the
    /// connection, and [`InvalidData`](ErrorKind::InvalidData) when it has sent something.
    pub fn look(&mut self, io: &mut (impl Read + Write)) -> io::Result<Infallible> {
        check(self.layer.process)?;
        let (kind, reason) = match self.layer.read(io, &mut [0; 1])? {
            0 => (ErrorKind::UnexpectedEof, "closed by the peer while idle"),
            _ => (ErrorKind::InvalidData, "the peer sent bytes that nothing asked for"),
        };
        Err(io::Error::new(kind, reason))
    }

    /// Reads some bytes.
    fn fill(&mut self, io: &mut (impl Read + Write)) -> Result<(), TransportError> {
        let count = self.layer.read(io, self.channel.spare())?;
        if count == 0 {
            self.channel.end()?;
            return Err(TransportError::Closed);
        }
        self.channel.filled(count);
        Ok(())
    }

    /// Lends the bytes to a driver with its own way to write and read messages. The connection is
    /// not [reusable](Self::is_reusable) until [`Exchange::take_back`].
    ///
    /// # Errors
    ///
    /// [`TransportError::Refused`] while an exchange is under way; nothing changes then.
    pub fn lend(&mut self) -> Result<(&mut ByteLayer, &mut Exchange), TransportError> {
        let exchange = self.channel.lend().map_err(TransportError::Refused)?;
        Ok((&mut self.layer, exchange))
    }
}

impl ByteLayer {
    fn shake(&mut self, io: &mut (impl Read + Write)) -> io::Result<()> {
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
    pub(super) fn send(&mut self, io: &mut (impl Read + Write)) -> io::Result<()> {
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
    pub(super) fn end(&mut self, io: &mut (impl Read + Write)) -> io::Result<()> {
        check(self.process)?;
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush(io)
    }

    /// A step of writing and flushing all of `bytes`, of which `written` are written.
    pub(super) fn write_all(
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
fn again() -> io::Error {
    ErrorKind::Interrupted.into()
}

fn check(process: Process) -> io::Result<()> {
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

impl Default for Transport {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl fmt::Debug for ByteLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteLayer").field("is_tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use bson::rawdoc;
    use cenote_core::wire::Flags;

    use super::Transport;

    #[test]
    fn another_process_writes_nothing() {
        let mut transport = Transport::new();
        transport.begin(&rawdoc! { "ping": 1 }, Some("admin"), Flags::NONE).unwrap();
        transport.layer.process.0 += 1;
        let mut socket = Cursor::new(Vec::new());
        assert!(transport.write(&mut socket).is_err());
        assert!(transport.layer.end(&mut socket).is_err());
        assert!(socket.get_ref().is_empty());
        transport.layer.process.0 -= 1;
        transport.write(&mut socket).unwrap();
        assert!(!socket.get_ref().is_empty());
    }
}
