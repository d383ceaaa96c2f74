mod byte_layer;

use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};
use std::{fmt, mem};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::ServerApi;
use cenote_core::wire::{
    Channel, Compressor, Exchange, Flags, MessageBuf, MessageLimit, RequestIds, WireError,
};
use rustls::ClientConnection;

use crate::connection::transport_error::TransportError;
use crate::runtime::process::Process;

use self::byte_layer::{again, check};

pub use self::byte_layer::ByteLayer;

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
