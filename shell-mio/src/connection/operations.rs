//! Commands, and messages of a driver's own.

use std::time::Instant;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::error::{ConnectionError, OperationError, Stage};
use cenote_core::wire::{Flags, MessageBuf};
use cenote_shell::connection::operation::{OperationLimit, OperationOptions};
use cenote_shell::connection::transport_error::TransportError;
use cenote_shell::connection::{
    Reauthentication, Reply, judge_within, require_unacknowledged, still_required,
};

use super::{Connection, MongoConnector};
use crate::pooled_connection::PooledConnection;

/// Commands.
impl Connection {
    /// Sends a command, and blocks until its reply is there.
    ///
    /// This waits for the reply to a write with `w: 0`, too; [`command_unacknowledged`](Self::command_unacknowledged)
    /// does not.
    ///
    /// # Errors
    ///
    /// The connection failed, or the server's reply is `ok: 0`. A write concern error is a reply.
    pub fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ConnectionError> {
        self.command_with(database, command, OperationOptions::new())
    }

    /// As [`command`](Self::command), with options of this call. If the server asks for another authentication
    /// (code 391), the connection [authenticates again](Self::reauthenticate), and the command is sent once more.
    ///
    /// With a limit, which may be `timeoutMS`, the command is sent with the `maxTimeMS` that is left of it, and must
    /// not bring its own: the server refuses the field twice. If the time is over before the command is sent, it is
    /// not sent, and the connection stays [reusable](Self::is_reusable).
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command); and with a limit also when the server has run out of time for a part of the
    /// command only (code 50 in `writeErrors` or `writeConcernError`).
    /// [`ConnectionError::is_timeout`] tells all of these.
    pub fn command_with(
        &mut self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, ConnectionError> {
        self.reply_to(database, command, options).map(|reply| reply.body)
    }

    /// As [`command_with`](Self::command_with).
    fn reply_to(
        &mut self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<Reply, ConnectionError> {
        let limit = self.limit(options);
        let outcome = self.exchange(database, command, &limit);
        if !self.can_reauthenticate() || !Reauthentication::is_asked_for(&outcome) {
            return outcome;
        }
        self.reauthenticate_within(limit)?;
        self.exchange(database, command, &limit).map_err(still_required)
    }

    fn exchange(
        &mut self,
        database: &str,
        command: &RawDocument,
        limit: &OperationLimit,
    ) -> Result<Reply, ConnectionError> {
        let sent = self.send_within(command, database, Flags::NONE, *limit);
        let reply =
            sent.and_then(|()| self.read(*limit, |transport, mut io| transport.read(&mut io)));
        let reply = reply.map_err(|error| error.at(Stage::Operation))?;
        judge_within(limit, reply, self.reauthentication.as_deref())
    }

    /// Sends the command of an operation, unless its time is over.
    fn send_within(
        &mut self,
        command: &RawDocument,
        database: &str,
        flags: Flags,
        limit: OperationLimit,
    ) -> Result<(), TransportError> {
        let command = limit.bound(command, Instant::now)?;
        self.transport.begin(&command, Some(database), flags)?;
        self.write(limit)
    }

    /// Sends a command without a reply: a write with `writeConcern: {w: 0}`. Returns when the operating
    /// system has its bytes; whether the server executes it remains unknown.
    ///
    /// # Errors
    ///
    /// The connection failed. A command without `w: 0` is refused and nothing is sent: a server may take it
    /// for an acknowledged one.
    pub fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), ConnectionError> {
        require_unacknowledged(command)?;
        let limit = self.limit(OperationOptions::new());
        let sent = self.send_within(command, database, Flags::MORE_TO_COME, limit);
        sent.map_err(|error| error.at(Stage::Operation))
    }
}

/// Messages of a driver's own.
impl Connection {
    /// A random number for the next message. Drivers may
    /// use numbers of their own instead.
    pub fn next_request_id(&mut self) -> i32 {
        self.transport.next_request_id()
    }

    /// Sends one whole OP_MSG, such as a [`MessageWriter`](cenote_core::wire::MessageWriter) makes: header,
    /// flags, sections. It is compressed if that was negotiated and its command allows it. Its
    /// [replies](Self::receive) must refer to the request id of its header.
    ///
    /// After a message with `moreToCome` there is no reply: the connection is free once this returns. After
    /// one with `exhaustAllowed`, any number of replies may come. `timeoutMS` is for the message and its first reply
    /// together, and then for each further reply; `maxTimeMS` is the driver's.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    /// use cenote_core::wire::{Flags, Ids, MessageWriter};
    /// # fn example(pool: cenote_mio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = pool.check_out()?;
    /// let (id, limit) = (connection.next_request_id(), connection.message_limit());
    ///
    /// let mut message = Vec::new(); // A driver reuses it.
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
    /// The connection failed. A message is refused, before a byte is sent, if it exceeds the
    /// [limit](Self::message_limit), its header has another length, it is no OP_MSG or already compressed,
    /// or a reply is still to come.
    pub fn send(&mut self, message: &[u8]) -> Result<(), ConnectionError> {
        let limit = self.limit(OperationOptions::new());
        self.of_exchange = Some(limit);
        let begun = self.transport.begin_message(message);
        let sent = begun.and_then(|()| self.write(limit));
        sent.map_err(|error| error.at(Stage::Operation))
    }

    /// Blocks until the next reply to what was [sent](Self::send) is there. Returns all of it (header, flags,
    /// sections), decompressed and validated, but not judged: `ok: 0` is a reply. A large reply is not
    /// copied: it keeps the buffer into which it was read.
    ///
    /// While replies have `moreToCome`, more follow, and nothing can be sent.
    ///
    /// # Errors
    ///
    /// The connection failed, or the reply violates the protocol. When no reply is due, this is refused and the
    /// connection stays as it is.
    pub fn receive(&mut self) -> Result<MessageBuf, ConnectionError> {
        let of_exchange = self.of_exchange.take();
        let limit = of_exchange.unwrap_or_else(|| self.limit(OperationOptions::new()));
        let reply = self.read(limit, |transport, mut io| transport.read_message(&mut io));
        reply.map_err(|error| error.at(Stage::Operation))
    }
}

/// As the methods of [`Connection`], and ended by an interrupt of the pool:
/// [`run`](PooledConnection::run).
impl PooledConnection<MongoConnector> {
    /// [`Connection::command`]. A write concern error in the reply is shown to
    /// [`Builder::on_failure`](crate::Builder::on_failure), too.
    ///
    /// # Errors
    ///
    /// The connection failed, the server's reply is `ok: 0`, or the pool interrupted the connection.
    pub fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, OperationError> {
        self.command_with(database, command, OperationOptions::new())
    }

    /// [`Connection::command_with`]. A command that is not sent, because its time is over, leaves the connection
    /// healthy.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command); [`OperationError::is_timeout`] tells that the time was over.
    ///
    /// ```no_run
    /// use std::time::{Duration, Instant};
    ///
    /// use bson::rawdoc;
    /// use cenote_mio::OperationOptions;
    ///
    /// # fn example(pool: cenote_mio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// // One deadline for the check-out and the command.
    /// let deadline = Instant::now() + Duration::from_millis(200);
    /// let mut connection = pool.check_out_before(deadline)?;
    /// let options = OperationOptions::new().with_deadline(deadline);
    /// let reply = connection.command_with("admin", &rawdoc! { "ping": 1 }, options)?;
    /// println!("{reply:?}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn command_with(
        &mut self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, OperationError> {
        let options = self.with_round_trip(options);
        let reply = self.run(|connection| connection.reply_to(database, command, options))?;
        Ok(self.show_write_concern_error(reply))
    }

    /// [`Connection::command_unacknowledged`].
    ///
    /// # Errors
    ///
    /// The connection failed, the command is not `w: 0`, or the pool interrupted the connection.
    pub fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), OperationError> {
        self.run(|connection| connection.command_unacknowledged(database, command))
    }

    /// [`Connection::reauthenticate`].
    ///
    /// # Errors
    ///
    /// As there, or the pool interrupted the connection.
    pub fn reauthenticate(&mut self) -> Result<(), OperationError> {
        self.run(Connection::reauthenticate)
    }

    /// [`Connection::send`].
    ///
    /// # Errors
    ///
    /// The connection failed, the message was refused, or the pool interrupted the connection.
    pub fn send(&mut self, message: &[u8]) -> Result<(), OperationError> {
        self.run(|connection| connection.send(message))
    }

    /// [`Connection::receive`].
    ///
    /// # Errors
    ///
    /// The connection failed, no reply is due, or the pool interrupted the connection.
    pub fn receive(&mut self) -> Result<MessageBuf, OperationError> {
        self.run(Connection::receive)
    }
}
