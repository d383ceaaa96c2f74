//! Hello and authentication, as the machine in the core has them.

use std::io;

use cenote_core::connect::{ConnectionDescription, Establish, KeyDerivation, Step};
use cenote_core::error::ConnectionError;
use cenote_core::wire::{Flags, MessageLimit};
use tokio::task::spawn_blocking;

use super::dial::Limit;
use super::messages::Messages;
use super::{Connection, Mongo};
use crate::connector::{Connector, Progress};
use crate::surroundings::nonce;
use crate::talk::fail;

/// From an open stream to a connection that is ready.
pub(super) async fn establish<K: Connector>(
    mongo: &Mongo,
    mut messages: Messages,
    limit: Limit,
    progress: &Progress<K>,
) -> Result<Connection, ConnectionError> {
    let mut establish = Establish::new(mongo.introduction.options(), [nonce()?, nonce()?])?;
    let description = converse(&mut establish, &mut messages, mongo, limit, progress).await?;
    Ok(Connection { messages, description, socket_timeout: mongo.socket_timeout })
}

async fn converse<K: Connector>(
    establish: &mut Establish,
    messages: &mut Messages,
    mongo: &Mongo,
    limit: Limit,
    progress: &Progress<K>,
) -> Result<Box<ConnectionDescription>, ConnectionError> {
    let mut turn = limit;
    loop {
        match establish.next_step()? {
            Step::Send(command) => {
                turn = limit.for_command();
                if let Err(failure) = messages.send(command.body(), None, Flags::NONE, turn).await {
                    fail(establish, failure);
                }
            }
            Step::Receive => match messages.receive(turn).await {
                Ok(reply) => establish.reply(&reply, &mut mongo.scram()),
                Err(failure) => fail(establish, failure),
            },
            Step::Derive(derivation) => derive(establish, derivation, mongo, limit).await,
            Step::Handshaken(description) => {
                let size = MessageLimit::new(description.limits.max_message_size.into());
                let agreed = description.compressor.and_then(|it| mongo.compressor(it));
                messages.agree(size.unwrap_or(MessageLimit::DEFAULT), agreed);
                let service =
                    description.service_id.filter(|_| mongo.introduction.options().load_balanced);
                service.into_iter().for_each(|service| progress.handshaken(service));
            }
            Step::Done(description) => return Ok(description),
        }
    }
}

/// Where it keeps no worker of the runtime from its other tasks.
async fn derive(establish: &mut Establish, derivation: KeyDerivation, mongo: &Mongo, limit: Limit) {
    match limit.hold(spawn_blocking(|| derivation.run())).await {
        Ok(Ok(keys)) => establish.derived(keys, &mut mongo.scram()),
        // The runtime ends.
        Ok(Err(error)) => establish.failed(io::Error::other(error)),
        Err(after) => establish.timed_out(after),
    }
}
