use std::fmt;
use std::time::Duration;

use bson::RawDocumentBuf;
use cenote_core::address::ServerAddress;
use cenote_core::connect::{Command, ConnectionDescription};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::Flags;

use super::MongoConnector;
use super::handshake::{Handshake, handshake};
use super::limit::Limit;
use super::messages::Messages;
use super::transport::Transport;
use crate::connection::stages::Stages;
use crate::runtime::Network;

/// A monitor's connection after hello: without authentication and compression, and not part of a
/// pool.
pub struct Monitoring<R: Network> {
    messages: Messages<R>,
}

/// A monitor's new connection.
pub struct Greeting<R: Network> {
    /// The connection.
    pub connection: Monitoring<R>,
    /// The reply to hello.
    pub hello: Box<ConnectionDescription>,
    /// How long hello took.
    pub round_trip: Duration,
}

impl<R: Network> MongoConnector<R> {
    /// Opens a monitor's connection within `connectTimeoutMS`.
    ///
    /// # Errors
    ///
    /// Those of connecting and of hello.
    // SD-51
    pub async fn open_monitoring(
        &self,
        runtime: &R,
        address: &ServerAddress,
    ) -> Result<Greeting<R>, ConnectionError> {
        let limit = self.settings.opening(R::now());
        let (transport, stages) = (Transport::lenient(), Stages::default());
        let opening = self.open(runtime, address, transport, limit, &stages);
        let mut messages = Box::pin(opening).await?;
        let options = self.settings.monitor_options();
        let greeting = handshake(&mut messages, &self.settings, address, options, limit, None);
        let Handshake { description: hello, round_trip, .. } = Box::pin(greeting).await?;
        Ok(Greeting { connection: Monitoring { messages }, hello, round_trip })
    }
}

/// Without time limits, which are the monitor's.
impl<R: Network> Monitoring<R> {
    /// Sends a command that names its own database.
    ///
    /// # Errors
    ///
    /// Why it could not be sent.
    pub async fn send(&mut self, command: &Command, flags: Flags) -> Result<(), ConnectionError> {
        let sent = self.messages.send(command.body(), None, flags, Limit::each(None)).await;
        sent.map_err(|error| error.at(Stage::Hello))
    }

    /// Waits for the next reply, and says whether more replies follow. Cancel-safe.
    ///
    /// # Errors
    ///
    /// The connection failed, or the reply breaks the protocol.
    pub async fn receive(&mut self) -> Result<(RawDocumentBuf, bool), ConnectionError> {
        let reply = self.messages.receive_message(Limit::each(None)).await;
        let reply = reply.map_err(|error| error.at(Stage::Hello))?;
        Ok((reply.body().to_owned(), reply.flags().more_to_come))
    }
}

impl<R: Network> fmt::Debug for Monitoring<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitoring").finish_non_exhaustive()
    }
}

impl<R: Network> fmt::Debug for Greeting<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Greeting")
            .field("hello", &self.hello)
            .field("round_trip", &self.round_trip)
            .finish_non_exhaustive()
    }
}
