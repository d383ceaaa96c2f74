use std::net::SocketAddr;
use std::sync::Arc;

use bson::{RawDocument, rawdoc};
use cenote_core::address::ServerAddress;
use cenote_core::client::{ReadPreference, Selector};
use cenote_core::error::PoolError;
use cenote_core::pool::{CheckOutError, PoolOptions};
use cenote_core::uri::{ConnectionString, UriError};
use cenote_endpoint::{Endpoint, ListenOptions, ScramSettings, Settings, StartError, User};
#[cfg(not(feature = "srv"))]
use cenote_tokio::ClientBuildError;
#[cfg(feature = "srv")]
use cenote_tokio::ClientBuilder;
use cenote_tokio::{BuildError, Builder, MongoConnector, OperationError, Pool};

use super::arguments::{Plan, Target};
use super::operation;
use crate::command::Failure;
use crate::command::endpoint::with_cause;
use crate::command::signals::Signals;
use crate::proxy::FaultProxy;

/// The server of a run.
pub(super) struct Server {
    /// With hosts, which are known also if they had to be looked up.
    pub(super) uri: ConnectionString,
    /// The first host of the connection string: the only one, unless servers are discovered.
    pub(super) address: ServerAddress,
    /// The mock server, unless the URI names another one.
    pub(super) endpoint: Option<Arc<Endpoint>>,
    /// The proxy of all connections, for faults of the network.
    pub(super) proxy: Option<Arc<FaultProxy>>,
    is_load_balanced: bool,
}

impl Server {
    pub(super) async fn start(plan: &Plan<'_>, signals: &mut Signals) -> Result<Self, Failure> {
        let (uri, endpoint, proxy) = match &plan.target {
            Target::Embedded { options } => {
                let endpoint = Arc::new(mock_server().map_err(|error| with_cause(&error))?);
                let uri = format!("{}&{options}", endpoint.uri());
                if plan.arguments.chaos {
                    let proxy = FaultProxy::to(&endpoint.address())?;
                    (proxy.uri(&uri), Some(endpoint), Some(Arc::new(proxy)))
                } else {
                    (uri, Some(endpoint), None)
                }
            }
            Target::Elsewhere { uri } => (uri.clone(), None, None),
        };
        let uri = ConnectionString::parse(&uri)?;
        let uri = match &uri.srv {
            None => uri,
            Some(srv) => {
                let host = srv.host().to_owned();
                tokio::select! {
                    resolved = resolved(uri, &plan.arguments.name_servers) => resolved?,
                    () = signals.come() => return Err(stopped(&host)),
                }
            }
        };
        let is_load_balanced = uri.topology.load_balanced == Some(true);
        let address = uri.hosts.first().cloned().ok_or(UriError::Srv)?;
        let uri = if is_alone(&uri) && !is_load_balanced { to_host(uri, &address) } else { uri };
        expect_one_pool(plan, &uri)?;
        Ok(Self { uri, address, endpoint, proxy, is_load_balanced })
    }

    pub(super) fn selector(&self) -> Selector {
        if is_alone(&self.uri) {
            return Selector::Address(self.address.clone());
        }
        let options = &self.uri.read_write;
        match options.read_preference {
            Some(_) => Selector::ReadPreference(ReadPreference::new(options)),
            None => Selector::Any,
        }
    }

    /// The hosts of the connection string.
    pub(super) fn name(&self) -> String {
        name(&self.uri)
    }

    /// Verifies connectivity and credentials at the first host that answers, before the run starts: monitors do not
    /// authenticate, and a client's callers wait until a server is found.
    pub(super) async fn look(&self, signals: &mut Signals) -> Result<(), Failure> {
        if self.is_load_balanced {
            // The first check-out finds out.
            return Ok(());
        }
        let mut first = None;
        for address in &self.uri.hosts {
            let Err(error) = self.look_at(address, signals).await? else { return Ok(()) };
            first.get_or_insert(format!("{address} cannot be reached: {error}"));
        }
        first.map_or(Ok(()), |first| Err(first.into()))
    }

    /// Whether this host can be reached.
    async fn look_at(
        &self,
        address: &ServerAddress,
        signals: &mut Signals,
    ) -> Result<Result<(), String>, Failure> {
        let options = PoolOptions::default().with_max_pool_size(1);
        let connector = MongoConnector::new(&self.uri).map_err(BuildError::from)?;
        let pool = Builder::new(address.clone(), connector).replace_options(options);
        let pool: Pool = pool.timeout(self.uri.timeouts.operation).build()?;
        pool.ready();
        let is_chaos = self.proxy.is_some();
        let first = if is_chaos {
            operation::documents()
        } else {
            rawdoc! { "ping": 1 }
        };
        let answer = tokio::select! {
            answer = run_alone(&pool, &first) => answer,
            () = signals.come() => return Err(stopped(&address.to_string())),
        };
        if answer.is_ok() {
            pool.close().await;
        }
        Ok(answer)
    }
}

/// By a signal, before the run began.
fn stopped(server: &str) -> Failure {
    format!("stopped before {server} answered").into()
}

/// With TLS and one user, which has to log in.
fn mock_server() -> Result<Endpoint, StartError> {
    let settings = Settings {
        auth: true,
        users: vec![User::new("app", "pencil")],
        // The least that clients accept (AU-33): a build without optimisation has work to do, too.
        scram: ScramSettings { sha256_iterations: 4096, ..ScramSettings::default() },
        ..Settings::default()
    };
    Endpoint::start(settings, ListenOptions::with_tls())
}

/// Runs a command through a pool that has no other user, and says why that failed.
async fn run_alone(pool: &Pool, command: &RawDocument) -> Result<(), String> {
    let told = |error: PoolError| {
        if let CheckOutError::EstablishFailed { cause } = error.error() {
            return cause.with_advice().to_string();
        }
        error.to_string()
    };
    let mut connection = pool.check_out().await.map_err(told)?;
    match connection.command("admin", command).await {
        Ok(_) => Ok(()),
        Err(OperationError::Connection(error)) => Err(error.with_advice().to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether this is about one host, to which a run connects directly. Several are a deployment, of which a client finds
/// the other servers; and so is one host with `directConnection=false`.
pub(super) fn is_alone(uri: &ConnectionString) -> bool {
    let is_load_balanced = uri.topology.load_balanced == Some(true);
    uri.hosts.len() < 2 && (is_load_balanced || uri.topology.direct_connection != Some(false))
}

/// The hosts of a connection string.
pub(super) fn name(uri: &ConnectionString) -> String {
    let hosts: Vec<_> = uri.hosts.iter().map(ToString::to_string).collect();
    hosts.join(", ")
}

fn expect_one_pool(plan: &Plan<'_>, uri: &ConnectionString) -> Result<(), Failure> {
    let option = match (&plan.arguments.html, plan.arguments.give_up) {
        (Some(_), _) => "--html",
        (None, Some(_)) => "--give-up",
        (None, None) => return Ok(()),
    };
    if is_alone(uri) {
        return Ok(());
    }
    let servers = name(uri);
    Err(format!(
        "{option} is about one pool, and a client of {servers} may have several: name one host in the URI, without directConnection=false"
    )
    .into())
}

/// Connects directly to this host. Otherwise a client would leave a host that the members of its replica set know by
/// another name.
fn to_host(mut uri: ConnectionString, address: &ServerAddress) -> ConnectionString {
    uri.hosts = vec![address.clone()];
    uri.topology.direct_connection = Some(true);
    uri
}

/// The first look at the records counts for the whole run: a server that they do not name any more goes on.
#[cfg(feature = "srv")]
async fn resolved(
    uri: ConnectionString,
    name_servers: &[SocketAddr],
) -> Result<ConnectionString, Failure> {
    let mut builder = ClientBuilder::from_connection_string(uri)?;
    if !name_servers.is_empty() {
        builder = builder.name_servers(name_servers.iter().copied());
    }
    Ok(builder.resolve().await?.connection_string().clone())
}

#[cfg(not(feature = "srv"))]
async fn resolved(uri: ConnectionString, _: &[SocketAddr]) -> Result<ConnectionString, Failure> {
    let host = uri.srv.map(|srv| srv.host().to_owned()).unwrap_or_default();
    Err(ClientBuildError::Unresolved { host }.into())
}
