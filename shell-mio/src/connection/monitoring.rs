//! Connections that monitors talk on: without a credential, without compression, and not the pool's.

use std::time::{Duration, Instant};

use bson::RawDocumentBuf;
use cenote_core::address::ServerAddress;
use cenote_core::connect::{Command, ConnectionDescription, Establish, ScramCache, Step};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::{Flags, MessageLimit};

use super::Mongo;
use super::dial::{self, Limit};
use super::handshake::{receive, send};
use super::messages::{Failure, Messages};
use crate::event_loop::{EventLoop, Watched};
use crate::surroundings::nonce;
use crate::talk::fail;

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

impl Mongo {
    /// Opens one within `connectTimeoutMS` (SD-52).
    pub(crate) async fn open_monitoring(
        &self,
        address: &ServerAddress,
        event_loop: &EventLoop,
    ) -> Result<Greeting, ConnectionError> {
        let limit = Limit::within(event_loop, self.connect_timeout);
        let dialled = dial::dial(address, &self.resolver, self.proxy.as_ref(), &limit);
        let mut stream = dialled.await?;
        if let Some(tls) = &self.tls {
            tls.connect(&mut stream, address, &limit).await?;
        }
        let mut messages = stream.map(Messages::lenient);
        let mut establish = Establish::new(self.monitor_options(), [nonce()?, nonce()?])?;
        // There is nobody to authenticate, so that nothing is learnt.
        let mut scram = ScramCache::default();
        let mut sent = Instant::now();
        let mut round_trip = Duration::ZERO;
        loop {
            match establish.next_step()? {
                Step::Send(command) => {
                    let outcome = send(&mut messages, &command, &limit).await;
                    outcome.unwrap_or_else(|failure| fail(&mut establish, failure));
                    sent = Instant::now();
                }
                Step::Receive => match receive(&mut messages, &limit).await {
                    Ok(reply) => {
                        round_trip = sent.elapsed();
                        establish.reply(&reply, &mut scram);
                    }
                    Err(failure) => fail(&mut establish, failure),
                },
                Step::Derive(derivation) => establish.derived(derivation.run(), &mut scram),
                Step::Handshaken(description) => {
                    let size = MessageLimit::new(description.limits.max_message_size.into());
                    messages.agree(size.unwrap_or(MessageLimit::DEFAULT), None);
                }
                Step::Done(hello) => {
                    return Ok(Greeting { connection: Monitoring { messages }, hello, round_trip });
                }
            }
        }
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
        let read = self.messages.ready(|messages| Failure::apart(messages.read_message()));
        let reply = read.await.map_err(Failure::from).and_then(|reply| reply);
        let reply = reply.map_err(|failure| failure.at(Stage::Hello))?;
        Ok((reply.body().to_owned(), reply.flags().more_to_come))
    }
}
