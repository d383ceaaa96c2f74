//! Our client on every runtime, and what it knows of a deployment in the words of `pymongo_topology.py`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::connect::{ConnectionDescription, Membership, ServerKind};
use cenote_core::monitor::ServerDescription;
use cenote_core::topology::TopologyDescription;
use cenote_shell::client::{BuiltClient, Client, ClientBuilder};
use cenote_smol::Smol;
use cenote_tokio::Tokio;
use serde_json::{Map, Value, json};

/// Instead of a minute, before SRV records are read again.
const SRV_INTERVAL: Duration = Duration::from_millis(500);

/// For all tests.
static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime")
});

pub(crate) struct Ours {
    /// The runtime.
    pub(crate) name: &'static str,
    look: Box<dyn Fn() -> Arc<TopologyDescription>>,
}

impl Ours {
    /// One on each runtime.
    pub(crate) fn connect(uri: &str, names: Option<SocketAddr>) -> [Self; 3] {
        let tokio = RUNTIME.block_on(resolved::<Client<Tokio>>(uri, names));
        let smol = smol::block_on(resolved::<Client<Smol>>(uri, names));
        let mio = builder::<cenote_mio::Client>(uri, names).build().expect("a client");
        [
            Self { name: "tokio", look: Box::new(move || tokio.topology()) },
            Self { name: "mio", look: Box::new(move || mio.topology()) },
            Self { name: "smol", look: Box::new(move || smol.topology()) },
        ]
    }

    /// What it knows now.
    pub(crate) fn topology(&self) -> Value {
        shown(&(self.look)())
    }
}

fn builder<C: BuiltClient>(uri: &str, names: Option<SocketAddr>) -> ClientBuilder<C> {
    let builder = ClientBuilder::<C>::from_uri(uri).expect("a connection string");
    builder.name_servers(names).shortest_srv_interval(SRV_INTERVAL)
}

async fn resolved<C: BuiltClient>(uri: &str, names: Option<SocketAddr>) -> C {
    builder(uri, names).resolve().await.expect("hosts").build().expect("a client")
}

fn shown(topology: &TopologyDescription) -> Value {
    let servers: Map<_, _> = topology
        .servers()
        .map(|(address, description)| (address.to_string(), server(description)))
        .collect();
    json!({
        "type": topology.kind.name(),
        "setName": topology.set_name,
        "maxSetVersion": topology.max_set_version,
        "maxElectionId": topology.max_election_id.map(hexadecimal),
        "logicalSessionTimeoutMinutes": topology.session_timeout_minutes(),
        "isCompatible": topology.check_wire_versions().is_ok(),
        "servers": servers,
    })
}

fn server(description: &ServerDescription) -> Value {
    match &description.hello {
        Some(hello) => replied(hello),
        None => json!({ "type": description.kind().map_or("Unknown", ServerKind::name) }),
    }
}

fn replied(hello: &ConnectionDescription) -> Value {
    let none = Membership::default();
    let said = hello.membership.as_deref().unwrap_or(&none);
    let mut members: Vec<_> = said.members().map(ToString::to_string).collect();
    members.sort();
    json!({
        "type": hello.kind.name(),
        "setName": hello.set_name,
        "me": said.me.as_ref().map(ServerAddress::to_string),
        "primary": said.primary.as_ref().map(ServerAddress::to_string),
        "members": members,
        "tags": said.tags,
        "setVersion": said.set_version,
        "electionId": said.election_id.map(hexadecimal),
        "wireVersions": [hello.min_wire_version, hello.max_wire_version],
        "maxBsonObjectSize": hello.limits.max_bson_object_size,
        "maxMessageSizeBytes": hello.limits.max_message_size,
        "maxWriteBatchSize": hello.limits.max_write_batch_size,
        "logicalSessionTimeoutMinutes": hello.session_timeout_minutes,
        "topologyVersion": hello.topology_version.map(|version| {
            json!([hexadecimal(version.process_id), version.counter])
        }),
    })
}

fn hexadecimal(bytes: [u8; 12]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into memory does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
