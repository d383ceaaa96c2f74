use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bson::RawDocument;
use cenote_core::connect::{
    AccessToken, ConnectionDescription, Establish, EstablishOptions, KeyDerivation,
};
use cenote_core::error::{CommandError, ConnectionError, Stage};

use super::handshake::fail;
use super::settings::Settings;
use crate::connection::transport_error::TransportError;
use crate::oidc::LONGEST_WAIT;
use crate::runtime::platform::{nonce, since_1970};

/// What an open connection needs to
/// [authenticate again](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#reauthentication)
/// when its server asks for that (code 391): what it authenticated with. For runtimes whose connections block; their
/// loop over the [steps](Establish::next_step) of the machine calls these functions, which do no I/O.
// AU-09
pub struct Reauthentication {
    settings: Arc<Settings>,
    options: Arc<EstablishOptions>,
    /// The specification's connection cache.
    token: Option<AccessToken>,
    /// A conversation has begun and not ended well: whatever comes, the connection is not authenticated.
    is_open: bool,
}

impl Reauthentication {
    /// `None` for a connection that was not authenticated.
    pub(super) fn new(
        settings: &Arc<Settings>,
        options: Arc<EstablishOptions>,
        description: &ConnectionDescription,
        token: Option<AccessToken>,
    ) -> Option<Box<Self>> {
        let settings = Arc::clone(settings);
        description.mechanism.map(|_| Box::new(Self { settings, options, token, is_open: false }))
    }

    /// Whether a command failed because the server asks for it.
    #[must_use]
    pub fn is_asked_for<T>(outcome: &Result<T, ConnectionError>) -> bool {
        outcome.as_ref().is_err_and(asks)
    }

    /// The error of a command, without texts that repeat a part of what the connection has authenticated with.
    pub(super) fn without_echoes(&self, error: ConnectionError) -> ConnectionError {
        self.options.without_echoes(error, self.token.as_ref())
    }

    /// The machine for the conversation. Forgets the access token of the connection.
    ///
    /// # Errors
    ///
    /// The operating system has no entropy to give.
    pub fn begin(
        &mut self,
        description: &ConnectionDescription,
    ) -> Result<Establish, ConnectionError> {
        self.is_open = true;
        if let (Some(tokens), Some(expired)) = (self.settings.tokens(), self.token.take()) {
            tokens.invalidate(&expired);
        }
        let description = Box::new(description.clone());
        let mut establish = Establish::reauthenticate(
            Arc::clone(&self.options),
            nonce()?,
            since_1970(),
            description,
        )?;
        self.settings.offer_token(&mut establish);
        Ok(establish)
    }

    /// The server's reply.
    pub fn reply(&self, establish: &mut Establish, reply: &RawDocument) {
        establish.reply(reply, &mut self.settings.scram());
    }

    /// Derives keys, which takes milliseconds.
    pub fn derive(&self, establish: &mut Establish, derivation: KeyDerivation) {
        let keys = derivation.run();
        establish.derived(keys, &mut self.settings.scram());
    }

    /// Gets another token than the one that was refused. `timeout`, a minute if it is `None` or longer, is what the
    /// application's callback is told; this blocks for as long as the callback does.
    pub fn fetch_token(
        &self,
        establish: &mut Establish,
        refused: Option<AccessToken>,
        timeout: Option<Duration>,
    ) {
        match self.settings.token_fetch(refused, timeout.unwrap_or(LONGEST_WAIT))() {
            Ok(token) => establish.token(token),
            Err(error) => establish.failed_with(error),
        }
    }

    /// The connection failed.
    pub fn failed(&self, establish: &mut Establish, error: TransportError) {
        fail(establish, error);
    }

    /// The machine is done.
    pub fn done(&mut self, establish: &Establish) {
        self.token = establish.access_token().cloned();
        self.is_open = false;
    }

    /// Whether a conversation was begun and not brought to its end: no late reply makes the connection usable then.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    pub(super) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings)
    }
}

/// The error of a connection that never had a mechanism.
#[must_use]
pub fn not_authenticated() -> ConnectionError {
    let reason = "the connection was not authenticated, and cannot be authenticated again";
    ConnectionError::configuration(Stage::Operation, reason)
}

/// Names the error of a command after which the server asks for another authentication right after it got one.
#[must_use]
pub fn still_required(error: ConnectionError) -> ConnectionError {
    match error.command_error() {
        Some(refusal) if refusal.requires_reauthentication() => {
            let mut refusal = refusal.clone();
            refusal.message = format!(
                "still refused after re-authenticating once: check how long the server accepts access tokens: {}",
                refusal.message
            );
            ConnectionError::command(error.stage(), refusal)
        }
        Some(_) | None => error,
    }
}

fn asks(error: &ConnectionError) -> bool {
    error.command_error().is_some_and(CommandError::requires_reauthentication)
}

impl fmt::Debug for Reauthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reauthentication").finish_non_exhaustive()
    }
}
