use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cenote_core::connect::{
    ClientMetadata, ConnectionDescription, DriverInfo, EstablishOptions, SaslMechanism, ScramCache,
    ServerApi,
};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::ServiceId;
use cenote_core::uri::{ConnectionString, Credential, ProxyOptions};
use cenote_core::wire::{Compressor, CompressorId, MessageLimit, ZlibLevel};

use super::limit::Limit;
use super::metadata::ClientMetadataStore;
use crate::operation::CommandTimeouts;
use crate::platform::environment;

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
        }
    }

    pub(super) fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.metadata.append(driver)
    }

    /// For connections that are opened from now on. Keys of the old password are forgotten.
    pub(super) fn replace_credential(&self, credential: Credential) -> Result<(), ConnectionError> {
        self.metadata.replace_credential(credential)?;
        *self.scram() = ScramCache::default();
        Ok(())
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
    pub(super) fn opening(&self, now: Instant, caller: Option<Instant>) -> Limit {
        Limit::of(now, self.connect_timeout, caller)
    }

    /// For each command of the handshake, unless the caller's deadline is for all of them.
    pub(super) fn each_command(&self, has_caller_deadline: bool) -> Option<Duration> {
        let each = self.timeouts.operation.or(self.timeouts.socket);
        each.filter(|_| !has_caller_deadline)
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
