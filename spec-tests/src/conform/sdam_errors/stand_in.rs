//! As little of a topology as the test files need: one replica set, all members known from the
//! start, each either the primary or Unknown. Discovery belongs to drivers, not to this project.

use std::collections::BTreeMap;
use std::time::Duration;

use cenote_core::error::{CommandError, ConnectionError, Stage};
use cenote_core::sdam::{Context, PoolVerdict, ServerVerdict, TopologyVersion, Verdict, verdict};

use super::format::{
    ApplicationError, ErrorType, Expected, ExpectedPool, ExpectedServer, Hello, ServerType,
    TopologyType, When,
};

/// The file asks for more than the stand-in is, and for what.
#[derive(Debug)]
pub(super) struct Unsupported(pub(super) String);

#[derive(Debug)]
pub(super) struct Topology {
    set_name: String,
    servers: BTreeMap<String, Server>,
}

#[derive(Debug, Default)]
struct Server {
    description: Description,
    generation: u64,
}

/// The default is Unknown: type and everything else.
#[derive(Debug, Default)]
struct Description {
    is_primary: bool,
    session_timeout_minutes: Option<i64>,
    topology_version: Option<TopologyVersion>,
}

impl Topology {
    /// Takes `mongodb://HOST[,HOST…]/?replicaSet=NAME` and nothing else.
    pub(super) fn from_uri(uri: &str) -> Result<Self, Unsupported> {
        let parts =
            uri.strip_prefix("mongodb://").and_then(|rest| rest.split_once("/?replicaSet="));
        let Some((hosts, set_name)) = parts.filter(|(_, name)| !name.contains('&')) else {
            return Err(Unsupported(format!("the URI {uri} is not one of a replica set alone")));
        };
        let servers = hosts.split(',').map(|host| (with_port(host), Server::default())).collect();
        Ok(Self { set_name: set_name.to_owned(), servers })
    }

    /// A successful check by the monitor of `address`.
    pub(super) fn apply_hello(&mut self, address: &str, hello: &Hello) -> Result<(), Unsupported> {
        self.expect_primary(hello)?;
        let server = self.server(address)?;
        let is_stale = server.description.topology_version.is_some_and(|current| {
            current.makes_description_stale(hello.topology_version.as_ref())
        });
        if !is_stale {
            server.description = Description {
                is_primary: true,
                session_timeout_minutes: hello.logical_session_timeout_minutes,
                topology_version: hello.topology_version,
            };
        }
        Ok(())
    }

    /// A failure that an application met on a connection of the pool.
    pub(super) fn apply_error(&mut self, error: &ApplicationError) -> Result<(), Unsupported> {
        let server = self.server(&error.address)?;
        let Some(failure) = connection_error(error)? else {
            return Ok(()); // the reply holds no error
        };
        let context = Context {
            load_balanced: false,
            current_generation: error.generation.is_none_or(|own| own == server.generation),
            topology_version: server.description.topology_version,
        };
        server.obey(verdict(&context, &failure));
        Ok(())
    }

    /// What the topology looks like now, in the words of the test files.
    pub(super) fn outcome(&self) -> Expected {
        let has_primary = self.servers.values().any(|server| server.description.is_primary);
        Expected {
            servers: self
                .servers
                .iter()
                .map(|(address, server)| (address.clone(), server.outcome(&self.set_name)))
                .collect(),
            topology_type: if has_primary {
                TopologyType::ReplicaSetWithPrimary
            } else {
                TopologyType::ReplicaSetNoPrimary
            },
            set_name: Some(self.set_name.clone()),
            logical_session_timeout_minutes: self.session_timeout_minutes(),
        }
    }

    /// The shortest one of the servers that hold data; none as soon as one of them has none.
    fn session_timeout_minutes(&self) -> Option<i64> {
        let known = self.servers.values().filter(|server| server.description.is_primary);
        let timeouts: Option<Vec<i64>> =
            known.map(|server| server.description.session_timeout_minutes).collect();
        timeouts?.into_iter().min()
    }

    fn expect_primary(&self, hello: &Hello) -> Result<(), Unsupported> {
        let is_member = hello.set_name.as_ref() == Some(&self.set_name);
        if hello.ok != 1.0 || !hello.is_writable_primary || !is_member {
            return Err(Unsupported("a reply that is not of the set's primary".to_owned()));
        }
        if !hello.hosts.iter().eq(self.servers.keys()) {
            return Err(Unsupported("a reply with other members than the URI".to_owned()));
        }
        Ok(())
    }

    fn server(&mut self, address: &str) -> Result<&mut Server, Unsupported> {
        self.servers
            .get_mut(address)
            .ok_or_else(|| Unsupported(format!("{address} is not in the URI")))
    }
}

impl Server {
    fn obey(&mut self, verdict: Verdict) {
        match verdict.server {
            ServerVerdict::Keep => {}
            ServerVerdict::Unknown { topology_version } => {
                self.description = Description { topology_version, ..Description::default() };
            }
        }
        match verdict.pool {
            PoolVerdict::Keep | PoolVerdict::ClearService => {}
            PoolVerdict::Clear { interrupt: _ } => self.generation += 1,
        }
    }

    fn outcome(&self, set_name: &str) -> ExpectedServer {
        let Description { is_primary, session_timeout_minutes: _, topology_version } =
            self.description;
        ExpectedServer {
            r#type: if is_primary { ServerType::RsPrimary } else { ServerType::Unknown },
            set_name: is_primary.then(|| set_name.to_owned()),
            topology_version,
            pool: ExpectedPool { generation: self.generation },
        }
    }
}

/// The error as a shell would report it; `None` when the reply is no error. Labels follow from
/// the stage, as they do in production.
fn connection_error(error: &ApplicationError) -> Result<Option<ConnectionError>, Unsupported> {
    if error.wire_version_max < WIRE_VERSION_4_2 {
        return Err(Unsupported("a server older than 4.2".to_owned()));
    }
    let stage = match error.when {
        When::BeforeHandshakeCompletes => Stage::Hello,
        When::AfterHandshakeCompletes => Stage::Operation,
    };
    match (error.r#type, &error.response) {
        (ErrorType::Command, Some(reply)) => {
            let refusal = CommandError::from_reply(reply);
            Ok(refusal.map(|refusal| ConnectionError::command(stage, refusal)))
        }
        (ErrorType::Network, None) => {
            Ok(Some(ConnectionError::network(stage, "closed by the peer")))
        }
        (ErrorType::Timeout, None) => Ok(Some(ConnectionError::timeout(stage, ANY_TIMEOUT))),
        (ErrorType::Command, None) => Err(Unsupported("a command error without response".into())),
        (ErrorType::Network | ErrorType::Timeout, Some(_)) => {
            Err(Unsupported("a network error with a response".into()))
        }
    }
}

fn with_port(host: &str) -> String {
    if host.contains(':') { host.to_owned() } else { format!("{host}:27017") }
}

/// Older servers close their connections when they step down, and clear pools more often.
const WIRE_VERSION_4_2: i32 = 8;

/// How long the wait took makes no difference to what follows.
const ANY_TIMEOUT: Duration = Duration::from_secs(1);
