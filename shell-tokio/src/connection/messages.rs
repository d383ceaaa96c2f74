//! Commands and replies on a stream.

use std::io;
use std::mem;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::{
    Compressor, Exchange, Flags, Frame, Framer, Ids, Message, MessageBuf, MessageLimit,
    MessageWriter, OpCode, RequestIds, WireError, decompress, may_compress,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zeroize::{Zeroize, Zeroizing};

use super::dial::Limit;
use super::stream::Stream;

/// What a message is longer than its command: headers, the name of the database.
const OVERHEAD: usize = 256;

/// The room that a buffer keeps.
const SMALL: usize = 4096;

/// A stream of messages, and whose turn it is.
pub(super) struct Messages<S = Stream> {
    stream: S,
    framer: Framer,
    exchange: Exchange,
    requests: RequestIds,
    limit: MessageLimit,
    compressor: Option<Compressor>,
    /// May hold what proves who the client is, and is overwritten after that (AU-31, AU-50).
    outgoing: Zeroizing<Vec<u8>>,
    compressed: Vec<u8>,
    scratch: Vec<u8>,
}

/// Why there was no reply, at whatever stage.
#[derive(Debug)]
pub(super) enum Failure {
    Io(io::Error),
    Closed,
    TimedOut(Duration),
    Wire(WireError),
    /// This side could not do that, or not now; no byte went either way.
    Refused(WireError),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Messages<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            framer: Framer::new(MessageLimit::DEFAULT),
            exchange: Exchange::default(),
            requests: RequestIds::default(),
            limit: MessageLimit::DEFAULT,
            compressor: None,
            outgoing: Zeroizing::default(),
            compressed: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// As monitors read: `docs/decisions/0008-what-monitors-accept.md`.
    pub(super) fn lenient(stream: S) -> Self {
        Self { exchange: Exchange::lenient(), ..Self::new(stream) }
    }

    /// What hello has settled (CO-20, CM-05).
    pub(super) fn agree(&mut self, limit: MessageLimit, compressor: Option<Compressor>) {
        self.limit = limit;
        self.framer.set_limit(limit);
        self.compressor = compressor;
    }

    pub(super) fn limit(&self) -> MessageLimit {
        self.limit
    }

    pub(super) fn next_request_id(&mut self) -> i32 {
        self.requests.next_id()
    }

    pub(super) fn is_reusable(&self) -> bool {
        self.exchange.is_reusable() && self.framer.is_empty()
    }

    pub(super) async fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
        limit: Limit,
    ) -> Result<RawDocumentBuf, Failure> {
        self.send(command, Some(database), Flags::NONE, limit).await?;
        self.receive(limit).await
    }

    /// `database` is `None` for a command that names its own.
    pub(super) async fn send(
        &mut self,
        command: &RawDocument,
        database: Option<&str>,
        flags: Flags,
        limit: Limit,
    ) -> Result<(), Failure> {
        let ids = Ids::request(self.next_request_id());
        self.outgoing.clear();
        // Room for all of it, so that growing leaves no copy behind.
        self.outgoing.reserve(command.as_bytes().len() + OVERHEAD);
        let writer = match database {
            Some(database) => {
                MessageWriter::command(&mut self.outgoing, ids, flags, command, database)
                    .map_err(Failure::Refused)?
            }
            None => MessageWriter::new(&mut self.outgoing, ids, flags, command),
        };
        writer.finish(self.limit).map_err(Failure::Refused)?;
        // Out of the way meanwhile. If this is dropped, so is the buffer, overwritten.
        let outgoing = mem::take(&mut self.outgoing);
        let outcome = self.send_message(&outgoing, limit).await;
        self.outgoing = outgoing;
        if database.is_none() {
            self.outgoing.zeroize();
        }
        outcome
    }

    /// One whole OP_MSG, uncompressed, with its header.
    pub(super) async fn send_message(
        &mut self,
        message: &[u8],
        limit: Limit,
    ) -> Result<(), Failure> {
        let message = Frame::new(message, self.limit).map_err(Failure::Refused)?;
        let flags = message.flags().map_err(Failure::Refused)?;
        let is_compressed = self.compress(message).map_err(Failure::Refused)?;
        let request_id = message.header().ids.request_id;
        self.exchange.begin_request(request_id, flags).map_err(Failure::Refused)?;
        let bytes = if is_compressed { &self.compressed } else { message.bytes() };
        limit.hold(self.stream.write_all(bytes)).await??;
        limit.hold(self.stream.flush()).await??;
        self.exchange.request_written();
        if !self.exchange.awaits_reply() {
            self.release();
        }
        Ok(())
    }

    /// The body of the next reply.
    pub(super) async fn receive(&mut self, limit: Limit) -> Result<RawDocumentBuf, Failure> {
        loop {
            if let Some(frame) = self.framer.next_frame()? {
                let reply = Message::parse(decompress(frame, self.limit, &mut self.scratch)?)?;
                // Nobody here allows a second reply, so that this one is the last.
                let _ = self.exchange.reply(reply.header(), reply.flags())?;
                let body = reply.body().to_owned();
                self.release();
                return Ok(body);
            }
            self.read(limit).await?;
        }
    }

    /// The next reply, with its buffer if it is large. Dropped before it is whole, what has come
    /// of it stays here for the next call.
    pub(super) async fn receive_message(&mut self, limit: Limit) -> Result<MessageBuf, Failure> {
        if !self.exchange.awaits_reply() {
            return Err(Failure::Refused(WireError::NothingDue));
        }
        loop {
            if let Some(bytes) = self.framer.next_message()? {
                let reply = MessageBuf::parse(self.decompressed(bytes)?, self.limit)?;
                let _ = self.exchange.reply(reply.header(), reply.flags())?;
                self.release();
                return Ok(reply);
            }
            self.read(limit).await?;
        }
    }

    /// The stream itself. What goes over it nobody knows here, until it is said that it may be
    /// [taken back](Exchange::take_back).
    pub(super) fn lend(&mut self) -> Result<(&mut S, &mut Exchange), Failure> {
        if !self.framer.is_empty() {
            return Err(Failure::Refused(WireError::NotYourTurn));
        }
        self.exchange.lend().map_err(Failure::Refused)?;
        Ok((&mut self.stream, &mut self.exchange))
    }

    async fn read(&mut self, limit: Limit) -> Result<(), Failure> {
        let count = limit.hold(self.stream.read(self.framer.spare())).await??;
        if count == 0 {
            self.framer.finish()?;
            return Err(Failure::Closed);
        }
        self.framer.filled(count);
        Ok(())
    }
}

impl<S> Messages<S> {
    /// Puts the message into its buffer, if it is one to be compressed. CM-10: not what holds a
    /// secret, nor what comes before anything is agreed.
    fn compress(&mut self, message: Frame<'_>) -> Result<bool, WireError> {
        let Some(compressor) = self.compressor else { return Ok(false) };
        if !message.command_name().is_some_and(may_compress) {
            return Ok(false);
        }
        self.compressed.clear();
        compressor.compress(message, self.limit, &mut self.compressed)?;
        Ok(true)
    }

    fn decompressed(&self, message: Vec<u8>) -> Result<Vec<u8>, WireError> {
        let frame = Frame::new(&message, self.limit)?;
        if frame.header().op_code != OpCode::Compressed {
            return Ok(message);
        }
        let mut whole = Vec::new();
        decompress(frame, self.limit, &mut whole)?;
        Ok(whole)
    }

    /// Gives back what only a large message needed: a pool may keep thousands of these.
    fn release(&mut self) {
        self.framer.release();
        for buffer in [&mut *self.outgoing, &mut self.compressed, &mut self.scratch] {
            buffer.clear();
            buffer.shrink_to(SMALL);
        }
    }
}

impl Failure {
    pub(super) fn at(self, stage: Stage) -> ConnectionError {
        match self {
            Self::Io(error) => ConnectionError::network(stage, error),
            Self::Closed => ConnectionError::network(stage, "closed by the peer"),
            Self::TimedOut(after) => ConnectionError::timeout(stage, after),
            // The end in the middle of a message is an end, and not the protocol's fault.
            Self::Wire(error @ WireError::EndOfStream { .. }) => {
                ConnectionError::network(stage, error)
            }
            Self::Wire(error) => ConnectionError::protocol(stage, &error.to_string()),
            Self::Refused(error) => ConnectionError::configuration(stage, &error.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Duration> for Failure {
    fn from(after: Duration) -> Self {
        Self::TimedOut(after)
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}
