//! Commands in an application's own event loop.

use std::io::ErrorKind;
use std::task::Poll;
use std::time::Instant;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::error::{ConnectionError, OperationError, Stage};
use cenote_core::wire::Flags;
use cenote_shell::connection::operation::{OperationLimit, OperationOptions};
use cenote_shell::connection::transport_error::TransportError;
use cenote_shell::connection::{Reply, judge_within};

use super::{Connection, MongoConnector};
use crate::pooled_connection::PooledConnection;

impl Connection {
    /// Begins a command without blocking, for an application with an event loop of its own;
    /// [`advance`](Self::advance) goes on with it. `timeoutMS` limits it until its [deadline](Self::deadline);
    /// `socketTimeoutMS` is up to the application. After a refusal with code 391 it is not sent again: the application
    /// calls [`reauthenticate`](Self::reauthenticate), which blocks, or has the connection closed.
    ///
    /// # Errors
    ///
    /// The command cannot be sent, or another one is under way.
    pub fn begin(&mut self, database: &str, command: &RawDocument) -> Result<(), ConnectionError> {
        self.begin_with(database, command, OperationOptions::new())
    }

    /// As [`begin`](Self::begin), with options of this call, which are those of
    /// [`command_with`](Self::command_with).
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn begin_with(
        &mut self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<(), ConnectionError> {
        let limit = self.limit(options);
        self.begin_within(database, command, limit).map_err(|error| error.at(Stage::Operation))?;
        self.of_exchange = Some(limit);
        Ok(())
    }

    fn begin_within(
        &mut self,
        database: &str,
        command: &RawDocument,
        limit: OperationLimit,
    ) -> Result<(), TransportError> {
        self.socket.never_block()?;
        let command = limit.bound(command, Instant::now)?;
        self.transport.begin(&command, Some(database), Flags::NONE)
    }

    /// When the command that was [begun](Self::begin) fails: [`advance`](Self::advance) is to be called then, too.
    /// `None` is without limit.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        Some(self.of_exchange?.deadline?.at)
    }

    /// Goes on with a command that was [begun](Self::begin), as far as it can without blocking. Returns
    /// [`Poll::Pending`] until the reply is there. To be called after `begin`, and again whenever the socket
    /// is readable or writable; an extra call does no harm. If the time is over before the first byte is sent, nothing is
    /// sent, and the connection stays [reusable](Self::is_reusable).
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn advance(&mut self) -> Poll<Result<RawDocumentBuf, ConnectionError>> {
        self.advance_reply().map_ok(|reply| reply.body)
    }

    fn advance_reply(&mut self) -> Poll<Result<Reply, ConnectionError>> {
        let limit = self.of_exchange;
        let outcome = self.advance_within(limit.unwrap_or_default());
        if outcome.is_ready() {
            self.of_exchange = None;
        }
        outcome
    }

    fn advance_within(&mut self, limit: OperationLimit) -> Poll<Result<Reply, ConnectionError>> {
        if self.transport.is_unsent()
            && let Err(late) = limit.check_before_write(Instant::now)
        {
            self.transport.withdraw();
            return Poll::Ready(Err(late.at(Stage::Operation)));
        }
        loop {
            let mut io = self.socket.io();
            let step = if self.transport.is_writing() {
                self.transport.write(&mut io).map(|()| None).map_err(TransportError::from)
            } else {
                self.transport.read(&mut io).map(Some)
            };
            match TransportError::split_would_block(step) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // After a look at what is there by now: a reply in time counts.
                Err(_) => match limit.check_before_read(Instant::now) {
                    Ok(()) => return Poll::Pending,
                    Err(late) => return Poll::Ready(Err(late.at(Stage::Operation))),
                },
                Ok(Ok(None)) => {}
                Ok(Ok(Some(reply))) => {
                    let authentication = self.reauthentication.as_deref();
                    return Poll::Ready(judge_within(&limit, reply, authentication));
                }
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
        self.begin_with(database, command, OperationOptions::new())
    }

    /// [`Connection::begin_with`]. A command that is not sent, because its time is over, leaves the connection
    /// healthy.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn begin_with(
        &mut self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<(), OperationError> {
        let options = self.with_round_trip(options);
        self.run(|connection| connection.begin_with(database, command, options))
    }

    /// [`Connection::advance`]. An error that leaves the connection unfit marks it. An interrupt of the pool
    /// makes the socket readable.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn advance(&mut self) -> Poll<Result<RawDocumentBuf, OperationError>> {
        let reply = self.run(|connection| match connection.advance_reply() {
            Poll::Pending => Ok(None),
            Poll::Ready(reply) => reply.map(Some),
        });
        match reply.transpose() {
            Some(reply) => Poll::Ready(reply.map(|reply| self.show_write_concern_error(reply))),
            None => Poll::Pending,
        }
    }
}
