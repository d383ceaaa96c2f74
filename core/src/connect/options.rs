use std::sync::Arc;

use bson::raw::{CStr, cstr};
use bson::{RawBson, RawDocument, RawDocumentBuf};

use super::{ClientMetadata, MAX_ITERATIONS, SaslMechanism, authentication};
use crate::error::ConnectionError;
use crate::uri::{Compressor, ConnectionString, Credential};

/// How a client's connections are established: the options that all of them share.
///
/// ```
/// use cenote_core::connect::{ClientMetadata, Environment, EstablishOptions};
/// use cenote_core::uri::ConnectionString;
///
/// let uri = ConnectionString::parse("mongodb://app:s3cret@db/?appname=shop&compressors=zstd")?;
/// let client = ClientMetadata::new(uri.app_name.as_deref(), &Environment::default())?;
/// let options = EstablishOptions::new(&uri, &client);
/// assert!(options.credential.is_some());
/// assert!(!format!("{options:?}").contains("s3cret"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EstablishOptions {
    /// The client metadata: [`ClientMetadata::to_document`], at most 512 bytes.
    /// Metadata that was added later counts for connections that are opened later.
    pub client: RawDocumentBuf,
    /// The compressors to offer, the preferred one first; default none. [`new`](Self::new) leaves
    /// out those that are not [built in](Compressor::is_built).
    pub compressors: Vec<Compressor>,
    /// Whether the server is behind a load balancer; default `false`.
    pub load_balanced: bool,
    /// The version of the server's API that the user declared; default none.
    pub server_api: Option<ServerApi>,
    /// The credential; `None` is no authentication, as for monitors.
    // AU-05
    pub credential: Option<Credential>,
    /// A mechanism of the embedder's own, used instead of the built-in ones; default none. The credential is `None`
    /// then, or names the same mechanism, and is the embedder's to use.
    pub sasl_mechanism: Option<Arc<dyn SaslMechanism>>,
    /// How many iterations of PBKDF2 a server may ask for; default [`MAX_ITERATIONS`]. It bounds
    /// the time that one reply can cost.
    pub max_scram_iterations: u32,
    /// Whether a description has the whole reply, as a monitor's log shows it.
    pub(super) keeps_reply: bool,
}

/// Version 1 of the server's API, and how strictly it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerApi {
    /// `apiStrict`: refuse commands outside of it; `None` leaves it to the server.
    pub strict: Option<bool>,
    /// `apiDeprecationErrors`: refuse deprecated parts of it; `None` leaves it to the server.
    pub deprecation_errors: Option<bool>,
}

impl ServerApi {
    /// The command with `apiVersion`, `apiStrict` and `apiDeprecationErrors`, for a command after the
    /// handshake; the handshake's have them. Unchanged if it has an `apiVersion` of its own, or is
    /// empty.
    // HS-12
    #[must_use]
    pub fn declared_in(self, command: &RawDocument) -> RawDocumentBuf {
        let mut declared = command.to_owned();
        if !command.is_empty() && matches!(command.get("apiVersion"), Ok(None)) {
            self.fields().for_each(|(key, value)| declared.append(key, value));
        }
        declared
    }

    pub(super) fn fields(self) -> impl Iterator<Item = (&'static CStr, RawBson)> {
        let flag = |key, value: Option<bool>| value.map(|value| (key, RawBson::Boolean(value)));
        let version = (cstr!("apiVersion"), RawBson::String("1".to_owned()));
        [
            Some(version),
            flag(cstr!("apiStrict"), self.strict),
            flag(cstr!("apiDeprecationErrors"), self.deprecation_errors),
        ]
        .into_iter()
        .flatten()
    }
}

impl EstablishOptions {
    /// The options of a connection string.
    #[must_use]
    pub fn new(uri: &ConnectionString, client: &ClientMetadata) -> Self {
        let compressors = uri.compression.compressors.iter().flatten().copied();
        Self {
            compressors: compressors.filter(|compressor| compressor.is_built()).collect(),
            load_balanced: uri.topology.load_balanced == Some(true),
            credential: uri.credential.clone(),
            ..Self::for_client(client)
        }
    }

    /// The defaults, for a driver that has its own way to be configured.
    // HS-30
    #[must_use]
    pub fn for_client(client: &ClientMetadata) -> Self {
        Self {
            client: client.to_document(),
            compressors: Vec::new(),
            load_balanced: false,
            server_api: None,
            credential: None,
            sasl_mechanism: None,
            max_scram_iterations: MAX_ITERATIONS,
            keeps_reply: false,
        }
    }

    /// The same for the connections of a monitor: they do not authenticate or ask how to, and of
    /// what a monitor sends nothing may be compressed.
    // SD-51, AU-01
    #[must_use]
    pub fn for_monitor(&self) -> Self {
        Self {
            credential: None,
            sasl_mechanism: None,
            compressors: Vec::new(),
            keeps_reply: true,
            ..self.clone()
        }
    }

    /// Checks whether its credential and its mechanism can be used, before any connection is opened:
    /// [`Establish::new`](super::Establish::new) does so, too.
    ///
    /// # Errors
    ///
    /// A mechanism that is not supported, a credential that lacks what its mechanism needs, or a
    /// password that cannot be one; a [mechanism](Self::sasl_mechanism) that is not the credential's: a configuration error at
    /// [`Stage::Authentication`](crate::error::Stage::Authentication).
    // AU-07
    pub fn check_credential(&self) -> Result<(), ConnectionError> {
        authentication::check(self)
    }

    /// Whether connections authenticate with access tokens (`MONGODB-OIDC`), for which
    /// [`Step::Token`](super::Step::Token) asks.
    #[must_use]
    pub fn uses_access_tokens(&self) -> bool {
        authentication::uses_tokens(self)
    }

    /// Whether any server that can be meant knows `hello` by that name.
    // LB-11, HS-03
    pub(super) const fn speaks_hello(&self) -> bool {
        self.load_balanced || self.server_api.is_some()
    }
}
