//! Hello and authentication, as the machine in the core has them, over whatever can send and receive.

use std::future::Future;
use std::time::{Duration, Instant};

use bson::RawDocumentBuf;
use cenote_core::connect::{
    Command, ConnectionDescription, DerivedKeys, Establish, KeyDerivation, ScramCache, Step,
};
use cenote_core::error::ConnectionError;
use cenote_core::pool::ServiceId;
use cenote_core::wire::{Compressor, MessageLimit};

use super::settings::{Settings, limit_of};
use crate::platform::nonce;
use crate::transport_error::{TransportError, fail};

/// Messages on an open stream, each within its time.
pub trait Talk: Send {
    /// Sends a command that names its own database. Its time, and that of its reply, begins now.
    fn send(
        &mut self,
        command: &Command,
    ) -> impl Future<Output = Result<(), TransportError>> + Send;

    /// The body of the reply.
    fn receive(&mut self) -> impl Future<Output = Result<RawDocumentBuf, TransportError>> + Send;

    /// From now on messages have this limit, and are compressed.
    fn agree(&mut self, limit: MessageLimit, compressor: Option<Compressor>);

    /// [Runs](KeyDerivation::run) it where that keeps nobody else from anything: it takes
    /// milliseconds.
    fn derive(
        &mut self,
        derivation: KeyDerivation,
    ) -> impl Future<Output = Result<DerivedKeys, TransportError>> + Send;
}

/// From an open stream to a connection that is ready. `handshaken` hears when hello is done, and of
/// which service the server is, behind a load balancer.
///
/// # Errors
///
/// Why there is no connection, and at which stage.
pub async fn establish(
    talk: &mut impl Talk,
    settings: &Settings,
    handshaken: impl Fn(ServiceId) + Send,
) -> Result<Box<ConnectionDescription>, ConnectionError> {
    let options = settings.metadata().options();
    let mut establish = Establish::new(options, [nonce()?, nonce()?])?;
    loop {
        match establish.next_step()? {
            Step::Send(command) => {
                let sent = talk.send(&command).await;
                sent.unwrap_or_else(|failure| fail(&mut establish, failure));
            }
            Step::Receive => match talk.receive().await {
                Ok(reply) => establish.reply(&reply, &mut settings.scram()),
                Err(failure) => fail(&mut establish, failure),
            },
            Step::Derive(derivation) => match talk.derive(derivation).await {
                Ok(keys) => establish.derived(keys, &mut settings.scram()),
                Err(failure) => fail(&mut establish, failure),
            },
            Step::Handshaken(server) => {
                let (limit, compressor) = settings.agreed(&server);
                talk.agree(limit, compressor);
                settings.service(&server).into_iter().for_each(&handshaken);
            }
            Step::Done(server) => return Ok(server),
        }
    }
}

/// Hello on a monitor's new connection: without a credential, and without compression. What it was
/// answered, and how long that took by `now`.
///
/// # Errors
///
/// As [`establish`].
pub async fn greet(
    talk: &mut impl Talk,
    settings: &Settings,
    now: impl Fn() -> Instant + Send,
) -> Result<(Box<ConnectionDescription>, Duration), ConnectionError> {
    let mut establish = Establish::new(settings.monitor_options(), [nonce()?, nonce()?])?;
    // There is nobody to authenticate, so that nothing is learnt.
    let mut scram = ScramCache::default();
    let mut sent = now();
    let mut round_trip = Duration::ZERO;
    loop {
        match establish.next_step()? {
            Step::Send(command) => {
                let outcome = talk.send(&command).await;
                outcome.unwrap_or_else(|failure| fail(&mut establish, failure));
                sent = now();
            }
            Step::Receive => match talk.receive().await {
                Ok(reply) => {
                    round_trip = now().saturating_duration_since(sent);
                    establish.reply(&reply, &mut scram);
                }
                Err(failure) => fail(&mut establish, failure),
            },
            // Not without a credential.
            Step::Derive(derivation) => establish.derived(derivation.run(), &mut scram),
            Step::Handshaken(server) => talk.agree(limit_of(&server), None),
            Step::Done(server) => return Ok((server, round_trip)),
        }
    }
}
