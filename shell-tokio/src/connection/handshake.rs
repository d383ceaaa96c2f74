//! Hello and authentication: [`cenote_shell::connection`] over the messages of this shell.

use std::io;

use bson::RawDocumentBuf;
use cenote_core::connect::{Command, DerivedKeys, KeyDerivation};
use cenote_core::error::ConnectionError;
use cenote_core::wire::{Compressor, Flags, MessageLimit};
use cenote_shell::connection::{self, Talk};
use tokio::task::spawn_blocking;

use super::limit::Limit;
use super::messages::{Failure, Messages};
use super::{Connection, MongoConnector};
use crate::connector::{Connector, HandshakeReporter};

/// From an open stream to a connection that is ready.
pub(super) async fn establish<K: Connector>(
    mongo: &MongoConnector,
    mut messages: Messages,
    limit: Limit,
    progress: &HandshakeReporter<K>,
) -> Result<Connection, ConnectionError> {
    let mut talking = Talking::new(&mut messages, limit);
    let handshaken = |service| progress.handshaken(service);
    let description = connection::establish(&mut talking, &mongo.settings, handshaken).await?;
    Ok(Connection { messages, description, socket_timeout: mongo.settings.socket_timeout() })
}

/// Messages, each within its time.
pub(super) struct Talking<'a> {
    messages: &'a mut Messages,
    limit: Limit,
    /// For the command that was sent last, and its reply.
    turn: Limit,
}

impl<'a> Talking<'a> {
    pub(super) fn new(messages: &'a mut Messages, limit: Limit) -> Self {
        Self { messages, limit, turn: limit }
    }
}

impl Talk for Talking<'_> {
    async fn send(&mut self, command: &Command) -> Result<(), Failure> {
        self.turn = self.limit.for_command();
        self.messages.send(command.body(), None, Flags::NONE, self.turn).await
    }

    async fn receive(&mut self) -> Result<RawDocumentBuf, Failure> {
        self.messages.receive(self.turn).await
    }

    fn agree(&mut self, limit: MessageLimit, compressor: Option<Compressor>) {
        self.messages.agree(limit, compressor);
    }

    /// Where it keeps no worker of the runtime from its other tasks.
    async fn derive(&mut self, derivation: KeyDerivation) -> Result<DerivedKeys, Failure> {
        let derived = self.limit.hold(spawn_blocking(|| derivation.run())).await?;
        // It fails when the runtime ends.
        derived.map_err(|error| io::Error::other(error).into())
    }
}
