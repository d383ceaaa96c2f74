//! What the machines know, in the words of the files, and how both are compared.

use std::fmt::Write as _;

use cenote_core::address::ServerAddress;
use cenote_core::monitor::ServerDescription;
use cenote_core::sdam::TopologyVersion;
use cenote_core::topology::{Event, TopologyDescription};
use serde_json::{Map, Value, json};

/// Why something is not as a file expects.
pub(super) enum Difference {
    /// The file expects something of which the runner does not know what it is.
    Unknown(String),
    /// It is something else.
    Other(String),
}

/// Compares by the keys of what is expected: `null` is nothing, numbers are equal whatever their type.
pub(super) fn compare(
    place: &str,
    expected: &Value,
    seen: Option<Value>,
) -> Result<(), Difference> {
    let Some(seen) = seen else {
        return Err(Difference::Unknown(format!("{place}: nothing is known of this key")));
    };
    let differ = || {
        let text = format!("{place}: expected {expected}, seen {seen}");
        Err(Difference::Other(text))
    };
    match (expected, &seen) {
        // A server or topology that is not there is a difference of keys.
        (Value::Object(expected), Value::Object(seen)) if is_open(place) => {
            if place == "servers" && !expected.keys().eq(seen.keys()) {
                return differ();
            }
            for (key, expected) in expected {
                compare(&below(place, key), expected, seen.get(key).cloned())?;
            }
            Ok(())
        }
        (Value::String(expected), Value::String(seen)) if place.ends_with("/error") => {
            if seen.contains(&**expected) { Ok(()) } else { differ() }
        }
        (Value::Number(expected), Value::Number(seen)) => {
            if expected.as_f64() == seen.as_f64() {
                Ok(())
            } else {
                differ()
            }
        }
        (expected, seen) => {
            if expected == seen {
                Ok(())
            } else {
                differ()
            }
        }
    }
}

/// `servers`, each of them, and its pool.
fn is_open(place: &str) -> bool {
    let depth = place.split('/').count();
    place.starts_with("servers") && (depth < 3 || place.ends_with("/pool"))
}

fn below(place: &str, key: &str) -> String {
    format!("{place}/{key}")
}

/// One key of the outcome; `None` for one that has no meaning.
pub(super) fn topology(topology: &TopologyDescription, key: &str) -> Option<Value> {
    Some(match key {
        "topologyType" => json!(topology.kind.name()),
        "setName" => json!(topology.set_name),
        "logicalSessionTimeoutMinutes" => json!(topology.session_timeout_minutes()),
        "maxSetVersion" => json!(topology.max_set_version),
        "maxElectionId" => json!(topology.max_election_id.map(oid)),
        "compatible" => json!(topology.check_wire_versions().is_ok()),
        _ => return None,
    })
}

/// All that a file may expect of a server.
pub(super) fn server(description: &ServerDescription, generation: u64) -> Value {
    let (said, hello) = (description.membership(), description.hello.as_deref());
    json!({
        "type": kind(description),
        "setName": description.set_name(),
        "setVersion": said.and_then(|said| said.set_version),
        "electionId": said.and_then(|said| said.election_id).map(oid),
        "topologyVersion": description.topology_version.as_ref().map(topology_version),
        "logicalSessionTimeoutMinutes": hello.and_then(|hello| hello.session_timeout_minutes),
        "minWireVersion": hello.map(|hello| hello.min_wire_version),
        "maxWireVersion": hello.map(|hello| hello.max_wire_version),
        "error": description.error.as_ref().map(ToString::to_string),
        "pool": { "generation": generation },
    })
}

/// As files write events; all topologies are number 42.
pub(super) fn event(event: &Event) -> Value {
    let (name, mut fields) = match event {
        Event::TopologyOpening => ("topology_opening_event", json!({})),
        Event::TopologyClosed => ("topology_closed_event", json!({})),
        Event::TopologyDescriptionChanged { previous, new } => (
            "topology_description_changed_event",
            json!({ "previousDescription": described(previous), "newDescription": described(new) }),
        ),
        Event::ServerOpening { address } => {
            ("server_opening_event", json!({ "address": address.to_string() }))
        }
        Event::ServerClosed { address } => {
            ("server_closed_event", json!({ "address": address.to_string() }))
        }
        Event::ServerDescriptionChanged { address, previous, new } => (
            "server_description_changed_event",
            json!({
                "address": address.to_string(),
                "previousDescription": described_server(address, previous),
                "newDescription": described_server(address, new),
            }),
        ),
        other => return json!(other.name()),
    };
    fields["topologyId"] = json!("42");
    json!({ name: fields })
}

fn described(topology: &TopologyDescription) -> Value {
    let servers: Vec<_> =
        topology.servers().map(|(address, server)| described_server(address, server)).collect();
    let mut described = json!({ "topologyType": topology.kind.name(), "servers": servers });
    if let Some(name) = &topology.set_name {
        described["setName"] = json!(name);
    }
    described
}

fn described_server(address: &ServerAddress, server: &ServerDescription) -> Value {
    let said = server.membership().cloned().unwrap_or_default();
    let texts = |addresses: &[ServerAddress]| -> Vec<_> {
        addresses.iter().map(ToString::to_string).collect()
    };
    let mut described = Map::from_iter([
        ("address".to_owned(), json!(address.to_string())),
        ("arbiters".to_owned(), json!(texts(&said.arbiters))),
        ("hosts".to_owned(), json!(texts(&said.hosts))),
        ("passives".to_owned(), json!(texts(&said.passives))),
        ("type".to_owned(), json!(kind(server))),
    ]);
    if let Some(primary) = &said.primary {
        described.insert("primary".to_owned(), json!(primary.to_string()));
    }
    if let Some(name) = server.set_name() {
        described.insert("setName".to_owned(), json!(name));
    }
    Value::Object(described)
}

fn kind(server: &ServerDescription) -> String {
    server.kind().map_or("Unknown".to_owned(), |kind| kind.to_string())
}

fn topology_version(version: &TopologyVersion) -> Value {
    let counter = version.counter.to_string();
    json!({ "processId": oid(version.process_id), "counter": { "$numberLong": counter } })
}

fn oid(bytes: [u8; 12]) -> Value {
    let mut hex = String::new();
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    json!({ "$oid": hex })
}
