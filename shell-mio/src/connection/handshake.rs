//! Hello and authentication: [`cenote_shell::connection`] over the messages of this shell.

use std::io;

use bson::RawDocumentBuf;
use cenote_core::connect::{Command, DerivedKeys, KeyDerivation};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::{Compressor, Flags, MessageLimit};
use cenote_shell::connection::{self, Talk};

use super::limit::Limit;
use super::messages::{Failure, Messages};
use super::{Connection, MongoConnector};
use crate::connector::{Connector, HandshakeReporter};
use crate::event_loop::Watched;

/// From an open stream to a connection that is ready.
pub(super) async fn establish<K: Connector>(
    mongo: &MongoConnector,
    mut messages: Watched<Messages>,
    limit: &Limit,
    progress: &HandshakeReporter<K>,
) -> Result<Connection, ConnectionError> {
    let mut talking = Talking::new(&mut messages, limit);
    let handshaken = |service| progress.handshaken(service);
    let description = connection::establish(&mut talking, &mongo.settings, handshaken).await?;
    let mut messages = messages.end().map_err(unusable)?;
    if !limit.event_loop().is_embedded() {
        messages.block().map_err(unusable)?;
    }
    Ok(Connection { messages, description, socket_timeout: mongo.settings.socket_timeout() })
}

/// Messages, each within its time.
pub(super) struct Talking<'a> {
    messages: &'a mut Watched<Messages>,
    limit: &'a Limit,
    /// For the command that was sent last, and its reply.
    turn: Limit,
}

impl<'a> Talking<'a> {
    pub(super) fn new(messages: &'a mut Watched<Messages>, limit: &'a Limit) -> Self {
        Self { messages, limit, turn: limit.clone() }
    }
}

impl Talk for Talking<'_> {
    async fn send(&mut self, command: &Command) -> Result<(), Failure> {
        self.turn = self.limit.for_command();
        self.messages.begin(command.body(), None, Flags::NONE)?;
        Ok(self.turn.hold(self.messages.ready(Messages::write)).await??)
    }

    async fn receive(&mut self) -> Result<RawDocumentBuf, Failure> {
        let read = self.messages.ready(|messages| Failure::split_would_block(messages.read()));
        self.turn.hold(read).await??
    }

    fn agree(&mut self, limit: MessageLimit, compressor: Option<Compressor>) {
        self.messages.agree(limit, compressor);
    }

    /// Where it keeps the loop from nobody's socket, unless it has no thread but the application's.
    async fn derive(&mut self, derivation: KeyDerivation) -> Result<DerivedKeys, Failure> {
        let event_loop = self.limit.event_loop();
        if event_loop.is_embedded() {
            return Ok(derivation.run());
        }
        Ok(self.limit.hold(event_loop.on_thread(|| derivation.run())).await??)
    }
}

fn unusable(error: io::Error) -> ConnectionError {
    ConnectionError::network(Stage::Authentication, error)
}
