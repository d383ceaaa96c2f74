//! Connections that monitors talk on: without a credential, without compression, and not the pool's.

use std::time::{Duration, Instant};

use bson::RawDocumentBuf;
use cenote_core::address::ServerAddress;
use cenote_core::connect::{Command, ConnectionDescription};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::Flags;
use cenote_shell::connection;

use super::MongoConnector;
use super::handshake::Talking;
use super::limit::Limit;
use super::messages::{Failure, Messages};
use crate::event_loop::{EventLoop, Watched};

/// A connection of a monitor, after hello. It stays on the event loop.
pub(crate) struct Monitoring {
    messages: Watched<Messages>,
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
        event_loop: &EventLoop,
    ) -> Result<Greeting, ConnectionError> {
        let limit = Limit::of_monitor(event_loop, &self.settings);
        let mut messages = self.open(address, &limit).await?.map(Messages::lenient);
        let mut talking = Talking::new(&mut messages, &limit);
        let (hello, round_trip) =
            connection::greet(&mut talking, &self.settings, Instant::now).await?;
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
        let begun = self.messages.begin(command.body(), None, flags);
        begun.map_err(|failure| failure.at(Stage::Hello))?;
        let written = self.messages.ready(Messages::write).await;
        written.map_err(|error| Failure::from(error).at(Stage::Hello))
    }

    /// The next reply, and whether more are to come.
    pub(crate) async fn receive(&mut self) -> Result<(RawDocumentBuf, bool), ConnectionError> {
        let read =
            self.messages.ready(|messages| Failure::split_would_block(messages.read_message()));
        let reply = read.await.map_err(Failure::from).and_then(|reply| reply);
        let reply = reply.map_err(|failure| failure.at(Stage::Hello))?;
        Ok((reply.body().to_owned(), reply.flags().more_to_come))
    }
}
