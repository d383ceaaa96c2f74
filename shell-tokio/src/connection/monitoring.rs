//! Connections that monitors talk on: without a credential, without compression, and not the pool's.

use std::time::Duration;

use bson::RawDocumentBuf;
use cenote_core::address::ServerAddress;
use cenote_core::connect::{Command, ConnectionDescription};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::Flags;
use cenote_shell::connection;

use super::MongoConnector;
use super::handshake::Talking;
use super::limit::{Limit, now};
use super::messages::Messages;

/// A connection of a monitor, after hello.
pub(crate) struct Monitoring {
    messages: Messages,
}

/// What hello on a new one was answered, and how long that took.
pub(crate) struct Greeting {
    pub(crate) connection: Monitoring,
    pub(crate) hello: Box<ConnectionDescription>,
    pub(crate) round_trip: Duration,
}

impl MongoConnector {
    /// Opens one within `connectTimeoutMS` (SD-52).
    pub(crate) async fn open_monitoring(
        &self,
        address: &ServerAddress,
    ) -> Result<Greeting, ConnectionError> {
        let limit = Limit::of_monitor(&self.settings);
        let mut messages = Messages::lenient(self.open(address, limit).await?);
        let mut talking = Talking::new(&mut messages, limit);
        let (hello, round_trip) = connection::greet(&mut talking, &self.settings, now).await?;
        Ok(Greeting { connection: Monitoring { messages }, hello, round_trip })
    }
}

/// How long anything takes is for the monitor's machine to say.
impl Monitoring {
    pub(crate) async fn send(
        &mut self,
        command: &Command,
        flags: Flags,
    ) -> Result<(), ConnectionError> {
        let sent = self.messages.send(command.body(), None, flags, Limit::each(None)).await;
        sent.map_err(|failure| failure.at(Stage::Hello))
    }

    /// The next reply, and whether more are to come.
    pub(crate) async fn receive(&mut self) -> Result<(RawDocumentBuf, bool), ConnectionError> {
        let reply = self.messages.receive_message(Limit::each(None)).await;
        let reply = reply.map_err(|failure| failure.at(Stage::Hello))?;
        Ok((reply.body().to_owned(), reply.flags().more_to_come))
    }
}
