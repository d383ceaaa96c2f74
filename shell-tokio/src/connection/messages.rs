//! Commands and replies on a stream.

use std::io;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::{
    Compressor, Exchange, Flags, Frame, Framer, Ids, Message, MessageLimit, MessageWriter,
    RequestIds, WireError, decompress, may_compress,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zeroize::{Zeroize, Zeroizing};

use super::dial::Limit;
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
    scratch: Vec<u8>,
}

/// Why there was no reply, at whatever stage.
#[derive(Debug)]
pub(super) enum Failure {
    Io(io::Error),
    Closed,
    TimedOut(Duration),
    Wire(WireError),
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
            scratch: Vec::new(),
        }
    }

    /// What hello has settled (CO-20, CM-05).
    pub(super) fn agree(&mut self, limit: MessageLimit, compressor: Option<Compressor>) {
        self.limit = limit;
        self.framer.set_limit(limit);
        self.compressor = compressor;
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
        self.send(command, Some(database), limit).await?;
        self.receive(limit).await
    }

    /// `database` is `None` for a command that names its own.
    pub(super) async fn send(
        &mut self,
        command: &RawDocument,
        database: Option<&str>,
        limit: Limit,
    ) -> Result<(), Failure> {
        let request_id = self.requests.next_id();
        self.outgoing.clear();
        // Room for all of it, so that growing leaves no copy behind.
        self.outgoing.reserve(command.as_bytes().len() + OVERHEAD);
        let ids = Ids::request(request_id);
        let writer = match database {
            Some(database) => {
                MessageWriter::command(&mut self.outgoing, ids, Flags::NONE, command, database)?
            }
            None => MessageWriter::new(&mut self.outgoing, ids, Flags::NONE, command),
        };
        writer.finish(self.limit)?;
        self.exchange.begin_request(request_id, Flags::NONE)?;
        let bytes = match self.compressor {
            Some(compressor) if may_be_compressed(command) => {
                self.compressed.clear();
                let message = Frame::new(&self.outgoing, self.limit)?;
                compressor.compress(message, self.limit, &mut self.compressed)?;
                &self.compressed
            }
            Some(_) | None => &self.outgoing,
        };
        limit.hold(self.stream.write_all(bytes)).await??;
        limit.hold(self.stream.flush()).await??;
        self.exchange.request_written();
        if database.is_none() {
            self.outgoing.zeroize();
        }
        Ok(())
    }

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
            let count = limit.hold(self.stream.read(self.framer.spare())).await??;
            if count == 0 {
                self.framer.finish()?;
                return Err(Failure::Closed);
            }
            self.framer.filled(count);
        }
    }
}

impl Messages {
    /// Gives back what only a large message needed: a pool may keep thousands of these.
    fn release(&mut self) {
        self.framer.release();
        for buffer in [&mut *self.outgoing, &mut self.compressed, &mut self.scratch] {
            buffer.clear();
            buffer.shrink_to(SMALL);
        }
    }
}

/// CM-10: what holds a secret, or comes before anything is agreed.
fn may_be_compressed(command: &RawDocument) -> bool {
    let name = command.iter().next().and_then(Result::ok).map(|(name, _)| name);
    name.is_some_and(|name| may_compress(name.as_str()))
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
