//! Operations of checked-out connections.

use std::future::Future;
use std::task::Waker;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::error::{OperationError, Stage};
use cenote_core::wire::MessageBuf;

use super::{Connection, MongoConnector, RawStream};
use crate::connection::operation::OperationOptions;
use crate::pool::{GuardParts, PooledConnection};
use crate::runtime::{Network, Runtime};

/// Operations that the pool can interrupt. An error that leaves the connection unfit marks it, and
/// every error is reported to [`Builder::on_failure`](crate::builder::Builder::on_failure).
impl<R> PooledConnection<R, MongoConnector<R>>
where
    R: Network<Connection = Connection<R>> + Runtime<Waiter = Waker>,
{
    /// Sends a command and waits for its reply: [`Connection::command`]. A write concern error in the reply
    /// is reported, too.
    ///
    /// # Errors
    ///
    /// The connection failed, the server replied `ok: 0`, or the pool interrupted the connection.
    ///
    /// ```no_run
    /// use bson::rawdoc;
    ///
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = pool.check_out().await?;
    /// let reply = connection.command("shop", &rawdoc! { "count": "orders" }).await?;
    /// println!("{}", reply.get_i32("n")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn command(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> impl Future<Output = Result<RawDocumentBuf, OperationError>> {
        self.command_with(database, command, OperationOptions::new())
    }

    /// As [`command`](Self::command), with options of this call: [`Connection::command_with`]. A command that is not
    /// sent, because its time is over, leaves the connection healthy.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command); [`OperationError::is_timeout`] tells that the time was over.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use bson::rawdoc;
    /// use cenote_tokio::OperationOptions;
    /// use tokio::time::Instant;
    ///
    /// # async fn example(pool: cenote_tokio::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// // One deadline for the check-out and the command.
    /// let deadline = Instant::now() + Duration::from_millis(200);
    /// let mut connection = pool.check_out_before(deadline).await?;
    /// let options = OperationOptions::new().with_deadline(deadline);
    /// let reply = connection.command_with("admin", &rawdoc! { "ping": 1 }, options).await?;
    /// println!("{reply:?}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn command_with(
        &mut self,
        database: &str,
        command: &RawDocument,
        options: OperationOptions,
    ) -> impl Future<Output = Result<RawDocumentBuf, OperationError>> {
        let options = self.with_round_trip(options);
        self.run_command(move |connection| connection.reply_to(database, command, options))
    }

    /// Sends a write that has no reply: [`Connection::command_unacknowledged`].
    ///
    /// # Errors
    ///
    /// The connection failed, the command has no `w: 0`, or the pool interrupted the connection.
    pub async fn command_unacknowledged(
        &mut self,
        database: &str,
        command: &RawDocument,
    ) -> Result<(), OperationError> {
        self.run(|connection| connection.command_unacknowledged(database, command)).await
    }

    /// Sends one whole OP_MSG: [`Connection::send`].
    ///
    /// # Errors
    ///
    /// The connection failed, the message was refused, or the pool interrupted the connection.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), OperationError> {
        self.run(|connection| connection.send(message)).await
    }

    /// Waits for the next reply: [`Connection::receive`].
    ///
    /// # Errors
    ///
    /// The connection failed, no reply is due, or the pool interrupted the connection.
    pub async fn receive(&mut self) -> Result<MessageBuf, OperationError> {
        self.run_resumable(Connection::receive).await
    }

    /// Authenticates the connection again: [`Connection::reauthenticate`].
    ///
    /// # Errors
    ///
    /// As there, or the pool interrupted the connection.
    pub async fn reauthenticate(&mut self) -> Result<(), OperationError> {
        self.run(Connection::reauthenticate).await
    }

    /// The bytes themselves, for drivers with their own way to write and read messages.
    ///
    /// ```no_run
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// # async fn example(pool: cenote_tokio::Pool, request: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut connection = pool.check_out().await?;
    /// let mut stream = connection.raw_stream()?;
    /// stream.write_all(request).await?;
    /// let length = stream.read_i32_le().await?;
    /// let mut rest = vec![0; usize::try_from(length)? - 4];
    /// stream.read_exact(&mut rest).await?;
    /// stream.done().await?; // No reply is due any more: the connection may be used again.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// A reply is still due, or the connection is broken; nothing changes then.
    pub fn raw_stream(&mut self) -> Result<RawStream<'_, R>, OperationError> {
        self.check_process()?;
        let GuardParts { driver, connection, interrupt, .. } = self.parts();
        let stream = RawStream::new(connection, interrupt, driver.address());
        Ok(stream.map_err(|error| error.at(Stage::Operation))?)
    }
}
