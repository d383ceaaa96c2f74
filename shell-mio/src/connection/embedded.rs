//! Commands for whoever has an event loop of his own: nothing blocks.

use std::io;
use std::task::Poll;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::error::{ConnectionError, OperationError, Stage};
use cenote_core::wire::Flags;
use cenote_shell::connection::judge;

use super::MongoConnector;
use super::messages::Failure;
use super::operations::Connection;
use crate::guard::PooledConnection;

impl Connection {
    /// Begins a command, and never blocks: for whoever has an event loop.
    /// [`advance`](Self::advance) goes on with it. No limit of time applies but the caller's own.
    ///
    /// # Errors
    ///
    /// What cannot be sent, or another command is under way.
    pub fn begin(&mut self, database: &str, command: &RawDocument) -> Result<(), ConnectionError> {
        let begun = self.messages.never_block().map_err(Failure::from);
        begun
            .and_then(|()| self.messages.begin(command, Some(database), Flags::NONE))
            .map_err(|failure| failure.at(Stage::Operation))
    }

    /// Goes on with a command that was [begun](Self::begin), as far as it can without waiting:
    /// [`Poll::Pending`] until the reply is there. To be called after `begin`, and again whenever
    /// the socket is readable or writable; once too often does no harm.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn advance(&mut self) -> Poll<Result<RawDocumentBuf, ConnectionError>> {
        loop {
            let messages = &mut self.messages;
            let step = if messages.is_writing() {
                messages.write().map(|()| None).map_err(Failure::from)
            } else {
                messages.read().map(Some)
            };
            match Failure::split_would_block(step) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Poll::Pending,
                Ok(Ok(None)) => {}
                Ok(Ok(Some(reply))) => return Poll::Ready(judge(reply)),
                Ok(Err(failure)) => return Poll::Ready(Err(failure.at(Stage::Operation))),
            }
        }
    }
}

impl PooledConnection<MongoConnector> {
    /// Begins a command, as [`Connection::begin`]; what leaves the connection unfit marks it.
    ///
    /// # Errors
    ///
    /// As [`Connection::begin`], or the connection was interrupted.
    pub fn begin(&mut self, database: &str, command: &RawDocument) -> Result<(), OperationError> {
        self.run(|connection| connection.begin(database, command))
    }

    /// Goes on with it, as [`Connection::advance`]; what leaves the connection unfit marks it. An
    /// interrupt makes the socket readable.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn advance(&mut self) -> Poll<Result<RawDocumentBuf, OperationError>> {
        let reply = self.run(|connection| match connection.advance() {
            Poll::Pending => Ok(None),
            Poll::Ready(reply) => reply.map(Some),
        });
        reply.transpose().map_or(Poll::Pending, Poll::Ready)
    }
}

/// For an event loop of one's own, on which a connection that is checked out is registered for as
/// long as it is needed there. On Windows there is none yet: see the crate's README.
#[cfg(unix)]
impl mio::event::Source for Connection {
    fn register(
        &mut self,
        registry: &mio::Registry,
        token: mio::Token,
        interests: mio::Interest,
    ) -> io::Result<()> {
        let descriptor = self.messages.stream().descriptor();
        mio::unix::SourceFd(&descriptor).register(registry, token, interests)
    }

    fn reregister(
        &mut self,
        registry: &mio::Registry,
        token: mio::Token,
        interests: mio::Interest,
    ) -> io::Result<()> {
        let descriptor = self.messages.stream().descriptor();
        mio::unix::SourceFd(&descriptor).reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &mio::Registry) -> io::Result<()> {
        let descriptor = self.messages.stream().descriptor();
        mio::unix::SourceFd(&descriptor).deregister(registry)
    }
}
