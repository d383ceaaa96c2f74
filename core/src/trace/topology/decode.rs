//! Decoding the documents of a trace; `encode.rs` encodes them.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use bson::RawBsonRef;

use crate::address::ServerAddress;
use crate::client::machine::SelectionId;
use crate::connect::{ConnectionDescription, Limits, Membership, ServerKind};
use crate::error::{ConnectionError, OneLine};
use crate::monitor::{RoundTrip, ServerDescription};
use crate::pool::Instant;
use crate::sdam::TopologyVersion;
use crate::topology::{ServerId, TopologyKind};
use crate::trace::Cause;
use crate::trace::fields::{Fields, Found, absent, wrong};

use super::action::ActionRecord;
use super::names;
use super::selection::{SelectionOutcome, SelectionRecord};

/// What is wrong with a number of no cause.
pub(super) const UNTOLD: &str = "names a cause that was not told";

/// A server, with its error from `cause` by its number.
pub(super) fn description(
    fields: &Fields<'_>,
    now: Instant,
    cause: impl Fn(u64) -> Option<Cause>,
) -> Found<ServerDescription> {
    let error = match fields.number_if("e")? {
        None => None,
        Some(number) => {
            let cause = cause(number);
            Some(error(&cause.ok_or_else(|| wrong("e", UNTOLD))?))
        }
    };
    let topology_version = version_if(fields, "version")?;
    let hello = match fields.get("kind") {
        None => None,
        Some(_) => Some(Arc::new(hello(fields, topology_version)?)),
    };
    let (round_trip, updated) = times(fields, now)?;
    let is_load_balancer = fields.flag("balancer")?;
    Ok(ServerDescription { hello, error, topology_version, round_trip, updated, is_load_balancer })
}

/// The round trip, and when that became known.
pub(super) fn times(
    fields: &Fields<'_>,
    now: Instant,
) -> Found<(Option<RoundTrip>, Option<Instant>)> {
    let round_trip = match fields.number_if("rtt")? {
        None => None,
        Some(average) => {
            let minimum = fields.number_if("rttMin")?.unwrap_or_default();
            let [average, minimum] = [average, minimum].map(Duration::from_nanos);
            Some(RoundTrip { average, minimum })
        }
    };
    let updated = match fields.get("updated") {
        None => Some(now),
        Some(RawBsonRef::Boolean(false)) => None,
        Some(_) => fields.time_if("updated")?,
    };
    Ok((round_trip, updated))
}

fn hello(fields: &Fields<'_>, version: Option<TopologyVersion>) -> Found<ConnectionDescription> {
    let kind = fields.choice_if("kind", &ServerKind::ALL, ServerKind::name)?;
    let wire = |key| {
        let version = fields.signed_if(key)?.unwrap_or_default();
        i32::try_from(version).map_err(|_| wrong(key, "is too large"))
    };
    let membership = match fields.document_if("member")? {
        None => None,
        Some(member) => Some(Arc::new(membership(&member)?)),
    };
    let topology_version = match fields.get("helloVersion") {
        None => version,
        Some(RawBsonRef::Boolean(false)) => None,
        Some(_) => version_if(fields, "helloVersion")?,
    };
    Ok(ConnectionDescription {
        kind: kind.ok_or_else(|| absent("kind"))?,
        hello_ok: fields.flag("helloOk")?,
        min_wire_version: wire("minWire")?,
        max_wire_version: wire("maxWire")?,
        limits: limits(fields)?,
        set_name: fields.text_if("set")?.map(ToOwned::to_owned),
        session_timeout_minutes: fields.signed_if("sessions")?,
        membership,
        last_write_ms: fields.date_if("wrote")?,
        connection_id: None,
        service_id: fields.service_if("service")?,
        topology_version,
        compressor: None,
        mechanism: None,
        reply: None,
    })
}

fn limits(fields: &Fields<'_>) -> Found<Limits> {
    let Some(limits) = fields.document_if("limits")? else { return Ok(Limits::default()) };
    let limit = |key| limits.small_if(key)?.ok_or_else(|| absent(key));
    Ok(Limits {
        max_bson_object_size: limit("object")?,
        max_message_size: limit("message")?,
        max_write_batch_size: limit("batch")?,
    })
}

fn membership(fields: &Fields<'_>) -> Found<Membership> {
    let listed = |key| addresses_if(fields, key).map(Option::unwrap_or_default);
    Ok(Membership {
        hosts: listed("hosts")?,
        passives: listed("passives")?,
        arbiters: listed("arbiters")?,
        me: address_if(fields, "me")?,
        primary: address_if(fields, "primary")?,
        tags: tags(fields)?,
        set_version: fields.signed_if("setVersion")?,
        election_id: fields.object_id_if("electionId")?,
    })
}

fn tags(fields: &Fields<'_>) -> Found<BTreeMap<String, String>> {
    let Some(tags) = fields.document_if("tags")? else { return Ok(BTreeMap::new()) };
    tags.texts("tags")
        .map(|tag| tag.map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect()
}

fn version_if(fields: &Fields<'_>, key: &str) -> Found<Option<TopologyVersion>> {
    let Some(version) = fields.document_if(key)? else { return Ok(None) };
    let process_id = version.object_id_if("processId")?.ok_or_else(|| absent("processId"))?;
    let counter = version.signed_if("counter")?.ok_or_else(|| absent("counter"))?;
    Ok(Some(TopologyVersion { process_id, counter }))
}

pub(super) fn address_if(fields: &Fields<'_>, key: &str) -> Found<Option<ServerAddress>> {
    fields.text_if(key)?.map(|name| names::address(key, name)).transpose()
}

/// The address that a document is about.
pub(super) fn address(fields: &Fields<'_>, key: &str) -> Found<Arc<ServerAddress>> {
    address_if(fields, key)?.map(Arc::new).ok_or_else(|| absent(key))
}

pub(super) fn addresses_if(fields: &Fields<'_>, key: &str) -> Found<Option<Vec<ServerAddress>>> {
    let Some(array) = fields.array_if(key)? else { return Ok(None) };
    let address = |element: bson::error::Result<RawBsonRef<'_>>| match element {
        Ok(RawBsonRef::String(name)) => names::address(key, name),
        _ => Err(wrong(key, "holds something that is not a text")),
    };
    array.into_iter().map(address).collect::<Found<_>>().map(Some)
}

pub(super) fn topology_kind(fields: &Fields<'_>, key: &str) -> Found<TopologyKind> {
    let kind = fields.choice_if(key, &TopologyKind::ALL, TopologyKind::name)?;
    kind.ok_or_else(|| absent(key))
}

pub(super) fn action(fields: &Fields<'_>) -> Found<ActionRecord> {
    let spelt = |key, choices: &[&'static str]| fields.choice_if(key, choices, |name| name);
    let name = spelt("a", &ActionRecord::NAMES)?.ok_or_else(|| absent("a"))?;
    let server = address_if(fields, "s")?.map(Arc::new);
    let kinds: Vec<_> = ActionRecord::kinds().collect();
    let id = fields.number_if("id")?.map(ServerId);
    let change = spelt("was", &kinds)?.zip(spelt("now", &kinds)?).map(|(was, now)| [was, now]);
    Ok(ActionRecord { name, server, id, change })
}

/// A request for a server that has waited.
pub(super) fn selection(fields: &Fields<'_>) -> Found<SelectionRecord> {
    let text = |key| {
        let text = fields.text_if(key)?.ok_or_else(|| absent(key))?;
        Found::Ok(OneLine::text(text).to_string())
    };
    let outcome = match addresses_if(fields, "chosen")? {
        Some(servers) => SelectionOutcome::Chosen(servers.into_iter().map(Arc::new).collect()),
        None => SelectionOutcome::Failed(text("failed")?),
    };
    Ok(SelectionRecord {
        id: SelectionId(fields.number("select")?),
        waited: Duration::from_nanos(fields.number("waited")?),
        wanted: text("wanted")?,
        outcome,
    })
}

/// The error of a server, of which the trace has the stage, the kind and a text.
pub(super) fn error(cause: &Cause) -> ConnectionError {
    let summary = cause.summary;
    let kind = summary.kind.map_or("unknown", |kind| kind.as_str());
    let text = cause.text.as_deref().unwrap_or(kind);
    ConnectionError::recorded(summary, text)
}
