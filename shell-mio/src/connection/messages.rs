//! Commands and replies on a stream.

use std::io::{self, ErrorKind};
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::{
    Compressor, Exchange, Flags, Frame, Framer, Ids, Message, MessageBuf, MessageLimit,
    MessageWriter, OpCode, RequestIds, WireError, decompress, may_compress,
};
use mio::event::Source;
use mio::{Interest, Registry, Token};
use zeroize::{Zeroize, Zeroizing};

use super::patience::Patience;
use super::stream::Stream;

/// What a message is longer than its command: headers, the name of the database.
const OVERHEAD: usize = 256;

/// The room that a buffer keeps.
const SMALL: usize = 4096;

/// A stream of messages, and whose turn it is.
pub(super) struct Messages {
    stream: Stream,
    framer: Framer,
    exchange: Exchange,
    requests: RequestIds,
    limit: MessageLimit,
    compressor: Option<Compressor>,
    /// May hold what proves who the client is, and is overwritten after that (AU-31, AU-50).
    outgoing: Zeroizing<Vec<u8>>,
    compressed: Vec<u8>,
    /// What is being written, and how much of it the stream has.
    written: Written,
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Default)]
struct Written {
    /// There is something to be written.
    is_pending: bool,
    is_compressed: bool,
    is_secret: bool,
    bytes: usize,
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

impl Messages {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            framer: Framer::new(MessageLimit::DEFAULT),
            exchange: Exchange::default(),
            requests: RequestIds::default(),
            limit: MessageLimit::DEFAULT,
            compressor: None,
            outgoing: Zeroizing::default(),
            compressed: Vec::new(),
            written: Written::default(),
            scratch: Vec::new(),
        }
    }

    /// As monitors read: `docs/decisions/0008-what-monitors-accept.md`.
    pub(super) fn lenient(stream: Stream) -> Self {
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

    /// Blocks until all of it is written, or `patience` is over.
    pub(super) fn send(&mut self, patience: Patience) -> Result<(), Failure> {
        self.persist(patience, |messages| Ok(messages.write()?))
    }

    /// Blocks until the body of the next reply is there.
    pub(super) fn receive(&mut self, patience: Patience) -> Result<RawDocumentBuf, Failure> {
        self.persist(patience, Self::read)
    }

    /// Blocks until the next reply is there, with its buffer if it is large. What has come of it
    /// when `patience` is over stays here for the next call.
    pub(super) fn receive_message(&mut self, patience: Patience) -> Result<MessageBuf, Failure> {
        self.persist(patience, Self::read_message)
    }

    /// Prepares a command for [`write`](Self::write). `database` is `None` for one that names its
    /// own, and may hold a secret.
    pub(super) fn begin(
        &mut self,
        command: &RawDocument,
        database: Option<&str>,
        flags: Flags,
    ) -> Result<(), Failure> {
        self.check_turn()?;
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
        self.begin_outgoing(database.is_none())
    }

    /// Prepares one whole OP_MSG, uncompressed, with its header.
    pub(super) fn begin_message(&mut self, message: &[u8]) -> Result<(), Failure> {
        self.check_turn()?;
        self.outgoing.clear();
        self.outgoing.extend_from_slice(message);
        self.begin_outgoing(false)
    }

    /// A step of writing, as those of the [stream](Stream); done when all is written.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let bytes = if self.written.is_compressed { &self.compressed } else { &*self.outgoing };
        let unsent = bytes.get(self.written.bytes..).unwrap_or_default();
        if !unsent.is_empty() {
            self.written.bytes += match self.stream.write(unsent)? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => count,
            };
            if self.written.bytes < bytes.len() {
                return Err(ErrorKind::Interrupted.into());
            }
        }
        self.stream.flush()?;
        self.exchange.request_written();
        self.written.is_pending = false;
        if self.written.is_secret {
            self.outgoing.zeroize();
        }
        if !self.exchange.awaits_reply() {
            self.release();
        }
        Ok(())
    }

    /// A step of reading; done when the body of a reply is there.
    pub(super) fn read(&mut self) -> Result<RawDocumentBuf, Failure> {
        if let Some(frame) = self.framer.next_frame()? {
            let reply = Message::parse(decompress(frame, self.limit, &mut self.scratch)?)?;
            // Nobody here allows a second reply, so that this one is the last.
            let _ = self.exchange.reply(reply.header(), reply.flags())?;
            let body = reply.body().to_owned();
            self.release();
            return Ok(body);
        }
        Err(self.fill()?)
    }

    /// As [`read`](Self::read), with all of the reply, and of those that may be several.
    pub(super) fn read_message(&mut self) -> Result<MessageBuf, Failure> {
        if !self.exchange.awaits_reply() {
            return Err(Failure::Refused(WireError::NothingDue));
        }
        if let Some(bytes) = self.framer.next_message()? {
            let reply = MessageBuf::parse(self.decompressed(bytes)?, self.limit)?;
            let _ = self.exchange.reply(reply.header(), reply.flags())?;
            self.release();
            return Ok(reply);
        }
        Err(self.fill()?)
    }

    /// Reads some, which is to be looked at.
    fn fill(&mut self) -> Result<Failure, Failure> {
        match self.stream.read(self.framer.spare())? {
            0 => {
                self.framer.finish()?;
                Err(Failure::Closed)
            }
            count => {
                self.framer.filled(count);
                Ok(io::Error::from(ErrorKind::Interrupted).into())
            }
        }
    }

    /// What is being written is not to be overwritten.
    fn check_turn(&self) -> Result<(), Failure> {
        match self.written.is_pending {
            true => Err(Failure::Refused(WireError::NotYourTurn)),
            false => Ok(()),
        }
    }

    fn begin_outgoing(&mut self, is_secret: bool) -> Result<(), Failure> {
        let message = Frame::new(&self.outgoing, self.limit).map_err(Failure::Refused)?;
        let flags = message.flags().map_err(Failure::Refused)?;
        let request_id = message.header().ids.request_id;
        let may_be_compressed = message.command_name().is_some_and(may_compress);
        let mut is_compressed = false;
        // CM-10: not what holds a secret, nor what comes before anything is agreed.
        if let Some(compressor) = self.compressor.filter(|_| may_be_compressed) {
            self.compressed.clear();
            let compressed = compressor.compress(message, self.limit, &mut self.compressed);
            compressed.map_err(Failure::Refused)?;
            is_compressed = true;
        }
        self.exchange.begin_request(request_id, flags).map_err(Failure::Refused)?;
        self.written = Written { is_pending: true, is_compressed, is_secret, bytes: 0 };
        Ok(())
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
}

impl Messages {
    /// From now on, calls wait.
    pub(super) fn block(&mut self) -> io::Result<()> {
        self.stream.block_for(None)
    }

    /// From now on, calls do not wait.
    pub(super) fn never_block(&mut self) -> io::Result<()> {
        self.stream.never_block()
    }

    /// Whether a request is prepared that is not written.
    pub(super) fn is_writing(&self) -> bool {
        self.written.is_pending
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The bytes, for somebody else's messages: until [`Exchange::take_back`], for good.
    pub(super) fn lend(&mut self) -> Result<(&mut Stream, &mut Exchange), Failure> {
        self.check_turn()?;
        if !self.framer.is_empty() {
            return Err(Failure::Refused(WireError::NotYourTurn));
        }
        self.exchange.lend().map_err(Failure::Refused)?;
        Ok((&mut self.stream, &mut self.exchange))
    }

    fn persist<R>(
        &mut self,
        patience: Patience,
        mut step: impl FnMut(&mut Self) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        loop {
            let wait = patience.next()?;
            self.stream.block_for(wait.map(|wait| wait.left))?;
            match Failure::apart(step(self)) {
                Ok(outcome) => return outcome,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // How it says so that it has waited for long enough.
                Err(error) => match wait {
                    Some(wait) => return Err(Failure::TimedOut(wait.after)),
                    None => return Err(error.into()),
                },
            }
        }
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
    /// What is no failure but a step, as an error of its own.
    pub(super) fn apart<R>(outcome: Result<R, Self>) -> io::Result<Result<R, Self>> {
        match outcome {
            Err(Self::Io(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Err(error)
            }
            outcome => Ok(outcome),
        }
    }

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

/// While the connection is being opened.
impl Source for Messages {
    fn register(&mut self, registry: &Registry, token: Token, both: Interest) -> io::Result<()> {
        self.stream.register(registry, token, both)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, both: Interest) -> io::Result<()> {
        self.stream.reregister(registry, token, both)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.stream.deregister(registry)
    }
}
