use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::connect::{ConnectionDescription, Establish, EstablishOptions, Step};
use cenote_core::error::ConnectionError;
use cenote_core::wire::{Flags, WireError};

use super::limit::Limit;
use super::messages::{Messages, hold};
use super::settings::Settings;
use crate::connection::HandshakeReporter;
use crate::platform::nonce;
use crate::runtime::Network;
use crate::shortage::opening_failed;
use crate::tls;
use crate::transport_error::TransportError;

/// Hello and authentication on an open stream: what the server answered, and how long its last
/// reply took. The reporter hears of the stages and, when hello is done, of the service behind a load balancer.
pub(super) async fn handshake<R: Network>(
    messages: &mut Messages<R>,
    settings: &Settings,
    address: &ServerAddress,
    options: Arc<EstablishOptions>,
    limit: Limit,
    reporter: Option<&HandshakeReporter>,
) -> Result<(Box<ConnectionDescription>, Duration), ConnectionError> {
    let mut establish = Establish::new(options, [nonce()?, nonce()?])?;
    // A command and its reply share one time limit.
    let mut command_limit = limit;
    let mut sent_at = R::now();
    let mut round_trip = Duration::ZERO;
    loop {
        let step = establish.next_step()?;
        if let (Some(reporter), Step::Send(_) | Step::Derive(_)) = (reporter, &step) {
            reporter.entered(establish.stage());
        }
        match step {
            Step::Send(command) => {
                command_limit = limit.for_command(R::now);
                let sent = messages.send(command.body(), None, Flags::NONE, command_limit).await;
                sent.unwrap_or_else(|error| fail(&mut establish, error));
                sent_at = R::now();
            }
            Step::Receive => match messages.receive(command_limit).await {
                Ok(reply) => {
                    round_trip = R::now().saturating_duration_since(sent_at);
                    establish.reply(&reply, &mut settings.scram());
                }
                Err(error) => fail(&mut establish, error),
            },
            Step::Derive(derivation) => {
                let runtime = &messages.runtime;
                match hold(runtime, limit, runtime.unblock(move || derivation.run())).await {
                    Ok(keys) => establish.derived(keys, &mut settings.scram()),
                    Err(error) => fail(&mut establish, error),
                }
            }
            Step::Handshaken(server) => {
                server.check_wire_versions(address)?;
                let (limit, compressor) = settings.agreed(&server);
                messages.transport.agree(limit, compressor);
                if let (Some(reporter), Some(service)) = (reporter, settings.service(&server)) {
                    reporter.handshaken(service);
                }
            }
            Step::Done(server) => return Ok((server, round_trip)),
        }
    }
}

/// Tells the state machine that establishes the connection, which knows the stage.
fn fail(establish: &mut Establish, error: TransportError) {
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
