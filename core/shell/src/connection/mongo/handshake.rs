use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cenote_core::address::ServerAddress;
use cenote_core::connect::{AccessToken, ConnectionDescription, Establish, EstablishOptions, Step};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::wire::{Flags, MessageLimit, WireError};

use super::drive::hold;
use super::limit::Limit;
use super::messages::Messages;
use super::settings::Settings;
use crate::connection::HandshakeReporter;
use crate::connection::operation::Deadline;
use crate::connection::shortage::opening_failed;
use crate::connection::transport_error::TransportError;
use crate::oidc::LONGEST_WAIT;
use crate::runtime::Network;
use crate::runtime::platform::{nonce, since_1970};
use crate::tls;

/// What a handshake comes to.
pub(super) struct Handshake {
    pub(super) description: Box<ConnectionDescription>,
    /// How long the last reply took.
    pub(super) round_trip: Duration,
    /// The access token that the server has accepted.
    pub(super) token: Option<AccessToken>,
}

/// The exchanges of an [`Establish`] on an open stream.
pub(super) struct Conversation<'m, R: Network> {
    messages: &'m mut Messages<R>,
    settings: &'m Settings,
    limit: Limit,
    /// A command and its reply share one time limit.
    command_limit: Limit,
    sent_at: Instant,
    round_trip: Duration,
}

/// Hello and authentication on an open stream, which keeps the limit of messages of this time: what was agreed is up to the
/// caller. The reporter hears of the stages and, when hello is done, of the service behind a load balancer.
pub(super) async fn handshake<R: Network>(
    messages: &mut Messages<R>,
    settings: &Settings,
    address: &ServerAddress,
    options: Arc<EstablishOptions>,
    limit: Limit,
    reporter: Option<&HandshakeReporter>,
) -> Result<Handshake, ConnectionError> {
    let mut establish = Establish::new(options, [nonce()?, nonce()?])?.at(since_1970());
    settings.offer_token(&mut establish);
    messages.transport.agree(MessageLimit::HANDSHAKE, None);
    let mut conversation = Conversation::new(messages, settings, limit);
    loop {
        let step = establish.next_step()?;
        let begins = matches!(step, Step::Send(_) | Step::Derive(_) | Step::Token { .. });
        if let (Some(reporter), true) = (reporter, begins) {
            reporter.entered(establish.stage());
        }
        match step {
            Step::Handshaken(server) => {
                server.check_wire_versions(address)?;
                if let (Some(reporter), Some(service)) = (reporter, settings.service(&server)) {
                    reporter.handshaken(service);
                }
            }
            Step::Done(description) => {
                let round_trip = conversation.round_trip;
                return Ok(Handshake {
                    description,
                    round_trip,
                    token: establish.access_token().cloned(),
                });
            }
            step @ (Step::Send(_) | Step::Receive | Step::Derive(_) | Step::Token { .. }) => {
                conversation.perform(&mut establish, step).await;
            }
        }
    }
}

/// With the keys of AWS of this connection, if it needs some. What getting them takes is no part of `connectTimeoutMS`.
// AW-01
pub(super) async fn with_aws_keys<R: Network>(
    runtime: &R,
    settings: &Settings,
    options: Arc<EstablishOptions>,
    limit: Limit,
) -> Result<(Arc<EstablishOptions>, Limit), ConnectionError> {
    let Some(fetch) = settings.aws_fetch(&options) else { return Ok((options, limit)) };
    let begin = R::now();
    let longest = limit.for_callback(LONGEST_WAIT, settings.operation_timeout().is_some(), R::now);
    let fetched = hold(runtime, longest, pin!(runtime.unblock(fetch))).await;
    let keys = fetched.map_err(|error| error.at(Stage::Authentication))??;
    let mut options = EstablishOptions::clone(&options);
    options.credential = Some(keys);
    Ok((Arc::new(options), limit.longer_by(R::now().saturating_duration_since(begin))))
}

impl<'m, R: Network> Conversation<'m, R> {
    pub(super) fn new(messages: &'m mut Messages<R>, settings: &'m Settings, limit: Limit) -> Self {
        let (command_limit, sent_at) = (limit, R::now());
        Self { messages, settings, limit, command_limit, sent_at, round_trip: Duration::ZERO }
    }

    /// Does what a step asks for, and tells the machine what came of it.
    pub(super) async fn perform(&mut self, establish: &mut Establish, step: Step) {
        let Self { messages, settings, limit, .. } = self;
        let runtime = &messages.runtime;
        match step {
            Step::Send(command) => {
                self.command_limit = limit.for_command(R::now);
                let sent =
                    messages.send(command.body(), None, Flags::NONE, self.command_limit).await;
                sent.unwrap_or_else(|error| fail(establish, error));
                self.sent_at = R::now();
            }
            Step::Receive => match messages.receive(self.command_limit).await {
                Ok(reply) => {
                    self.round_trip = R::now().saturating_duration_since(self.sent_at);
                    establish.reply(&reply, &mut settings.scram());
                }
                Err(error) => fail(establish, error),
            },
            Step::Derive(derivation) => {
                match hold(runtime, *limit, pin!(runtime.unblock(move || derivation.run()))).await {
                    Ok(keys) => establish.derived(keys, &mut settings.scram()),
                    Err(error) => fail(establish, error),
                }
            }
            Step::Token { refused } => {
                let begin = R::now();
                let limit = limit.for_callback(
                    LONGEST_WAIT,
                    settings.operation_timeout().is_some(),
                    R::now,
                );
                let left = |limit: Deadline| limit.at.saturating_duration_since(begin);
                let left = limit.next(R::now).map_or(LONGEST_WAIT, left);
                // The caller waits no longer.
                let told = settings.operation_timeout().map_or(left, |timeout| left.min(timeout));
                let fetch = settings.token_fetch(refused, told);
                match hold(runtime, limit, pin!(runtime.unblock(fetch))).await {
                    Ok(Ok(token)) => establish.token(token),
                    Ok(Err(error)) => establish.failed_with(error),
                    Err(error) => fail(establish, error),
                }
                self.limit = self.limit.longer_by(R::now().saturating_duration_since(begin));
            }
            Step::Handshaken(_) | Step::Done(_) => {}
        }
    }
}

/// Tells the state machine that establishes the connection, which knows the stage.
pub(super) fn fail(establish: &mut Establish, error: TransportError) {
    match error {
        TransportError::Io(error) => match tls::tls_error(&error) {
            Some(error) => establish.failed_with(tls::decided(establish.stage(), error)),
            None => establish.failed_with(opening_failed(establish.stage(), error)),
        },
        TransportError::Closed => establish.failed("closed by the peer"),
        TransportError::TimedOut(after) | TransportError::NotSent(after) => {
            establish.timed_out(after);
        }
        // The end in the middle of a message is an end, and does not break the protocol.
        TransportError::Wire(error @ WireError::EndOfStream { .. }) => establish.failed(error),
        TransportError::Wire(error) | TransportError::Refused(error) => {
            establish.garbled(&error.to_string());
        }
    }
}
