//! Commands in an application's own event loop.

use std::io::ErrorKind;
use std::task::Poll;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::error::{ConnectionError, OperationError, Stage};
use cenote_core::wire::Flags;
use cenote_shell::connection::judge;
use cenote_shell::transport_error::TransportError;

use super::{Connection, MongoConnector};
use crate::pooled_connection::PooledConnection;

impl Connection {
    /// Begins a command without blocking, for an application with an event loop of its own;
    /// [`advance`](Self::advance) goes on with it. It has no timeout but the application's.
    ///
    /// # Errors
    ///
    /// The command cannot be sent, or another one is under way.
    pub fn begin(&mut self, database: &str, command: &RawDocument) -> Result<(), ConnectionError> {
        let begun = self.socket.never_block().map_err(TransportError::from);
        begun
            .and_then(|()| self.transport.begin(command, Some(database), Flags::NONE))
            .map_err(|error| error.at(Stage::Operation))
    }

    /// Goes on with a command that was [begun](Self::begin), as far as it can without blocking. Returns
    /// [`Poll::Pending`] until the reply is there. To be called after `begin`, and again whenever the socket
    /// is readable or writable; an extra call does no harm.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn advance(&mut self) -> Poll<Result<RawDocumentBuf, ConnectionError>> {
        loop {
            let mut io = self.socket.io();
            let step = if self.transport.is_writing() {
                self.transport.write(&mut io).map(|()| None).map_err(TransportError::from)
            } else {
                self.transport.read(&mut io).map(Some)
            };
            match TransportError::split_would_block(step) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Poll::Pending,
                Ok(Ok(None)) => {}
                Ok(Ok(Some(reply))) => return Poll::Ready(judge(reply)),
                Ok(Err(error)) => return Poll::Ready(Err(error.at(Stage::Operation))),
            }
        }
    }
}

impl PooledConnection<MongoConnector> {
    /// [`Connection::begin`]. An error that leaves the connection unfit marks it.
    ///
    /// # Errors
    ///
    /// As [`Connection::begin`], or the pool interrupted the connection.
    pub fn begin(&mut self, database: &str, command: &RawDocument) -> Result<(), OperationError> {
        self.run(|connection| connection.begin(database, command))
    }

    /// [`Connection::advance`]. An error that leaves the connection unfit marks it. An interrupt of the pool
    /// makes the socket readable.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn advance(&mut self) -> Poll<Result<RawDocumentBuf, OperationError>> {
        let reply = self.run(|connection| match connection.advance() {
            Poll::Pending => Ok(None),
            Poll::Ready(reply) => reply.map(Some),
        });
        match reply.transpose() {
            Some(reply) => Poll::Ready(reply.map(|reply| self.show_write_concern_error(reply))),
            None => Poll::Pending,
        }
    }
}
