//! Hello and authentication, as the machine in the core has them.

use std::io;

use bson::RawDocumentBuf;
use cenote_core::connect::{Command, ConnectionDescription, Establish, KeyDerivation, Step};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::{Flags, MessageLimit};

use super::dial::Limit;
use super::messages::{Failure, Messages};
use super::{Connection, Mongo};
use crate::connector::{Connector, Progress};
use crate::event_loop::Watched;
use crate::surroundings::nonce;
use crate::talk::fail;

/// From an open stream to a connection that is ready.
pub(super) async fn establish<K: Connector>(
    mongo: &Mongo,
    mut messages: Watched<Messages>,
    limit: &Limit,
    progress: &Progress<K>,
) -> Result<Connection, ConnectionError> {
    let mut establish = Establish::new(mongo.introduction.options(), [nonce()?, nonce()?])?;
    let description = converse(&mut establish, &mut messages, mongo, limit, progress).await?;
    let mut messages = messages.end().map_err(unusable)?;
    if !limit.is_embedded() {
        messages.block().map_err(unusable)?;
    }
    Ok(Connection { messages, description, socket_timeout: mongo.socket_timeout })
}

async fn converse<K: Connector>(
    establish: &mut Establish,
    messages: &mut Watched<Messages>,
    mongo: &Mongo,
    limit: &Limit,
    progress: &Progress<K>,
) -> Result<Box<ConnectionDescription>, ConnectionError> {
    let mut turn = limit.clone();
    loop {
        match establish.next_step()? {
            Step::Send(command) => {
                turn = limit.for_command();
                if let Err(failure) = send(messages, &command, &turn).await {
                    fail(establish, failure);
                }
            }
            Step::Receive => match receive(messages, &turn).await {
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

/// Where it keeps the loop from nobody's socket, unless it has no thread but the application's.
async fn derive(
    establish: &mut Establish,
    derivation: KeyDerivation,
    mongo: &Mongo,
    limit: &Limit,
) {
    if limit.is_embedded() {
        return establish.derived(derivation.run(), &mut mongo.scram());
    }
    match limit.hold_on_thread(|| derivation.run()).await {
        Ok(Ok(keys)) => establish.derived(keys, &mut mongo.scram()),
        Ok(Err(error)) => establish.failed(error),
        Err(after) => establish.timed_out(after),
    }
}

pub(super) async fn send(
    messages: &mut Watched<Messages>,
    command: &Command,
    limit: &Limit,
) -> Result<(), Failure> {
    messages.begin(command.body(), None, Flags::NONE)?;
    limit.hold(messages.ready(Messages::write)).await??;
    Ok(())
}

pub(super) async fn receive(
    messages: &mut Watched<Messages>,
    limit: &Limit,
) -> Result<RawDocumentBuf, Failure> {
    limit.hold(messages.ready(|messages| Failure::apart(messages.read()))).await??
}

fn unusable(error: io::Error) -> ConnectionError {
    ConnectionError::network(Stage::Authentication, error)
}
