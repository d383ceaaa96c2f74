//! `cenote endpoint`

use std::convert::Infallible;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use cenote_core::wire::CompressorId;
use cenote_endpoint::{
    Certificates, Endpoint, ListenAddress, ListenOptions, LoadBalanced, ReplicaSet, Role, Settings,
    StartError, TlsOptions, Topology, User,
};
use clap::ValueEnum;
use tokio::runtime;

use super::Failure;
use super::input::first_line;
use super::output::tell;
use super::signals::Signals;

const COMPRESSORS: &str =
    if CompressorId::Zstd.is_built() { "snappy,zlib,zstd" } else { "snappy,zlib" };

const SET_NAME: &str = "cenote";

/// Arguments of `cenote endpoint`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Port on 127.0.0.1; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Listen on this UNIX domain socket instead; its name must end in .sock
    #[arg(long, value_name = "PATH", conflicts_with = "port", value_parser = socket)]
    socket: Option<PathBuf>,
    /// Use TLS, with certificates of a throw-away authority
    #[arg(long)]
    tls: bool,
    /// Reject clients without a certificate of that authority
    #[arg(long, requires = "tls")]
    require_client_certificate: bool,
    /// Require authentication, and add this user for SCRAM-SHA-256 and SCRAM-SHA-1
    #[arg(long, value_name = "USER:PASSWORD", value_parser = Login::read)]
    auth: Option<Login>,
    /// As --auth, with the first line of this file, or of standard input for `-`: other users can
    /// see arguments
    #[arg(long, value_name = "FILE", conflicts_with = "auth")]
    auth_file: Option<PathBuf>,
    /// Require authentication, and accept the client certificate (MONGODB-X509)
    #[arg(long, requires = "tls")]
    x509: bool,
    /// Compressors to offer: snappy, zlib, zstd (feature zstd); an empty list offers none
    #[arg(
        long,
        value_delimiter = ',',
        num_args = 0..,
        default_value = COMPRESSORS,
        value_parser = compressor
    )]
    compressors: Vec<CompressorId>,
    /// Kind of deployment
    #[arg(long, value_enum, default_value_t = Kind::Standalone)]
    topology: Kind,
    /// Members of the replica set, each on a free port: a primary and secondaries
    #[arg(long, value_name = "N", default_value = "1", conflicts_with_all = ["port", "socket"])]
    members: NonZeroUsize,
    /// Act as N routers behind a load balancer on one port [default without N: 1]
    #[arg(long, value_name = "SERVICES", num_args = 0..=1, default_missing_value = "1")]
    #[arg(conflicts_with = "topology")]
    load_balanced: Option<NonZeroUsize>,
    /// Seed for nonces, salts and ids; without it they come from the operating system
    #[arg(long)]
    seed: Option<u64>,
}

/// A user, or something that is none: it may hold a password all the same, so that it is not for
/// the parser of arguments to refuse, which would repeat it.
#[derive(Clone, Debug)]
struct Login(Option<User>);

/// The kind of deployment.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// A standalone server
    Standalone,
    /// The replica set `cenote`, of one member unless --members says otherwise
    ReplicaSet,
    /// A router of a sharded cluster
    Mongos,
}

/// Serves until SIGINT (Ctrl-C), SIGTERM or SIGHUP.
///
/// The first line of standard output is a connection string that any client can use as it is.
/// What else can be done with the endpoint is told on standard error.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Before the first line tells a script that it may send a signal.
        let mut signals = Signals::expect()?;
        let endpoints = start(arguments)?;
        let mut out = io::stdout().lock();
        let told =
            writeln!(out, "{}", of_all(&endpoints, endpoints[0].uri())).and_then(|()| out.flush());
        told.map_err(|error| format!("cannot tell the connection string: {error}"))?;
        offers(arguments, &endpoints).into_iter().for_each(tell);
        signals.come().await;
        Ok(true)
    })
}

/// One server, or all members of a replica set, the primary first.
fn start(arguments: &Arguments) -> Result<Vec<Endpoint>, Failure> {
    let settings = settings(arguments)?;
    let more = arguments.members.get() - 1;
    if more > 0 && !matches!(settings.topology, Topology::ReplicaSet(_)) {
        return Err("--members is about replica sets: add --topology replica-set".into());
    }
    let secondary = ReplicaSet { role: Role::Secondary, ..ReplicaSet::primary(SET_NAME) };
    let secondary = Settings { topology: Topology::ReplicaSet(secondary), ..settings.clone() };
    let first = Endpoint::start(settings, listen_options(arguments));
    let mut endpoints = vec![first.map_err(|error| with_cause(&error))?];
    for _ in 0..more {
        let next = endpoints[0].start_beside(secondary.clone(), listen_options(arguments));
        endpoints.push(next.map_err(|error| with_cause(&error))?);
    }
    if more > 0 {
        Endpoint::join(&endpoints.iter().collect::<Vec<_>>());
    }
    Ok(endpoints)
}

/// A connection string of the first with the hosts of all.
fn of_all(endpoints: &[Endpoint], uri: String) -> String {
    if endpoints.len() == 1 {
        return uri;
    }
    let hosts: Vec<_> = endpoints.iter().map(|endpoint| endpoint.address().to_string()).collect();
    uri.replacen(&hosts[0], &hosts.join(","), 1)
}

fn settings(arguments: &Arguments) -> Result<Settings, Failure> {
    let mut users = Vec::new();
    if let Some(Login(user)) = login(arguments)? {
        let expected = "--auth and --auth-file want USER:PASSWORD, neither of them empty";
        users.push(user.ok_or(expected)?);
    }
    if arguments.x509 {
        users.push(User::x509(Certificates::CLIENT_SUBJECT));
    }
    Ok(Settings {
        seed: arguments.seed,
        topology: match (arguments.load_balanced, arguments.topology) {
            (Some(services), _) => {
                Topology::LoadBalanced(LoadBalanced { services: services.get() })
            }
            (None, Kind::Standalone) => Topology::Standalone,
            (None, Kind::ReplicaSet) => Topology::ReplicaSet(ReplicaSet::primary(SET_NAME)),
            (None, Kind::Mongos) => Topology::Mongos,
        },
        auth: !users.is_empty(),
        users,
        compressors: arguments.compressors.clone(),
        ..Settings::default()
    })
}

/// In a connection string, what does not end so is the name of a host.
fn socket(path: &str) -> Result<PathBuf, String> {
    let is_socket = path.ends_with(".sock");
    is_socket.then(|| path.into()).ok_or_else(|| "its name has to end in .sock".to_owned())
}

fn login(arguments: &Arguments) -> Result<Option<Login>, Failure> {
    let Some(path) = &arguments.auth_file else { return Ok(arguments.auth.clone()) };
    let line = first_line(path).map_err(|error| format!("--auth-file: {error}"))?;
    Ok(Some(Login::of(&line)))
}

fn listen_options(arguments: &Arguments) -> ListenOptions {
    let place = match &arguments.socket {
        Some(path) => ListenAddress::Unix { path: path.clone() },
        None => ListenAddress::Tcp { port: arguments.port },
    };
    let requires_client_certificate = arguments.require_client_certificate;
    let tls = TlsOptions { requires_client_certificate, ..TlsOptions::default() };
    ListenOptions { place, tls: arguments.tls.then_some(tls), ..ListenOptions::default() }
}

/// What is on offer, a line each.
fn offers(arguments: &Arguments, endpoints: &[Endpoint]) -> Vec<String> {
    let places = endpoints.iter().map(|endpoint| format!("listening on {}", endpoint.place()));
    let mut lines: Vec<_> = places.collect();
    let endpoint = &endpoints[0];
    if let Some(certificates) = endpoint.certificates() {
        lines.push(format!("tlsCAFile: {}", certificates.ca_file().display()));
        lines.push(format!("tlsCertificateKeyFile: {}", certificates.client_file().display()));
    }
    if arguments.x509 && (arguments.auth.is_some() || arguments.auth_file.is_some()) {
        let user = User::x509(Certificates::CLIENT_SUBJECT);
        let uri = of_all(endpoints, endpoint.uri_of(Some(&user)));
        lines.push(format!("MONGODB-X509: {uri}"));
    }
    let names: Vec<_> = arguments.compressors.iter().map(|it| it.name()).collect();
    lines.push(format!("compressors: {}", names.join(",")));
    lines.push("Ctrl-C ends it".to_owned());
    lines
}

impl Login {
    #[expect(clippy::unnecessary_wraps, reason = "the parser of arguments wants a result")]
    fn read(text: &str) -> Result<Self, Infallible> {
        Ok(Self::of(text))
    }

    fn of(text: &str) -> Self {
        let parts = text.split_once(':');
        let parts = parts.filter(|(name, password)| !name.is_empty() && !password.is_empty());
        Self(parts.map(|(name, password)| User::new(name, password)))
    }
}

fn compressor(name: &str) -> Result<CompressorId, String> {
    let compressor = CompressorId::from_name(name)
        .filter(|compressor| *compressor != CompressorId::Noop)
        .ok_or_else(|| "expected snappy, zlib or zstd".to_owned())?;
    if compressor.is_built() {
        Ok(compressor)
    } else {
        Err(format!("not built in: build cenote with the feature {compressor}"))
    }
}

/// On one line, whatever was the cause of the cause.
pub(super) fn with_cause(error: &StartError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
