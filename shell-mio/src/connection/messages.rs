//! Commands and replies on a stream, step by step.

use std::io::{self, ErrorKind};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::wire::{
    Channel, Compressor, Exchange, Flags, MessageBuf, MessageLimit, WireError,
};
use mio::event::Source;
use mio::{Interest, Registry, Token};

pub(super) use crate::transport_error::TransportError as Failure;

use super::patience::{Patience, Wait};
use super::stream::Stream;

/// A stream of messages.
pub(super) struct Messages {
    stream: Stream,
    channel: Channel,
    /// How much of what is being written the stream has.
    written: usize,
}

impl Messages {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, channel: Channel::new(), written: 0 }
    }

    /// As monitors read: `docs/decisions/0008-what-monitors-accept.md`.
    pub(super) fn lenient(stream: Stream) -> Self {
        Self { stream, channel: Channel::lenient(), written: 0 }
    }

    /// What hello has settled (CO-20, CM-05).
    pub(super) fn agree(&mut self, limit: MessageLimit, compressor: Option<Compressor>) {
        self.channel.agree(limit, compressor);
    }

    pub(super) fn limit(&self) -> MessageLimit {
        self.channel.limit()
    }

    pub(super) fn next_request_id(&mut self) -> i32 {
        self.channel.next_request_id()
    }

    pub(super) fn is_reusable(&self) -> bool {
        self.channel.is_reusable()
    }

    /// Blocks until all of it is written, or `patience` is over. If that is over before the first byte,
    /// nothing was begun (CS-11).
    pub(super) fn send(&mut self, patience: Patience) -> Result<(), Failure> {
        match patience.next() {
            Ok(first) => self.persist(first, patience, |messages| Ok(messages.write()?)),
            Err(after) => {
                self.channel.withdraw();
                Err(Failure::TimedOut(after))
            }
        }
    }

    /// Blocks until the body of the next reply is there.
    pub(super) fn receive(&mut self, patience: Patience) -> Result<RawDocumentBuf, Failure> {
        self.persist(patience.next()?, patience, Self::read)
    }

    /// Blocks until the next reply is there, with its buffer if it is large. What has come of it
    /// when `patience` is over stays here for the next call.
    pub(super) fn receive_message(&mut self, patience: Patience) -> Result<MessageBuf, Failure> {
        self.persist(patience.next()?, patience, Self::read_message)
    }

    /// Prepares a command for [`write`](Self::write). `database` is `None` for one that names its
    /// own, and may hold a secret.
    pub(super) fn begin(
        &mut self,
        command: &RawDocument,
        database: Option<&str>,
        flags: Flags,
    ) -> Result<(), Failure> {
        self.channel.begin(command, database, flags).map_err(Failure::Refused)?;
        self.written = 0;
        Ok(())
    }

    /// Prepares one whole OP_MSG, uncompressed, with its header.
    pub(super) fn begin_message(&mut self, message: &[u8]) -> Result<(), Failure> {
        self.channel.begin_message(message).map_err(Failure::Refused)?;
        self.written = 0;
        Ok(())
    }

    /// A step of writing, as those of the [stream](Stream); done when all is written.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let bytes = self.channel.outgoing();
        let unsent = bytes.get(self.written..).unwrap_or_default();
        if !unsent.is_empty() {
            self.written += match self.stream.write(unsent)? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => count,
            };
            if self.written < bytes.len() {
                return Err(ErrorKind::Interrupted.into());
            }
        }
        self.stream.flush()?;
        self.channel.written();
        Ok(())
    }

    /// A step of reading; done when the body of a reply is there.
    pub(super) fn read(&mut self) -> Result<RawDocumentBuf, Failure> {
        match self.channel.reply()? {
            Some(reply) => Ok(reply),
            None => Err(self.fill()?),
        }
    }

    /// As [`read`](Self::read), with all of the reply, and of those that may be several.
    pub(super) fn read_message(&mut self) -> Result<MessageBuf, Failure> {
        if !self.channel.awaits_reply() {
            return Err(Failure::Refused(WireError::NothingDue));
        }
        match self.channel.reply_message()? {
            Some(reply) => Ok(reply),
            None => Err(self.fill()?),
        }
    }

    /// Reads some, which is to be looked at.
    fn fill(&mut self) -> Result<Failure, Failure> {
        match self.stream.read(self.channel.spare())? {
            0 => {
                self.channel.end()?;
                Err(Failure::Closed)
            }
            count => {
                self.channel.filled(count);
                Ok(io::Error::from(ErrorKind::Interrupted).into())
            }
        }
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
        self.channel.is_writing()
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The bytes, for somebody else's messages: until [`Exchange::take_back`], for good.
    pub(super) fn lend(&mut self) -> Result<(&mut Stream, &mut Exchange), Failure> {
        let exchange = self.channel.lend().map_err(Failure::Refused)?;
        Ok((&mut self.stream, exchange))
    }

    /// The first wait has begun.
    fn persist<R>(
        &mut self,
        mut wait: Option<Wait>,
        patience: Patience,
        mut step: impl FnMut(&mut Self) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        loop {
            self.stream.block_for(wait.map(|wait| wait.left))?;
            match Failure::split_would_block(step(self)) {
                Ok(outcome) => return outcome,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // How it says so that it has waited for long enough.
                Err(error) => match wait {
                    Some(wait) => return Err(Failure::TimedOut(wait.after)),
                    None => return Err(error.into()),
                },
            }
            wait = patience.next()?;
        }
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
