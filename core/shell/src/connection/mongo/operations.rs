use std::fmt;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::{ConnectionDescription, Step};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::{Flags, MessageBuf, MessageLimit};

use super::handshake::Conversation;
use super::judgement::{Reply, judge_within, require_unacknowledged};
use super::messages::Messages;
use super::opened::{ConnectionParts, OpenedConnection};
use super::reauthentication::{Reauthentication, not_authenticated, still_required};
use crate::connection::operation::{CommandTimeouts, OperationLimit, OperationOptions};
use crate::connection::transport_error::TransportError;
use crate::runtime::Network;

/// A connection to a server, authenticated and ready for commands.
///
/// `timeoutMS` limits each command together with its reply, unless the call has a limit of its own: see
/// [`operation`](crate::connection::operation). Without one, `socketTimeoutMS` limits each wait for the socket, for writing as for
/// reading.
pub struct Connection<R: Network> {
    pub(super) messages: Messages<R>,
    pub(super) description: Box<ConnectionDescription>,
    pub(super) timeouts: CommandTimeouts,
    /// Of a message of the driver's own, until its reply is there.
    of_exchange: Option<OperationLimit>,
    /// `None` if it was not authenticated.
    pub(super) reauthentication: Option<Box<Reauthentication>>,
}

impl<R: Network> Connection<R> {
    pub(super) const fn new(
        messages: Messages<R>,
        description: Box<ConnectionDescription>,
        timeouts: CommandTimeouts,
        reauthentication: Option<Box<Reauthentication>>,
    ) -> Self {
        Self { messages, description, timeouts, of_exchange: None, reauthentication }
    }

    /// What the server said about itself and this connection in hello.
    #[must_use]
    pub fn description(&self) -> &ConnectionDescription {
        &self.description
    }

    /// The largest message that the server accepts, header included.
    // MS-03
    #[must_use]
    pub fn message_limit(&self) -> MessageLimit {
        self.messages.transport.limit()
    }

    /// Whether the connection may go back to its pool: no exchange is under way, nothing is unread
    /// and nothing failed.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        OpenedConnection::is_reusable(self)
    }

    /// Puts it together again, as [`into_parts`](Self::into_parts) took it apart.
    #[must_use]
    pub fn from_parts(parts: ConnectionParts<R>) -> Self {
        let ConnectionParts { runtime, stream, transport, description, timeouts, reauthentication } =
            parts;
        let messages = Messages { runtime, stream, transport };
        Self::new(messages, description, timeouts, reauthentication)
    }

    /// The socket and the state of the protocol on it.
    #[must_use]
    pub fn into_parts(self) -> ConnectionParts<R> {
        let Self { messages, description, timeouts, of_exchange: _, reauthentication } = self;
        let Messages { runtime, stream, transport } = messages;
        ConnectionParts { runtime, stream, transport, description, timeouts, reauthentication }
    }

    fn limit(&self, options: OperationOptions) -> OperationLimit {
        self.timeouts.limit(options, R::now)
    }
}

/// Commands.
impl<R: Network> Connection<R> {
    /// Sends a command and waits for its reply.
    ///
    /// The server answers a write with `w: 0`, too, without its result;
    /// [`command_unacknowledged`](Self::command_unacknowledged) does not wait for that.
    ///
    /// Dropping the future after it was polled leaves a connection that must not be used again; the
    /// pool closes it when it is checked in.
    ///
    /// # Errors
    ///
    /// The connection failed, or the server replied `ok: 0`. A write concern error is a reply.
    pub async fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<RawDocumentBuf, ConnectionError> {
        self.command_with(database, command, OperationOptions::new()).await
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
    pub async fn command_with(
        &mut self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<RawDocumentBuf, ConnectionError> {
        self.reply_to(database, command, options).await.map(|reply| reply.body)
    }

    /// As [`command_with`](Self::command_with).
    pub(super) async fn reply_to(
        &mut self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> Result<Reply, ConnectionError> {
        let limit = self.limit(options);
        let outcome = self.exchange(database, command, &limit).await;
        if self.reauthentication.is_none() || !Reauthentication::is_asked_for(&outcome) {
            return outcome;
        }
        // Rare, so that its state is not a part of every command's.
        Box::pin(self.reauthenticate_within(limit)).await?;
        self.exchange(database, command, &limit).await.map_err(still_required)
    }

    async fn exchange(
        &mut self,
        database: &str,
        command: &RawDocument,
        limit: &OperationLimit,
    ) -> Result<Reply, ConnectionError> {
        let reply = self.messages.exchange(command, database, limit).await.map_err(failed)?;
        judge_within(limit, reply, self.reauthentication.as_deref())
    }

    /// Authenticates the connection again, by the mechanism and the credential with which it was opened, as
    /// [reauthentication](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#reauthentication)
    /// asks: for drivers whose own [messages](Self::send) are refused with code 391. Commands do so themselves, once.
    ///
    /// With MONGODB-OIDC the connection's access token is dropped from those that are kept, and the callback is called
    /// unless another connection has got a new one. `timeoutMS`, or else `socketTimeoutMS` for each wait, limits it.
    ///
    /// Dropping the future after it was polled leaves a connection that must not be used again; the pool closes it when
    /// it is checked in.
    ///
    /// # Errors
    ///
    /// The connection failed, was never authenticated, there is no new token, or the server refuses.
    // AU-09
    pub async fn reauthenticate(&mut self) -> Result<(), ConnectionError> {
        let limit = self.limit(OperationOptions::new());
        Box::pin(self.reauthenticate_within(limit)).await
    }

    async fn reauthenticate_within(
        &mut self,
        limit: OperationLimit,
    ) -> Result<(), ConnectionError> {
        let Self { messages, description, reauthentication, .. } = self;
        let reauthentication = reauthentication.as_mut().ok_or_else(not_authenticated)?;
        let settings = reauthentication.settings();
        let mut establish = reauthentication.begin(description)?;
        let mut conversation = Conversation::new(messages, &settings, (&limit).into());
        loop {
            match establish.next_step()? {
                Step::Done(_) => {
                    reauthentication.done(&establish);
                    return Ok(());
                }
                step @ (Step::Send(_)
                | Step::Receive
                | Step::Derive(_)
                | Step::Token { .. }
                | Step::Handshaken(_)) => conversation.perform(&mut establish, step).await,
            }
        }
    }

    /// Sends a write with `writeConcern: {w: 0}`, which has no reply. Returns when the operating
    /// system has all bytes.
    ///
    /// # Errors
    ///
    /// The connection failed. A command without `w: 0` is refused and not sent, because its reply
    /// would be taken for that of the next command.
    // MS-08, LN-07
    pub async fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), ConnectionError> {
        require_unacknowledged(command)?;
        let limit = self.limit(OperationOptions::new());
        let sent = self.messages.send_within(command, database, Flags::MORE_TO_COME, &limit).await;
        sent.map_err(failed)
    }
}

/// Messages of a driver's own.
impl<R: Network> Connection<R> {
    /// A random number for the next message. A driver
    /// may use numbers of its own instead.
    pub fn next_request_id(&mut self) -> i32 {
        self.messages.transport.next_request_id()
    }

    /// Sends one whole OP_MSG (header, flags, sections), such as a
    /// [`MessageWriter`](cenote_core::wire::MessageWriter) makes. It is sent as it is, or
    /// compressed if hello has negotiated that and the command allows it. Its
    /// [replies](Self::receive) must answer the number in its header.
    ///
    /// A message with `moreToCome` has no reply; with `exhaustAllowed` it may have several. `timeoutMS` is for the
    /// message and its first reply together, and then for each further reply; `maxTimeMS` is the driver's.
    ///
    /// Dropping the future after it was polled leaves a connection that must not be used again; the
    /// pool closes it when it is checked in.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    /// use cenote_core::wire::{Flags, Ids, MessageWriter};
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = pool.check_out().await?;
    /// let (id, limit) = (connection.next_request_id(), connection.message_limit());
    ///
    /// let mut message = Vec::new(); // A driver reuses this buffer.
    /// let insert = rawdoc! { "insert": "birds" };
    /// let mut writer =
    ///     MessageWriter::command(&mut message, Ids::request(id), Flags::NONE, &insert, "zoo")?;
    /// writer.sequence("documents", [rawdoc! { "_id": "owl" }, rawdoc! { "_id": "kiwi" }])?;
    /// writer.finish(limit)?;
    ///
    /// connection.send(&message).await?;
    /// let reply = connection.receive().await?;
    /// assert_eq!(reply.body().get_i32("n")?, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The connection failed. A message that exceeds the [limit](Self::message_limit), whose header
    /// has another length, that is compressed or no OP_MSG, and any message while a reply is due,
    /// is refused: nothing is sent, and the connection is as it was.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), ConnectionError> {
        let limit = self.limit(OperationOptions::new());
        self.of_exchange = Some(limit);
        self.messages.send_message(message, (&limit).into()).await.map_err(failed)
    }

    /// Waits for the next reply to what was [sent](Self::send), and returns all of it (header,
    /// flags, sections), decompressed and checked but not judged: `ok: 0` is a reply. A large reply
    /// keeps the buffer into which it was read.
    ///
    /// After a reply with `moreToCome` there is another one to receive, and nothing can be sent.
    ///
    /// Cancel-safe: what was received before the future was dropped stays for the next call.
    ///
    /// # Errors
    ///
    /// The connection failed, or the reply breaks the protocol. When no reply is due, the call is
    /// refused, and the connection is as it was.
    pub async fn receive(&mut self) -> Result<MessageBuf, ConnectionError> {
        let limit = self.of_exchange.unwrap_or_else(|| self.limit(OperationOptions::new()));
        // Kept, so that a call that continues after its future was dropped has no more time.
        self.of_exchange = Some(limit);
        let reply = self.messages.receive_message((&limit).into()).await;
        self.of_exchange = None;
        reply.map_err(failed)
    }
}

fn failed(error: TransportError) -> ConnectionError {
    error.at(Stage::Operation)
}

impl<R: Network> fmt::Debug for Connection<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("description", &self.description).finish_non_exhaustive()
    }
}
