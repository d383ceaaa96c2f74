//! Connection strings: `mongodb://user:password@host:port,…/database?option=value&…`.
//!
//! [`ConnectionString::parse`] reads everything that a pool and its connections need. Three rules
//! hold for all of it:
//!
//! * What is not well formed, contradicts itself or lacks what it needs is an error, a
//!   [`UriError`]. An option that is unknown, or whose value it cannot have, is ignored with a
//!   [`UriWarning`]; warnings are collected and never printed.
//! * A field that is an [`Option`] says whether the option was written. Defaults are up to those
//!   that use it; the documentation of each field names them.
//! * Secrets are of type [`Secret`]. No error and no warning repeats a value, and none has the
//!   password in it, even if the password is what made the connection string invalid.
//!
//! Decisions where the specifications leave a choice: the first of several equal options counts;
//! `;` does not separate options and `+` is no space; zone identifiers of IPv6 addresses are
//! refused; an unknown `authMechanism` and an empty `proxyHost` are errors, because to ignore them
//! would connect in another way than was asked for. For the same reason `tls` and `ssl` have to be readable, and
//! `tlsCAFile` and `tlsCertificateKeyFile` must not be empty. The options that make connections less safe, `tlsInsecure`
//! and its parts, are ignored with a warning if they cannot be read, as the specification has it.
//!
//! A `mongodb+srv://` connection string names its servers only after a look-up: [`srv`].

mod credential;
mod error;
mod mechanism;
mod options;
mod proxy;
mod query;
mod read_write;
mod secret;
mod similar;
mod split;
pub mod srv;
mod tls;
mod warning;

use std::str::FromStr;

use self::{query::Query, split::Parts, srv::SrvOptions};
use crate::{address::ServerAddress, pool::PoolOptions};

pub use self::{
    credential::Credential,
    error::{CredentialProblem, SuffixProblem, UriError, UriPart},
    mechanism::Mechanism,
    options::{
        CompressionOptions, Compressor, MonitoringOptions, RetryOptions, ServerMonitoringMode,
        TimeoutOptions, TopologyOptions,
    },
    proxy::{ProxyCredential, ProxyOptions},
    read_write::{ReadPreferenceMode, ReadWriteOptions, WriteConcern},
    secret::Secret,
    similar::similar_name,
    tls::TlsOptions,
    warning::{Expected, Problem, UriWarning},
};

/// A parsed connection string.
///
/// ```
/// use cenote_core::uri::ConnectionString;
///
/// let uri = "mongodb://app:s3cret@db1.example.com,db2.example.com:27018/shop\
///            ?replicaSet=rs0&maxPoolSize=20&tls=true&maxConecting=4";
/// let parsed = ConnectionString::parse(uri)?;
///
/// assert_eq!(parsed.hosts[1].to_string(), "db2.example.com:27018");
/// assert_eq!(parsed.pool.max_pool_size, Some(20));
/// assert!(parsed.tls.enabled());
/// assert_eq!(parsed.credential.as_ref().map(|it| it.source.as_str()), Some("shop"));
/// assert_eq!(
///     parsed.warnings()[0].to_string(),
///     "maxConecting: no such option, did you mean maxConnecting? It is ignored"
/// );
/// assert!(!format!("{parsed:?}").contains("s3cret"));
/// # Ok::<(), cenote_core::uri::UriError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionString {
    /// The hosts in the order of the text; at least one. A `mongodb+srv://` connection string has none
    /// before it is [resolved](Self::resolve).
    pub hosts: Vec<ServerAddress>,
    /// Where to look its hosts up, if it is `mongodb+srv://`.
    pub srv: Option<SrvOptions>,
    /// The database behind the slash. It does not turn authentication on.
    pub database: Option<String>,
    /// The credential; `None` is no authentication.
    pub credential: Option<Credential>,
    /// `appname`: the name of the application, at most 128 bytes.
    pub app_name: Option<String>,
    /// The options of each host's pool. They have been validated, and `loadBalanced` is among them.
    pub pool: PoolOptions,
    /// Which servers there are, and how one is chosen.
    pub topology: TopologyOptions,
    /// How servers are watched.
    pub monitoring: MonitoringOptions,
    /// How long things may take.
    pub timeouts: TimeoutOptions,
    /// How connections are encrypted.
    pub tls: TlsOptions,
    /// How messages are compressed.
    pub compression: CompressionOptions,
    /// The proxy to go through; `None` is none.
    pub proxy: Option<ProxyOptions>,
    /// Which operations are retried.
    pub retries: RetryOptions,
    /// Read preference, read concern and write concern.
    pub read_write: ReadWriteOptions,
    warnings: Vec<UriWarning>,
}

impl ConnectionString {
    /// Reads a connection string.
    ///
    /// # Errors
    ///
    /// When it is not of the form above, or has options that exclude each other.
    pub fn parse(uri: &str) -> Result<Self, UriError> {
        let parts = Parts::of(uri)?;
        let userinfo = parts.userinfo()?;
        let (hosts, srv_host) = match parts.is_srv {
            true => (Vec::new(), Some(parts.srv_host()?)),
            false => (parts.hosts()?, None),
        };
        let database = parts.database()?;
        let mut query = Query::of(&parts)?;
        let srv = match srv_host {
            Some(host) => Some(srv::read(&mut query, host)?),
            None => refuse_srv_options(&query).map(|()| None)?,
        };

        let credential = credential::read(&mut query, userinfo, database.as_deref())?;
        let topology = TopologyOptions::read(&mut query);
        check_topology(&topology, hosts.len(), srv.as_ref())?;
        let pool = options::pool(&mut query, &topology);
        pool.validate()?;
        let mut tls = TlsOptions::read(&mut query)?;
        if srv.is_some() {
            tls.tls.get_or_insert(true);
        }
        Ok(Self {
            hosts,
            srv,
            database,
            credential,
            app_name: query.text_of_at_most("appname", options::APP_NAME_MAX),
            pool,
            topology,
            monitoring: MonitoringOptions::read(&mut query),
            timeouts: TimeoutOptions::read(&mut query),
            tls,
            compression: CompressionOptions::read(&mut query),
            proxy: ProxyOptions::read(&mut query)?,
            retries: RetryOptions::read(&mut query),
            read_write: ReadWriteOptions::read(&mut query)?,
            warnings: query.finish(),
        })
    }

    /// [`pool`](Self::pool) as a driver applies it: without `waitQueueTimeoutMS` where `timeoutMS` is set,
    /// which covers check-outs.
    // CS-07
    #[must_use]
    pub fn pool_options(&self) -> PoolOptions {
        let mut options = self.pool.clone();
        options.wait_queue_timeout =
            options.wait_queue_timeout.filter(|_| self.timeouts.operation.is_none());
        options
    }

    /// Options that were ignored or are doubtful, in the order of the text.
    #[must_use]
    pub fn warnings(&self) -> &[UriWarning] {
        &self.warnings
    }
}

impl FromStr for ConnectionString {
    type Err = UriError;

    fn from_str(uri: &str) -> Result<Self, UriError> {
        Self::parse(uri)
    }
}

// OP-53, SV-09
fn refuse_srv_options(query: &Query) -> Result<(), UriError> {
    let options =
        [srv::SERVICE_NAME, srv::MAX_HOSTS, srv::ALLOWED_HOSTS_SUFFIX, srv::HOST_VALIDATOR];
    match options.into_iter().find(|name| query.count(name) > 0) {
        Some(option) => Err(UriError::SrvOnly { option }),
        None => Ok(()),
    }
}

// OP-24, OP-25
fn check_topology(
    topology: &TopologyOptions,
    hosts: usize,
    srv: Option<&SrvOptions>,
) -> Result<(), UriError> {
    let load_balanced = topology.load_balanced == Some(true);
    let direct = topology.direct_connection == Some(true);
    let first = srv::MAX_HOSTS;
    let has_max_hosts = srv.is_some_and(|srv| srv.limit() < usize::MAX);
    if has_max_hosts && topology.replica_set.is_some() {
        return Err(UriError::Conflict { first, second: "replicaSet" });
    }
    if has_max_hosts && load_balanced {
        return Err(UriError::Conflict { first, second: "loadBalanced=true" });
    }
    if srv.is_some() && direct {
        let (first, second) = ("mongodb+srv://", "directConnection=true");
        return Err(UriError::Conflict { first, second });
    }
    if load_balanced && topology.replica_set.is_some() {
        return Err(UriError::Conflict { first: "loadBalanced=true", second: "replicaSet" });
    }
    if load_balanced && direct {
        let second = "directConnection=true";
        return Err(UriError::Conflict { first: "loadBalanced=true", second });
    }
    if load_balanced && hosts > 1 {
        return Err(UriError::SeveralHosts { option: "loadBalanced", hosts });
    }
    if direct && hosts > 1 {
        return Err(UriError::SeveralHosts { option: "directConnection", hosts });
    }
    Ok(())
}
