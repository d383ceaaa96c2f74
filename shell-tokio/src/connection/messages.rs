//! Commands and replies on a stream.

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::wire::{
    Channel, Compressor, Exchange, Flags, MessageBuf, MessageLimit, WireError,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::limit::Limit;
use super::stream::Stream;
pub(super) use crate::transport_error::TransportError as Failure;

/// A stream of messages.
pub(super) struct Messages<S = Stream> {
    stream: S,
    channel: Channel,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Messages<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, channel: Channel::new() }
    }

    /// As monitors read: `docs/decisions/0008-what-monitors-accept.md`.
    pub(super) fn lenient(stream: S) -> Self {
        Self { stream, channel: Channel::lenient() }
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
        self.channel.begin(command, database, flags).map_err(Failure::Refused)?;
        write(&mut self.stream, self.channel.outgoing(), limit).await?;
        self.channel.written();
        Ok(())
    }

    /// One whole OP_MSG, uncompressed, with its header.
    pub(super) async fn send_message(
        &mut self,
        message: &[u8],
        limit: Limit,
    ) -> Result<(), Failure> {
        let bytes = self.channel.begin_borrowed(message).map_err(Failure::Refused)?;
        write(&mut self.stream, bytes, limit).await?;
        self.channel.written();
        Ok(())
    }

    /// The body of the next reply.
    pub(super) async fn receive(&mut self, limit: Limit) -> Result<RawDocumentBuf, Failure> {
        loop {
            if let Some(reply) = self.channel.reply()? {
                return Ok(reply);
            }
            self.read(limit).await?;
        }
    }

    /// The next reply, with its buffer if it is large. Dropped before it is whole, what has come
    /// of it stays here for the next call.
    pub(super) async fn receive_message(&mut self, limit: Limit) -> Result<MessageBuf, Failure> {
        if !self.channel.awaits_reply() {
            return Err(Failure::Refused(WireError::NothingDue));
        }
        loop {
            if let Some(reply) = self.channel.reply_message()? {
                return Ok(reply);
            }
            self.read(limit).await?;
        }
    }

    /// The stream itself. What goes over it nobody knows here, until it is said that it may be
    /// [taken back](Exchange::take_back).
    pub(super) fn lend(&mut self) -> Result<(&mut S, &mut Exchange), Failure> {
        let exchange = self.channel.lend().map_err(Failure::Refused)?;
        Ok((&mut self.stream, exchange))
    }

    async fn read(&mut self, limit: Limit) -> Result<(), Failure> {
        let count = limit.hold(self.stream.read(self.channel.spare())).await??;
        if count == 0 {
            self.channel.end()?;
            return Err(Failure::Closed);
        }
        self.channel.filled(count);
        Ok(())
    }
}

async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    limit: Limit,
) -> Result<(), Failure> {
    limit.hold(stream.write_all(bytes)).await??;
    limit.hold(stream.flush()).await??;
    Ok(())
}
