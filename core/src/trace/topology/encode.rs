//! Encoding the documents of a trace; `decode.rs` decodes them.

use crate::client::machine::SelectionId;
use crate::connect::{ConnectionDescription, Limits, Membership};
use crate::monitor::{RoundTrip, ServerDescription};
use crate::pool::Instant;
use crate::sdam::TopologyVersion;
use crate::topology::{ServerId, TopologyDescription};
use crate::trace::document::Document;

use super::action::ActionRecord;
use super::chunk::Start;
use super::names::Names;
use super::selection::{SelectionOutcome, SelectionRecord};

/// The state in which a trace begins, or begins again: what is known of the whole, and the numbers of the documents
/// that follow.
pub(super) fn state(document: &mut Document<'_>, start: &Start, names: &mut Names) {
    let Start { now, topology, steps, lost: _ } = start;
    let ServerId(last_id) = topology.last_id();
    let known: &TopologyDescription = topology.description();
    document.long("t", now.as_nanos() as i64).text("kind", known.kind.name());
    if let Some(set_name) = &known.set_name {
        document.text("set", set_name);
    }
    addresses(document, "hosts", topology.seeds().iter().map(|host| &**host), names);
    long_if(document, "maxSetVersion", known.max_set_version);
    if let Some(id) = known.max_election_id {
        document.object_id("maxElectionId", id);
    }
    if *steps > 0 {
        document.number("steps", *steps);
    }
    document
        .flag("closed", topology.is_closed())
        .number("lastId", last_id)
        .number("servers", known.servers().len() as u64)
        .number("excluded", known.excluded().len() as u64);
}

/// A request for a server that has waited.
pub(super) fn selection(
    document: &mut Document<'_>,
    selection: &SelectionRecord,
    names: &mut Names,
) {
    let SelectionRecord { id: SelectionId(id), waited, wanted, outcome } = selection;
    let waited = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
    document.number("select", *id).number("waited", waited).text("wanted", wanted);
    match outcome {
        SelectionOutcome::Chosen(servers) => {
            addresses(document, "chosen", servers.iter().map(|it| &**it), names);
        }
        SelectionOutcome::Failed(reason) => {
            document.text("failed", reason);
        }
    }
}

/// What is known of a server. `now` is the time of the document, and `cause` the number of its error.
pub(super) fn description(
    document: &mut Document<'_>,
    description: &ServerDescription,
    now: Instant,
    cause: Option<u64>,
    names: &mut Names,
) {
    let ServerDescription { hello, error: _, topology_version, is_load_balancer, .. } = description;
    let ServerDescription { round_trip, updated, .. } = description;
    document.flag("balancer", *is_load_balancer).number_if("e", cause);
    if let Some(hello) = hello {
        self::hello(document, hello, topology_version.as_ref(), names);
    }
    if let Some(version) = topology_version {
        self::version(document, "version", version);
    }
    times(document, *round_trip, *updated, now);
}

/// What changes with every check. What became known at another time than that of the document says so.
pub(super) fn times(
    document: &mut Document<'_>,
    round_trip: Option<RoundTrip>,
    updated: Option<Instant>,
    now: Instant,
) {
    let nanos =
        |duration: core::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    if let Some(RoundTrip { average, minimum }) = round_trip {
        document.number("rtt", nanos(average)).number("rttMin", nanos(minimum));
    }
    match updated {
        Some(updated) if updated == now => {}
        Some(updated) => {
            document.number("updated", updated.as_nanos());
        }
        None => {
            document.boolean("updated", false);
        }
    }
}

fn hello(
    document: &mut Document<'_>,
    hello: &ConnectionDescription,
    version: Option<&TopologyVersion>,
    names: &mut Names,
) {
    let ConnectionDescription {
        kind,
        hello_ok,
        min_wire_version,
        max_wire_version,
        limits,
        set_name,
        session_timeout_minutes,
        membership,
        last_write_ms,
        // Which connection of the monitor it was makes no difference, and none of them has a compressor or
        // authenticates.
        connection_id: _,
        compressor: _,
        mechanism: _,
        service_id,
        topology_version,
        reply: _,
    } = hello;
    document.text("kind", kind.name()).flag("helloOk", *hello_ok);
    document.long("minWire", i64::from(*min_wire_version));
    document.long("maxWire", i64::from(*max_wire_version));
    if let Some(set_name) = set_name {
        document.text("set", set_name);
    }
    if let Some(membership) = membership {
        document.document("member", |nested| self::membership(nested, membership, names));
    }
    if *limits != Limits::default() {
        document.document("limits", |nested| {
            nested
                .number("object", limits.max_bson_object_size.into())
                .number("message", limits.max_message_size.into())
                .number("batch", limits.max_write_batch_size.into());
        });
    }
    long_if(document, "sessions", *session_timeout_minutes);
    if let Some(milliseconds) = last_write_ms {
        document.date("wrote", *milliseconds);
    }
    document.service("service", *service_id);
    if topology_version.as_ref() != version {
        match topology_version {
            Some(version) => self::version(document, "helloVersion", version),
            None => {
                document.boolean("helloVersion", false);
            }
        }
    }
}

fn membership(document: &mut Document<'_>, membership: &Membership, names: &mut Names) {
    let Membership { hosts, passives, arbiters, me, primary, tags, set_version, election_id } =
        membership;
    for (key, listed) in [("hosts", hosts), ("passives", passives), ("arbiters", arbiters)] {
        if !listed.is_empty() {
            addresses(document, key, listed, names);
        }
    }
    for (key, address) in [("me", me), ("primary", primary)] {
        if let Some(address) = address {
            document.text(key, &names.name(address));
        }
    }
    if !tags.is_empty() {
        document.document("tags", |nested| {
            for (name, value) in tags {
                nested.text(name, value);
            }
        });
    }
    long_if(document, "setVersion", *set_version);
    if let Some(id) = election_id {
        document.object_id("electionId", *id);
    }
}

pub(super) fn addresses<'a>(
    document: &mut Document<'_>,
    key: &str,
    addresses: impl IntoIterator<Item = &'a crate::address::ServerAddress>,
    names: &mut Names,
) {
    document.array(key, |array| {
        for (place, address) in addresses.into_iter().enumerate() {
            array.text(&place.to_string(), &names.name(address));
        }
    });
}

pub(super) fn action(document: &mut Document<'_>, action: &ActionRecord, names: &mut Names) {
    let ActionRecord { name, server, id, change } = action;
    document.text("a", name);
    if let Some(server) = server {
        document.text("s", &names.name(server));
    }
    document.number_if("id", id.map(|ServerId(id)| id));
    if let Some([was, now]) = change {
        document.text("was", was).text("now", now);
    }
}

fn version(document: &mut Document<'_>, key: &str, version: &TopologyVersion) {
    let &TopologyVersion { process_id, counter } = version;
    document.document(key, |nested| {
        nested.object_id("processId", process_id).long("counter", counter);
    });
}

pub(super) fn long_if(document: &mut Document<'_>, key: &str, value: Option<i64>) {
    if let Some(value) = value {
        document.long(key, value);
    }
}
