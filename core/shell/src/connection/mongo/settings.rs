use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cenote_core::connect::{
    AccessToken, ClientMetadata, ConnectionDescription, DriverInfo, Establish, EstablishOptions,
    SaslMechanism, ScramCache, ServerApi,
};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::ServiceId;
use cenote_core::uri::{ConnectionString, Credential, ProxyOptions};
use cenote_core::wire::{Compressor, CompressorId, MessageLimit, ZlibLevel};

use super::limit::Limit;
use super::metadata::ClientMetadataStore;
use crate::aws::{self, AwsCredentialProvider};
use crate::connection::Target;
use crate::connection::operation::CommandTimeouts;
use crate::oidc::{self, TokenCallback, Tokens};
use crate::runtime::Runtime;
use crate::runtime::platform::environment;

/// `connectTimeoutMS` where the connection string has none.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a connection string says about connections, and what was learned while opening them.
pub(super) struct Settings {
    metadata: ClientMetadataStore,
    connect_timeout: Duration,
    timeouts: CommandTimeouts,
    zlib_level: ZlibLevel,
    proxy: Option<ProxyOptions>,
    scram: Mutex<ScramCache>,
    tokens: Mutex<Option<Arc<Tokens>>>,
    aws_provider: Mutex<Option<Arc<AwsCredentialProvider>>>,
}

impl Settings {
    /// Fails for an application name that is too long.
    pub(super) fn new(uri: &ConnectionString) -> Result<Self, ConnectionError> {
        let client = ClientMetadata::new(uri.app_name.as_deref(), &environment())
            .map_err(|error| ConnectionError::configuration(Stage::Hello, &error.to_string()))?;
        Ok(Self::with_client(uri, &client))
    }

    pub(super) fn with_client(uri: &ConnectionString, client: &ClientMetadata) -> Self {
        Self {
            metadata: ClientMetadataStore::new(uri, client),
            connect_timeout: uri.timeouts.connect.unwrap_or(CONNECT_TIMEOUT),
            timeouts: CommandTimeouts {
                operation: uri.timeouts.operation,
                socket: uri.timeouts.socket_in_force(),
            },
            zlib_level: ZlibLevel::new(uri.compression.zlib_compression_level.unwrap_or(-1))
                .unwrap_or(ZlibLevel::DEFAULT),
            proxy: uri.proxy.clone(),
            scram: Mutex::default(),
            tokens: Mutex::default(),
            aws_provider: Mutex::default(),
        }
    }

    /// With the options that a TXT record has set.
    pub(super) fn resolve(&self, uri: &ConnectionString) {
        self.metadata.resolve(uri);
    }

    pub(super) fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.metadata.append(driver)
    }

    /// For connections that are opened from now on. Keys of the old password and the old user's token are forgotten.
    pub(super) fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
        // Before the metadata is locked, which these are made from.
        let tokens = self.tokens();
        self.metadata.replace_credential(credential, |options| {
            self.check_options(options, tokens.as_deref())
        })?;
        *self.scram() = ScramCache::default();
        tokens.into_iter().for_each(|tokens| tokens.forget());
        // Those of an environment are made again.
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.take_if(|tokens| tokens.is_built_in());
        Ok(())
    }

    /// Whether connections can authenticate.
    pub(super) fn check(&self) -> Result<(), ConnectionError> {
        self.check_options(&self.options(), self.tokens().as_deref())
    }

    fn check_options(
        &self,
        options: &EstablishOptions,
        tokens: Option<&Tokens>,
    ) -> Result<(), ConnectionError> {
        aws::check(options, self.aws_provider().is_some())?;
        // Keys of AWS come with each connection.
        if !aws::uses_keys(options) {
            options.check_credential()?;
        }
        oidc::check(options, tokens)
    }

    pub(super) fn take_aws_keys_from(&self, provider: Arc<AwsCredentialProvider>) {
        *self.aws_provider.lock().unwrap_or_else(PoisonError::into_inner) = Some(provider);
    }

    fn aws_provider(&self) -> Option<Arc<AwsCredentialProvider>> {
        self.aws_provider.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gets the keys of AWS that these options need, for which it blocks as long as the application's provider does.
    pub(super) fn aws_fetch(
        &self,
        options: &EstablishOptions,
    ) -> Option<impl FnOnce() -> Result<Credential, ConnectionError> + Send + 'static> {
        let provider = self.aws_provider();
        aws::uses_keys(options).then_some(move || aws::keys(provider.as_deref()))
    }

    pub(super) fn take_tokens_from(&self, callback: Arc<TokenCallback>) {
        let tokens = Arc::new(Tokens::new(callback));
        *self.tokens.lock().unwrap_or_else(PoisonError::into_inner) = Some(tokens);
    }

    /// The token that other connections have used.
    pub(super) fn offer_token(&self, establish: &mut Establish) {
        if let Some(token) = self.tokens().and_then(|tokens| tokens.cached()) {
            establish.use_token(token);
        }
    }

    /// Gets a token, for which it blocks: for `timeout` at most while another call is under way, and then as long as the
    /// callback does.
    pub(super) fn token_fetch(
        &self,
        refused: Option<AccessToken>,
        timeout: Duration,
    ) -> impl FnOnce() -> Result<AccessToken, ConnectionError> + Send + 'static {
        let tokens = self.tokens();
        let username = self.options().credential.as_ref().and_then(|it| it.username.clone());
        move || match tokens {
            Some(tokens) => tokens.fetch(username, refused.as_ref(), timeout),
            None => Err(oidc::callback_missing()),
        }
    }

    /// Where access tokens come from: the application's callback, or the `ENVIRONMENT` of the credential.
    pub(super) fn tokens(&self) -> Option<Arc<Tokens>> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.is_none() {
            let options = self.options();
            *tokens = options.credential.as_ref().and_then(Tokens::of_environment).map(Arc::new);
        }
        tokens.clone()
    }

    pub(super) fn declare(&self, api: ServerApi) {
        self.metadata.declare(api);
    }

    pub(super) fn authenticate_by(&self, mechanism: Arc<dyn SaslMechanism>) {
        self.metadata.authenticate_by(mechanism);
    }

    pub(super) fn options(&self) -> Arc<EstablishOptions> {
        self.metadata.options()
    }

    pub(super) fn monitor_options(&self) -> Arc<EstablishOptions> {
        self.metadata.monitor_options()
    }

    /// For opening a connection, including TLS.
    // ES-06, SD-52, CS-05
    pub(super) fn opening(&self, now: Instant) -> Limit {
        Limit::of(now, self.connect_timeout)
    }

    /// For each command of the handshake. A caller's deadline, `timeoutMS` among them, ends its wait, unless nothing else ends
    /// the connection.
    // BG-04, CS-05, CS-06, CS-07, CS-08, CS-09
    pub(super) fn each_command<R: Runtime>(&self, target: &Target<R>) -> Option<Duration> {
        let is_alone = target.background || self.connect_timeout.is_zero();
        match self.timeouts.operation {
            Some(operation) => is_alone.then_some(operation),
            None => self.timeouts.socket.filter(|_| !target.has_deadline),
        }
    }

    /// `timeoutMS`, if it is set and not 0.
    pub(super) fn operation_timeout(&self) -> Option<Duration> {
        self.timeouts.operation.filter(|timeout| !timeout.is_zero())
    }

    /// For the commands of an open connection.
    pub(super) const fn timeouts(&self) -> CommandTimeouts {
        self.timeouts
    }

    pub(super) const fn proxy(&self) -> Option<&ProxyOptions> {
        self.proxy.as_ref()
    }

    /// What hello has negotiated, for the wire protocol.
    pub(super) fn agreed(
        &self,
        server: &ConnectionDescription,
    ) -> (MessageLimit, Option<Compressor>) {
        let compressor = server.compressor.and_then(|agreed| {
            let id = CompressorId::from_name(agreed.name())?;
            Compressor::new(id, self.zlib_level).ok()
        });
        let limit = MessageLimit::new(server.limits.max_message_size.into());
        (limit.unwrap_or(MessageLimit::DEFAULT), compressor)
    }

    /// The service behind a load balancer.
    pub(super) fn service(&self, server: &ConnectionDescription) -> Option<ServiceId> {
        server.service_id.filter(|_| self.metadata.options().load_balanced)
    }

    pub(super) fn scram(&self) -> MutexGuard<'_, ScramCache> {
        self.scram.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("options", &self.metadata.options())
            .finish_non_exhaustive()
    }
}
