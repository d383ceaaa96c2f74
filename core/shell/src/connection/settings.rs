use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cenote_core::connect::{
    ClientMetadata, ConnectionDescription, DriverInfo, EstablishOptions, ScramCache,
};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::ServiceId;
use cenote_core::uri::{ConnectionString, ProxyOptions};
use cenote_core::wire::{Compressor, CompressorId, MessageLimit, ZlibLevel};

use super::limit::Limit;
use super::metadata::ClientMetadataStore;
use crate::platform::environment;

/// `connectTimeoutMS` where the connection string has none (OP-18).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a connection string says of connections, and what was learnt while they were opened. TLS is
/// the shell's.
pub struct Settings {
    metadata: ClientMetadataStore,
    connect_timeout: Duration,
    /// `timeoutMS`, which replaces `socketTimeoutMS` where it is set (CS-07).
    operation_timeout: Option<Duration>,
    socket_timeout: Option<Duration>,
    zlib_level: ZlibLevel,
    proxy: Option<ProxyOptions>,
    scram: Mutex<ScramCache>,
}

impl Settings {
    /// As `uri` says, for a client that has no name of its own.
    ///
    /// # Errors
    ///
    /// An application's name that is too long.
    pub fn new(uri: &ConnectionString) -> Result<Self, ConnectionError> {
        let client = ClientMetadata::new(uri.app_name.as_deref(), &environment())
            .map_err(|error| ConnectionError::configuration(Stage::Hello, &error.to_string()))?;
        Ok(Self::with_client(uri, &client))
    }

    /// As `uri` says, for a driver that tells servers its own name (HS-21, HS-29).
    #[must_use]
    pub fn with_client(uri: &ConnectionString, client: &ClientMetadata) -> Self {
        Self {
            metadata: ClientMetadataStore::new(uri, client),
            connect_timeout: uri.timeouts.connect.unwrap_or(CONNECT_TIMEOUT),
            operation_timeout: uri.timeouts.operation,
            socket_timeout: uri.timeouts.socket.filter(|timeout| !timeout.is_zero()),
            zlib_level: ZlibLevel::new(uri.compression.zlib_compression_level.unwrap_or(-1))
                .unwrap_or(ZlibLevel::DEFAULT),
            proxy: uri.proxy.clone(),
            scram: Mutex::default(),
        }
    }

    /// Who the client says it is.
    pub const fn metadata(&self) -> &ClientMetadataStore {
        &self.metadata
    }

    /// From now on a driver or library is told of, too; says whether it was not before.
    pub fn append_metadata(&self, driver: DriverInfo) -> bool {
        self.metadata.append(driver)
    }

    /// What hello says on a monitor's connection that is opened now.
    pub fn monitor_options(&self) -> Arc<EstablishOptions> {
        self.metadata.monitor_options()
    }

    /// For opening a connection, TLS included, by the deadline of who waits for it, if he has one.
    pub fn opening(&self, now: Instant, callers: Option<Instant>) -> Limit {
        Limit::of(now, self.connect_timeout, callers)
    }

    /// The same for hello and authentication, of which each command has `timeoutMS`, or else
    /// `socketTimeoutMS`, unless the caller's deadline is for all of them (CS-05, CS-06, CS-08).
    pub fn each_command(&self, callers: Option<Instant>) -> Option<Duration> {
        match callers {
            Some(_) => None,
            None => self.operation_timeout.or(self.socket_timeout),
        }
    }

    /// For each wait for a socket that is open (OP-19).
    pub const fn socket_timeout(&self) -> Option<Duration> {
        self.socket_timeout
    }

    /// The way to the server, if it is not the straight one.
    pub const fn proxy(&self) -> Option<&ProxyOptions> {
        self.proxy.as_ref()
    }

    /// What hello has settled, as the wire format has it (CO-20, CM-05).
    pub fn agreed(&self, server: &ConnectionDescription) -> (MessageLimit, Option<Compressor>) {
        let compressor = server.compressor.and_then(|agreed| {
            let id = CompressorId::from_name(agreed.name())?;
            Compressor::new(id, self.zlib_level).ok()
        });
        (limit_of(server), compressor)
    }

    /// The service at the other end, for a pool behind a load balancer.
    pub fn service(&self, server: &ConnectionDescription) -> Option<ServiceId> {
        server.service_id.filter(|_| self.metadata.options().load_balanced)
    }

    pub(super) fn scram(&self) -> MutexGuard<'_, ScramCache> {
        self.scram.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most bytes that a message to a server may have.
pub(super) fn limit_of(server: &ConnectionDescription) -> MessageLimit {
    let limit = MessageLimit::new(server.limits.max_message_size.into());
    limit.unwrap_or(MessageLimit::DEFAULT)
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("options", &self.metadata.options())
            .finish_non_exhaustive()
    }
}
