//! What pools and clients are built with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::client::{HeartbeatEvent, TopologyEvent};
use cenote_core::connect::{AccessToken, SaslConversation, SaslMechanism, ServerApi};
use cenote_core::error::{BoxError, ConnectionError};
use cenote_core::log::LogSettings;
use cenote_core::pool::{Event, PoolOptions};
use cenote_core::trace::Disclosure;
use cenote_core::uri::{ConnectionString, Credential, UriError};
use cenote_shell::builder::{BuildError, Builder, BuiltPool, FromUri};
use cenote_shell::client::{BuiltClient, ClientBuildError, ClientBuilder};
use cenote_shell::connection::{Lookup, MongoConnector};
use cenote_shell::failure::Failure;
use cenote_shell::oidc::TokenRequest;
use cenote_shell::runtime::Network;
use cenote_shell::trace::Recording;

use crate::NameService;
use crate::tls::TlsSetup;

/// Takes the events of a pool.
pub type OnEvent = Box<dyn Fn(&Event<ConnectionError>, &Arc<ServerAddress>) + Send + Sync>;
/// Takes the events of monitors.
type OnHeartbeat = Box<dyn Fn(&HeartbeatEvent) + Send + Sync>;
/// Takes the events of the topology and its servers.
type OnTopologyEvent = Box<dyn Fn(&TopologyEvent) + Send + Sync>;
/// Takes failures of connections.
pub type OnFailure = Box<dyn Fn(&Failure<'_>) + Send + Sync>;
/// Returns access tokens.
pub type Tokens = Box<dyn Fn(&TokenRequest) -> Result<AccessToken, BoxError> + Send + Sync>;
/// Returns keys of AWS.
type AwsKeys = Box<dyn Fn() -> Result<Credential, BoxError> + Send + Sync>;
/// Resolves host names.
type Resolver = Box<dyn Fn(Lookup) + Send + Sync>;
/// Changes options.
type Change = fn(PoolOptions) -> PoolOptions;

/// What the server of a pool is, and how to connect to it.
pub enum PoolUri<'a> {
    /// As users write it.
    Text(&'a str),
    /// One that was changed after it was read.
    Parsed(Box<ConnectionString>),
}

impl<'a> From<&'a str> for PoolUri<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for PoolUri<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl From<ConnectionString> for PoolUri<'_> {
    fn from(uri: ConnectionString) -> Self {
        Self::Parsed(Box::new(uri))
    }
}

/// What a pool is built with, besides its connection string.
#[derive(Default)]
pub struct PoolSetup {
    /// Instead of those of the connection string.
    pub options: Option<PoolOptions>,
    /// Changes the options.
    pub change: Option<Change>,
    /// What is logged.
    pub log: Option<LogSettings>,
    /// Takes the events.
    pub on_event: Option<OnEvent>,
    /// Takes failures of connections.
    pub on_failure: Option<OnFailure>,
    /// Where the trace goes.
    pub recording: Option<Recording>,
    /// Returns access tokens.
    pub tokens: Option<Tokens>,
    /// Authenticates.
    pub mechanism: Option<Arc<dyn SaslMechanism>>,
    /// What is chosen of TLS.
    pub tls: TlsSetup,
    /// Resolves host names, of a connection string that is parsed.
    pub resolver: Option<Resolver>,
}

impl PoolSetup {
    pub(crate) fn builder<R, P>(self, uri: PoolUri<'_>) -> Result<Builder<P>, BuildError>
    where
        R: Network,
        P: BuiltPool<Connector = MongoConnector<R>>,
        MongoConnector<R>: FromUri,
    {
        let Self { options, change, log, on_event, on_failure, .. } = self;
        let Self { recording, tokens, mechanism, tls, resolver, .. } = self;
        let mut builder = match uri {
            PoolUri::Text(text) => Builder::<P>::from_uri(text)?,
            PoolUri::Parsed(uri) => {
                let address = uri.hosts.first().cloned().ok_or(UriError::Srv)?;
                let mut connector = MongoConnector::new(&uri)?;
                if let Some(resolver) = resolver {
                    connector = connector.with_resolver(resolver);
                }
                let builder = Builder::new(address, connector).timeout(uri.timeouts.operation);
                builder.replace_options(uri.pool_options())
            }
        };
        if let Some(options) = options {
            builder = builder.replace_options(options);
        }
        if let Some(change) = change {
            builder = builder.map_options(change);
        }
        if let Some(log) = log {
            builder = builder.log_settings(log);
        }
        if let Some(on_event) = on_event {
            builder = builder.on_event(move |it| on_event(&it.event, &it.address));
        }
        if let Some(on_failure) = on_failure {
            builder = builder.on_failure(on_failure);
        }
        if let Some(recording) = recording {
            builder = builder.record(recording);
        }
        if let Some(tokens) = tokens {
            builder = builder.oidc_callback(tokens);
        }
        if let Some(mechanism) = mechanism {
            builder = builder.sasl_mechanism(Shared(mechanism));
        }
        Ok(tls.of_pool(builder))
    }
}

/// What a client is built with, besides its connection string.
#[derive(Default)]
pub struct ClientSetup<'a> {
    /// Of its pools, instead of those of the connection string.
    pub options: Option<PoolOptions>,
    /// Changes the options of all pools, then those of each.
    pub changes: Option<[Change; 2]>,
    /// The version of the server's API that is declared.
    pub server_api: Option<ServerApi>,
    /// Returns access tokens.
    pub tokens: Option<Tokens>,
    /// Returns keys of AWS.
    pub aws_keys: Option<AwsKeys>,
    /// Authenticates.
    pub mechanism: Option<Arc<dyn SaslMechanism>>,
    /// What is chosen of TLS.
    pub tls: TlsSetup,
    /// Takes events.
    pub subscribers: Subscribers,
    /// What is recorded.
    pub recordings: Recordings,
    /// Where `mongodb+srv://` is looked up.
    pub names: Option<NameService>,
    /// The socket at which it can be inspected.
    pub inspect: Option<&'a Path>,
}

/// The subscribers to events of pools, monitors and the topology.
#[derive(Default)]
pub struct Subscribers {
    /// Of all pools.
    pub pools: Option<OnEvent>,
    /// Of monitors.
    pub heartbeats: Option<OnHeartbeat>,
    /// Of the topology and its servers.
    pub topology: Vec<OnTopologyEvent>,
    /// How many events may wait for them.
    pub queue: Option<usize>,
    /// Each pool has a clone of it, for as long as it is there.
    pub token: Arc<()>,
}

/// How a client is recorded. By default it is not.
#[derive(Clone, Default)]
pub struct Recordings {
    /// The folder of its traces.
    pub into: Option<PathBuf>,
    /// The folder of dumps.
    pub dumps: Option<PathBuf>,
    /// In bytes.
    pub flight_recorder: Option<usize>,
    /// Of texts, and of addresses.
    pub disclosure: [Disclosure; 2],
}

impl ClientSetup<'_> {
    pub(crate) fn builder<C: BuiltClient>(
        self,
        uri: &str,
    ) -> Result<ClientBuilder<C>, ClientBuildError> {
        let Self { options, changes, server_api, tokens, mechanism, .. } = self;
        let mut builder = ClientBuilder::<C>::from_uri(uri)?;
        if let Some(options) = options {
            builder = builder.replace_options(options);
        }
        let [all, each] = changes.unwrap_or([|options| options; 2]);
        let token = Arc::clone(&self.subscribers.token);
        builder = builder.map_options(all).prepare_pools(move |pool| {
            let token = Arc::clone(&token);
            pool.map_options(each).on_event(move |_| {
                let _kept = &token;
            })
        });
        if let Some(api) = server_api {
            builder = builder.server_api(api);
        }
        if let Some(tokens) = tokens {
            builder = builder.oidc_callback(tokens);
        }
        if let Some(keys) = self.aws_keys {
            builder = builder.aws_credential_provider(keys);
        }
        if let Some(mechanism) = mechanism {
            builder = builder.sasl_mechanism(Shared(mechanism));
        }
        if let Some(names) = self.names {
            builder = names.apply(builder);
        }
        if let Some(socket) = self.inspect {
            builder = builder.inspect(socket);
        }
        Ok(self.tls.of_client(self.recordings.record(self.subscribers.subscribe(builder))))
    }
}

impl Subscribers {
    fn subscribe<C: BuiltClient>(self, mut builder: ClientBuilder<C>) -> ClientBuilder<C> {
        let Self { pools, heartbeats, topology, queue, token: _ } = self;
        if let Some(events) = queue {
            builder = builder.event_queue(events);
        }
        if let Some(on_event) = pools {
            builder = builder.on_event(move |it| on_event(&it.event, &it.address));
        }
        if let Some(on_heartbeat) = heartbeats {
            builder = builder.on_heartbeat(on_heartbeat);
        }
        topology.into_iter().fold(builder, ClientBuilder::on_topology_event)
    }
}

impl Recordings {
    fn record<C: BuiltClient>(self, mut builder: ClientBuilder<C>) -> ClientBuilder<C> {
        let Self { into, dumps, flight_recorder, disclosure: [texts, addresses] } = self;
        builder = builder.trace_disclosure(texts, addresses);
        if let Some(folder) = into {
            builder = builder.record_into(folder);
        }
        if let Some(folder) = dumps {
            builder = builder.dump_traces_into(folder);
        }
        if let Some(bytes) = flight_recorder {
            builder = builder.flight_recorder(bytes);
        }
        builder
    }
}

/// A mechanism of any type.
struct Shared(Arc<dyn SaslMechanism>);

impl SaslMechanism for Shared {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn source(&self) -> &str {
        self.0.source()
    }

    fn speculates(&self) -> bool {
        self.0.speculates()
    }

    fn start(&self) -> Result<Box<dyn SaslConversation>, BoxError> {
        self.0.start()
    }
}
