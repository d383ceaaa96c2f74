//! The servers that a test is played against: an endpoint of its own for each, with TLS and a user,
//! gone with the test and its fail points with it.

use std::collections::BTreeMap;

use bson::{Document, RawDocumentBuf, doc};
use cenote_core::uri::ConnectionString;
use cenote_endpoint::{
    self as endpoint, AccessToken, Certificates, Endpoint, ListenOptions, LoadBalanced, ReplicaSet,
    ScramSettings, Settings, User,
};
use serde_json::Value;

use super::client::Server;
use super::client::received::Received;
use super::extended_json::document;
use super::format::{Data, Topology};
use crate::blocking::Connection;

/// What clients with MONGODB-OIDC authenticate by.
pub(super) const TOKEN: &str = "a token of the identity provider";

/// The deployment of one test.
pub(super) struct Venue {
    /// One server, or a load balancer with one behind it.
    one: Endpoint,
    /// A load balancer with two behind it.
    many: Option<Endpoint>,
    /// As clients see them.
    pub(super) server: Server,
}

impl Venue {
    /// Clients authenticate by password, or else by certificate: SCRAM takes its time on purpose, which
    /// is not what most files are about.
    ///
    /// # Errors
    ///
    /// Whatever keeps an endpoint from listening.
    pub(super) fn start(
        topology: Topology,
        by_password: bool,
        streams: bool,
    ) -> Result<Self, String> {
        let received = Received::default();
        let listen = |topology| listen(topology, by_password, streams, &received);
        let balanced = |services| endpoint::Topology::LoadBalanced(LoadBalanced { services });
        let (one, many) = match topology {
            Topology::Single => (endpoint::Topology::Standalone, None),
            Topology::ReplicaSet => {
                (endpoint::Topology::ReplicaSet(ReplicaSet::primary("set")), None)
            }
            Topology::Sharded | Topology::ShardedReplicaSet => (endpoint::Topology::Mongos, None),
            Topology::LoadBalanced => (balanced(1), Some(balanced(2))),
        };
        let (one, many) = (listen(one)?, many.map(listen).transpose()?);
        let server = Server { received, numbers_writes: topology != Topology::Single };
        Ok(Self { one, many, server })
    }

    /// The connection string of a client with these options.
    pub(super) fn uri(&self, several: bool, options: &BTreeMap<String, Value>) -> String {
        let endpoint = self.endpoint(several);
        let by_token = options.get("authMechanism").is_some_and(|name| name == "MONGODB-OIDC");
        let mut uri = if by_token { endpoint.uri_of(None) } else { endpoint.uri() };
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
        for endpoint in self.endpoints() {
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
        }
        Ok(())
    }

    /// Whether this is in the collections in the end.
    ///
    /// # Errors
    ///
    /// What is there instead.
    pub(super) fn judge(&self, outcome: &[Data]) -> Result<(), String> {
        let mut connection = connect(&self.one)?;
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

    fn endpoint(&self, several: bool) -> &Endpoint {
        self.many.as_ref().filter(|_| several).unwrap_or(&self.one)
    }

    fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        std::iter::once(&self.one).chain(&self.many)
    }
}

/// Outcomes are compared in this order.
fn id(document: &bson::Bson) -> Option<i64> {
    let id = document.as_document()?.get("_id")?;
    id.as_i64().or_else(|| id.as_i32().map(i64::from))
}

fn listen(
    topology: endpoint::Topology,
    by_password: bool,
    streams: bool,
    received: &Received,
) -> Result<Endpoint, String> {
    let scram =
        ScramSettings { sha1_iterations: 4096, sha256_iterations: 4096, ..Default::default() };
    let by_certificate = || User::x509(Certificates::CLIENT_SUBJECT);
    let users = vec![if by_password { User::new("app", "pencil") } else { by_certificate() }];
    let access_tokens = vec![AccessToken::new(TOKEN, "robot")];
    let mut settings =
        Settings { auth: true, users, access_tokens, scram, topology, ..Settings::default() };
    if !streams {
        settings.wire_versions = 0..=8; // That of 4.2.
    }
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls())
        .map_err(|error| format!("no endpoint to play against: {error}"))?;
    let received = received.clone();
    endpoint.with(|server, _now| server.observe_commands(move |it| received.tell(it)));
    Ok(endpoint)
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
