//! What one does with a connection: commands, and messages of a driver's own.

use std::fmt;
use std::time::{Duration, Instant};

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::ConnectionDescription;
use cenote_core::error::{ConnectionError, OperationError, Stage};
use cenote_core::wire::{Flags, MessageBuf, MessageLimit};
use cenote_shell::connection::{has_to_be_unacknowledged, judge};

use super::MongoConnector;
use super::messages::Messages;
use super::patience::Patience;
use crate::guard::PooledConnection;

/// A connection to a server, authenticated and ready.
///
/// `socketTimeoutMS` limits each wait for the socket, to write and to read (OP-19).
pub struct Connection {
    pub(super) messages: Messages,
    pub(super) description: Box<ConnectionDescription>,
    pub(super) socket_timeout: Option<Duration>,
}

/// Asking it.
impl Connection {
    /// What the server said of itself and of this connection.
    #[must_use]
    pub fn description(&self) -> &ConnectionDescription {
        &self.description
    }

    /// The most bytes that a message to this server may have, header included (CO-20, MS-03).
    #[must_use]
    pub fn message_limit(&self) -> MessageLimit {
        self.messages.limit()
    }

    /// Whether it may go back to its pool: nothing is under way, nothing unread, nothing was wrong
    /// (CO-19).
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.messages.is_reusable()
    }
}

/// Commands.
impl Connection {
    /// Sends a command and blocks until its reply is there.
    ///
    /// A write that says `w: 0` is answered, too, without a word of what became of it; to send it
    /// without waiting there is [`command_unacknowledged`](Self::command_unacknowledged).
    ///
    /// # Errors
    ///
    /// The connection failed, or the server's reply is `ok: 0`. A write concern error is a reply.
    pub fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ConnectionError> {
        self.command_for(database, command, self.patience())
    }

    /// As [`command`](Self::command), and all of it ends at `deadline`. If that is over before the first
    /// byte is sent, none is, and the connection is [as it was](Self::is_reusable) (CS-11).
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn command_before(
        &mut self,
        database: &str,
        command: &RawDocument,
        deadline: Instant,
    ) -> Result<RawDocumentBuf, ConnectionError> {
        self.command_for(database, command, Patience::new(self.socket_timeout, Some(deadline)))
    }

    fn command_for(
        &mut self,
        database: &str,
        command: &RawDocument,
        patience: Patience,
    ) -> Result<RawDocumentBuf, ConnectionError> {
        let begun = self.messages.begin(command, Some(database), Flags::NONE);
        let sent = begun.and_then(|()| self.messages.send(patience));
        let reply = sent.and_then(|()| self.messages.receive(patience));
        judge(reply.map_err(|failure| failure.at(Stage::Operation))?)
    }

    /// Sends a command that is not answered (MS-08): a write with `writeConcern: {w: 0}`. Returns
    /// when its bytes are with the operating system; what becomes of them nobody tells.
    ///
    /// # Errors
    ///
    /// The connection failed. A command that does not say `w: 0` is refused, and nothing is sent:
    /// a server that takes it for an acknowledged one would keep its reply to itself.
    pub fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), ConnectionError> {
        has_to_be_unacknowledged(command)?;
        let patience = self.patience();
        let begun = self.messages.begin(command, Some(database), Flags::MORE_TO_COME);
        let sent = begun.and_then(|()| self.messages.send(patience));
        sent.map_err(|failure| failure.at(Stage::Operation))
    }
}

/// Messages of a driver's own.
impl Connection {
    /// A number for the next message: 1, 2, 3, … on this connection. A driver may have numbers of
    /// its own instead.
    pub fn next_request_id(&mut self) -> i32 {
        self.messages.next_request_id()
    }

    /// Sends one whole OP_MSG, as a [`MessageWriter`](cenote_core::wire::MessageWriter) makes it or
    /// whoever else: header, flags, sections. It goes out as it is, or compressed if that was agreed
    /// and its command may be (CM-10). Its [replies](Self::receive) must answer the number in its
    /// header (MS-15).
    ///
    /// After one with `moreToCome` no reply is waited for: the connection is free once this has
    /// returned (MS-08). With `exhaustAllowed`, any number of replies may come (MS-10).
    ///
    /// ```no_run
    /// use bson::rawdoc;
    /// use cenote_core::wire::{Flags, Ids, MessageWriter};
    /// # fn example(pool: cenote_mio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = pool.check_out()?;
    /// let (id, limit) = (connection.next_request_id(), connection.message_limit());
    ///
    /// let mut message = Vec::new(); // Used again and again by a driver.
    /// let insert = rawdoc! { "insert": "birds" };
    /// let mut writer =
    ///     MessageWriter::command(&mut message, Ids::request(id), Flags::NONE, &insert, "zoo")?;
    /// writer.sequence("documents", [rawdoc! { "_id": "owl" }, rawdoc! { "_id": "kiwi" }])?;
    /// writer.finish(limit)?;
    ///
    /// connection.send(&message)?;
    /// let reply = connection.receive()?;
    /// assert_eq!(reply.body().get_i32("n")?, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The connection failed. Refused without a byte sent, and the connection as it was, is a message
    /// that is larger than the [limit](Self::message_limit), whose header says another length, that
    /// is no OP_MSG or already compressed, and any message while a reply is to come.
    pub fn send(&mut self, message: &[u8]) -> Result<(), ConnectionError> {
        let patience = self.patience();
        let begun = self.messages.begin_message(message);
        let sent = begun.and_then(|()| self.messages.send(patience));
        sent.map_err(|failure| failure.at(Stage::Operation))
    }

    /// Blocks until the next reply to what was [sent](Self::send) is there, and gives all of it: header, flags,
    /// sections; decompressed and checked, but not judged: `ok: 0` is a reply. A large one is not
    /// copied, it keeps the buffer into which it was read.
    ///
    /// While replies have `moreToCome`, more are to be received, and nothing can be sent (MS-09).
    ///
    /// # Errors
    ///
    /// The connection failed, or what came breaks the protocol. Refused, and the connection as it
    /// was, when no reply is due.
    pub fn receive(&mut self) -> Result<MessageBuf, ConnectionError> {
        let patience = self.patience();
        let reply = self.messages.receive_message(patience);
        reply.map_err(|failure| failure.at(Stage::Operation))
    }

    fn patience(&self) -> Patience {
        Patience::new(self.socket_timeout, None)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("description", &self.description).finish_non_exhaustive()
    }
}

/// The same until the pool breaks the connection off. What leaves the connection unfit marks it, and
/// errors are shown to [`Builder::on_failure`](crate::Builder::on_failure).
impl PooledConnection<MongoConnector> {
    /// Sends a command and blocks until its reply is there: [`Connection::command`].
    ///
    /// # Errors
    ///
    /// The connection failed, the server's reply is `ok: 0`, or the pool was cleared with an
    /// interrupt meanwhile (ER-07).
    pub fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError> {
        self.run(|connection| connection.command(database, command))
    }

    /// As [`command`](Self::command), and all of it ends at `deadline`. If that is over before the first
    /// byte is sent, the connection is as it was, and goes back to the pool (CS-11).
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command).
    pub fn command_before(
        &mut self,
        database: &str,
        command: &RawDocument,
        deadline: Instant,
    ) -> Result<RawDocumentBuf, OperationError> {
        let outcome = self.run(|connection| {
            let outcome = connection.command_before(database, command, deadline);
            let is_late = outcome.as_ref().is_err_and(ConnectionError::is_timeout);
            // It says nothing about the server or the connection, and is shown to nobody.
            if is_late && connection.is_reusable() { Ok(outcome) } else { outcome.map(Ok) }
        })?;
        Ok(outcome?)
    }

    /// Sends a write that is not answered: [`Connection::command_unacknowledged`].
    ///
    /// # Errors
    ///
    /// The connection failed, the command does not say `w: 0`, or the pool was cleared with an
    /// interrupt meanwhile (ER-07).
    pub fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), OperationError> {
        self.run(|connection| connection.command_unacknowledged(database, command))
    }

    /// Sends one whole OP_MSG: [`Connection::send`].
    ///
    /// # Errors
    ///
    /// The connection failed, the message was refused, or the pool was cleared with an interrupt
    /// meanwhile (ER-07).
    pub fn send(&mut self, message: &[u8]) -> Result<(), OperationError> {
        self.run(|connection| connection.send(message))
    }

    /// Blocks until the next reply is there: [`Connection::receive`].
    ///
    /// # Errors
    ///
    /// The connection failed, no reply is due, or the pool was cleared with an interrupt meanwhile
    /// (ER-07).
    pub fn receive(&mut self) -> Result<MessageBuf, OperationError> {
        self.run(Connection::receive)
    }
}
