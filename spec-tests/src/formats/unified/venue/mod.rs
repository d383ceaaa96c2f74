//! The servers that a test is played against: endpoints of its own for each, with TLS and a user,
//! gone with the test and its fail points with it.

mod replica_set;

use std::collections::BTreeMap;
use std::slice;

use bson::{Document, RawDocument, RawDocumentBuf, doc};
use cenote_core::uri::ConnectionString;
use cenote_endpoint::{
    self as endpoint, AccessToken, Certificates, Endpoint, ListenOptions, LoadBalanced, ReplicaSet,
    ScramSettings, Settings, User,
};
use serde_json::Value;

use self::replica_set::Members;
use super::client::Server;
use super::client::received::Received;
use super::extended_json::document;
use super::format::{Data, Topology};
use crate::blocking::Connection;

/// What clients with MONGODB-OIDC authenticate by.
pub(super) const TOKEN: &str = "a token of the identity provider";

/// The deployment of one test.
pub(super) struct Venue {
    servers: Servers,
    /// As clients see them.
    pub(super) server: Server,
}

enum Servers {
    One(Endpoint),
    /// Of a cluster; most clients use the first alone.
    Routers([Endpoint; 2]),
    Members(Members),
    /// Load balancers with one server behind them, and with two.
    Balancers([Endpoint; 2]),
}

/// What a deployment has to be like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// Clients authenticate by password, or else by certificate: SCRAM takes its time on purpose, which
    /// is not what most files are about.
    pub(super) by_password: bool,
    /// A replica set has three members, because the file looks at them, or else one.
    pub(super) members: bool,
}

impl Venue {
    /// # Errors
    ///
    /// Whatever keeps an endpoint from listening.
    pub(super) fn start(topology: Topology, needs: Needs) -> Result<Self, String> {
        let received = Received::default();
        let start = |beside: Option<&Endpoint>, topology| {
            let (settings, options) = (settings(topology, needs), ListenOptions::with_tls());
            let started = match beside {
                Some(first) => first.start_beside(settings, options),
                None => Endpoint::start(settings, options),
            };
            started.map_err(|error| format!("no endpoint to play against: {error}"))
        };
        let two = |one, other| {
            let first = start(None, one)?;
            let second = start(Some(&first), other)?;
            Ok::<_, String>([first, second])
        };
        let balanced = |services| endpoint::Topology::LoadBalanced(LoadBalanced { services });
        let servers = match topology {
            Topology::Single => Servers::One(start(None, endpoint::Topology::Standalone)?),
            Topology::ReplicaSet if needs.members => Servers::Members(Members::start(start)?),
            Topology::ReplicaSet => {
                let set = ReplicaSet::primary(SET);
                Servers::One(start(None, endpoint::Topology::ReplicaSet(set))?)
            }
            Topology::Sharded | Topology::ShardedReplicaSet => {
                Servers::Routers(two(endpoint::Topology::Mongos, endpoint::Topology::Mongos)?)
            }
            Topology::LoadBalanced => Servers::Balancers(two(balanced(1), balanced(2))?),
        };
        let server = Server { received, numbers_writes: topology != Topology::Single };
        let venue = Self { servers, server };
        venue.observe();
        Ok(venue)
    }

    fn observe(&self) {
        for (index, endpoint) in self.endpoints().iter().enumerate() {
            let received = self.server.received.clone();
            let mut elections = self.servers.elections(index);
            endpoint.with(|server, _now| {
                server.observe_commands(move |command| {
                    received.tell(command);
                    elections(command);
                });
            });
        }
    }

    /// The connection string of a client with these options, which uses `several` routers or one.
    pub(super) fn uri(&self, several: bool, options: &BTreeMap<String, Value>) -> String {
        let by_token = options.get("authMechanism").is_some_and(|name| name == "MONGODB-OIDC");
        let uri = |endpoint: &Endpoint| {
            if by_token { endpoint.uri_of(None) } else { endpoint.uri() }
        };
        let of_all = |endpoints: &[Endpoint]| {
            let hosts: Vec<_> = endpoints.iter().map(|it| it.address().to_string()).collect();
            let first = hosts.first().cloned().unwrap_or_default();
            uri(&endpoints[0]).replacen(&first, &hosts.join(","), 1)
        };
        let mut uri = match &self.servers {
            Servers::Members(members) => of_all(members.all()),
            Servers::Routers(routers) if several => of_all(routers),
            Servers::One(_) | Servers::Routers(_) | Servers::Balancers(_) => {
                uri(self.endpoint(several))
            }
        };
        // Where a driver has its own way to get tokens, which is a callback here.
        let is_placeholder = |value: &Value| value.get("$$placeholder").is_some();
        for (name, value) in options.iter().filter(|(_, value)| !is_placeholder(value)) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            uri.push_str(&format!("&{name}={value}"));
        }
        uri
    }

    /// Orders a failure, from nowhere in particular.
    ///
    /// # Errors
    ///
    /// A command that the server does not understand.
    pub(super) fn fail(&self, several: bool, command: &Document) -> Result<(), String> {
        let command = RawDocumentBuf::try_from(command).map_err(|error| error.to_string())?;
        self.endpoint(several)
            .with(|server, _now| server.set_fail_point(&command))
            .map_err(|error| error.to_string())
    }

    /// What is there before the test begins.
    ///
    /// # Errors
    ///
    /// Whatever the server says to it.
    pub(super) fn fill(&self, data: &[Data]) -> Result<(), String> {
        if let Servers::Members(members) = &self.servers {
            fill(members.primary(), data)?;
            members.catch_up();
            return Ok(());
        }
        self.endpoints().iter().try_for_each(|endpoint| fill(endpoint, data))
    }

    /// Whether this is in the collections in the end.
    ///
    /// # Errors
    ///
    /// What is there instead.
    pub(super) fn judge(&self, outcome: &[Data]) -> Result<(), String> {
        let mut connection = connect(self.endpoint(false))?;
        for Data { database_name, collection_name, documents } in outcome {
            let find = doc! { "find": collection_name };
            let reply = run(&mut connection, database_name, &find)?;
            let seen = reply.get_document("cursor").and_then(|it| it.get_array("firstBatch"));
            let mut seen = seen.map_err(|error| error.to_string())?.clone();
            seen.sort_by_key(id);
            let expected: Result<Vec<_>, _> = documents.iter().map(document).collect();
            let expected: Vec<bson::Bson> = expected?.into_iter().map(Into::into).collect();
            if seen != expected {
                return Err(format!("outcome: expected {expected:?}, saw {seen:?}"));
            }
        }
        Ok(())
    }

    /// The one that takes writes, or a router.
    fn endpoint(&self, several: bool) -> &Endpoint {
        match &self.servers {
            Servers::One(endpoint) => endpoint,
            Servers::Routers([first, _]) => first,
            Servers::Members(members) => members.primary(),
            Servers::Balancers([one, many]) => {
                if several {
                    many
                } else {
                    one
                }
            }
        }
    }

    fn endpoints(&self) -> &[Endpoint] {
        match &self.servers {
            Servers::One(endpoint) => slice::from_ref(endpoint),
            Servers::Routers(both) | Servers::Balancers(both) => both,
            Servers::Members(members) => members.all(),
        }
    }
}

impl Servers {
    /// What has to see the commands of this server.
    fn elections(&self, index: usize) -> Box<dyn FnMut(&RawDocument) + Send + Sync> {
        match self {
            Self::Members(members) => Box::new(members.observer(index)),
            Self::One(_) | Self::Routers(_) | Self::Balancers(_) => Box::new(|_| {}),
        }
    }
}

/// The name of the replica set.
const SET: &str = "set";

fn settings(topology: endpoint::Topology, needs: Needs) -> Settings {
    let scram =
        ScramSettings { sha1_iterations: 4096, sha256_iterations: 4096, ..Default::default() };
    let by_certificate = || User::x509(Certificates::CLIENT_SUBJECT);
    let user = if needs.by_password { User::new("app", "pencil") } else { by_certificate() };
    let access_tokens = vec![AccessToken::new(TOKEN, "robot")];
    let (auth, users) = (true, vec![user]);
    Settings { auth, users, access_tokens, scram, topology, ..Settings::default() }
}

fn fill(endpoint: &Endpoint, data: &[Data]) -> Result<(), String> {
    let mut connection = connect(endpoint)?;
    for Data { database_name, collection_name, documents } in data {
        let create = doc! { "create": collection_name };
        run(&mut connection, database_name, &create)?;
        let documents: Result<Vec<_>, _> = documents.iter().map(document).collect();
        let documents = documents?;
        if !documents.is_empty() {
            let insert = doc! { "insert": collection_name, "documents": documents };
            run(&mut connection, database_name, &insert)?;
        }
    }
    Ok(())
}

/// Outcomes are compared in this order.
fn id(document: &bson::Bson) -> Option<i64> {
    let id = document.as_document()?.get("_id")?;
    id.as_i64().or_else(|| id.as_i32().map(i64::from))
}

fn connect(endpoint: &Endpoint) -> Result<Connection, String> {
    let uri = ConnectionString::parse(&endpoint.uri()).map_err(|error| error.to_string())?;
    Connection::open(&uri, &endpoint.address()).map_err(|error| error.to_string())
}

fn run(
    connection: &mut Connection,
    database: &str,
    command: &Document,
) -> Result<Document, String> {
    let raw = RawDocumentBuf::try_from(command).map_err(|error| error.to_string())?;
    let reply = connection.command(database, &raw).map_err(|error| error.to_string())?;
    Document::try_from(&*reply).map_err(|error| error.to_string())
}
