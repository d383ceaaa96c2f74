//! Encoding the documents of a trace; `decode.rs` decodes them.

use core::time::Duration;

use crate::pool::{
    ConnId, ConnectionCheckpoint, ConnectionStateCheckpoint, Demand, Health, Input, Instant,
    Maintenance, OptionValue, Pacing, PoolCheckpoint, PoolOptions, Purpose, RequestCheckpoint,
    ServiceCheckpoint, Status,
};

use super::action::ActionRecord;
use super::cause::{Cause, stage_name};
use super::document::Document;
use super::traced::Traced;

/// An input, as `out`, `in` and so on. Causes and places are given by their numbers.
pub(super) fn input(
    document: &mut Document<'_>,
    input: &Input<Traced>,
    cause: Option<u64>,
    place: Option<u64>,
) {
    match input {
        Input::CheckOutRequested { id, waiter: _, deadline, purpose } => {
            document.number("out", id.0).number_if("d", deadline.map(Instant::as_nanos));
            self::purpose(document, *purpose);
            document.number_if("at", place);
        }
        Input::CheckOutCancelled { id } => {
            document.number("cancel", id.0);
        }
        Input::CheckedIn { id, conn: (), health } => {
            connection(document, "in", *id);
            match health {
                Health::Healthy | Health::Errored(_) => {}
                Health::PendingResponse { request_id: id, cause: _ } => request_id(document, *id),
            }
        }
        Input::Repurposed { id, purpose } => {
            connection(document, "use", *id);
            self::purpose(document, *purpose);
        }
        Input::Handshaken { id, service, clears_at_hello } => {
            connection(document, "hello", *id);
            document.service("v", *service).number_if("seen", *clears_at_hello);
        }
        Input::EstablishSucceeded { id, conn: () } => connection(document, "up", *id),
        Input::EstablishFailed { id, cause: _, overloaded } => {
            connection(document, "fail", *id);
            document.flag("overloaded", *overloaded);
        }
        Input::IdleClosedByPeer { id, cause: _ } => connection(document, "gone", *id),
        Input::DrainSucceeded { id, conn: () } => connection(document, "drained", *id),
        Input::DrainFailed { id, cause: _ } => connection(document, "drainFail", *id),
        Input::DrainProgress { id } => connection(document, "drainRead", *id),
        Input::RetireConnections => {
            document.boolean("retire", true);
        }
        Input::ReleaseIdle => {
            document.boolean("release", true);
        }
        Input::Ready => {
            document.boolean("ready", true);
        }
        Input::Close => {
            document.boolean("close", true);
        }
        Input::Timer => {
            document.boolean("timer", true);
        }
        Input::ResetAfterFork => {
            document.boolean("fork", true);
        }
        Input::Clear { cause: _, interrupt, service } => {
            document.boolean("clear", *interrupt).service("v", *service);
        }
        Input::SetOptions { options } => {
            document.document("set", |nested| self::options(nested, options));
        }
    }
    document.number_if("e", cause);
}

/// The cause in an input, if there is one.
pub(super) const fn cause_of(input: &Input<Traced>) -> Option<&Cause> {
    match input {
        Input::CheckedIn {
            health: Health::Errored(cause) | Health::PendingResponse { cause, .. },
            ..
        }
        | Input::EstablishFailed { cause, .. }
        | Input::DrainFailed { cause, .. }
        | Input::IdleClosedByPeer { cause, .. }
        | Input::Clear { cause, .. } => Some(cause),
        Input::CheckOutRequested { .. }
        | Input::CheckOutCancelled { .. }
        | Input::CheckedIn { health: Health::Healthy, .. }
        | Input::Repurposed { .. }
        | Input::Handshaken { .. }
        | Input::EstablishSucceeded { .. }
        | Input::DrainSucceeded { .. }
        | Input::DrainProgress { .. }
        | Input::RetireConnections
        | Input::ReleaseIdle
        | Input::Ready
        | Input::Close
        | Input::Timer
        | Input::ResetAfterFork
        | Input::SetOptions { .. } => None,
    }
}

/// A cause, with its number.
pub(super) fn cause(document: &mut Document<'_>, number: u64, cause: &Cause, text: Option<&str>) {
    let summary = cause.summary;
    document.number("cause", number);
    if let Some(stage) = summary.stage {
        document.text("stage", stage_name(stage));
    }
    if let Some(kind) = summary.kind {
        document.text("kind", kind.as_str());
    }
    if summary.labels.names().next().is_some() {
        document.array("labels", |labels| {
            for (key, name) in ["0", "1", "2"].into_iter().zip(summary.labels.names()) {
                labels.text(key, name);
            }
        });
    }
    if let Some(text) = text {
        document.text("text", text);
    }
}

pub(super) fn action(document: &mut Document<'_>, action: &ActionRecord) {
    document.text("a", action.name.as_str());
    if let Some(id) = action.connection {
        connection(document, "c", id);
    }
    document.number_if("n", action.nanos);
    if let Some(detail) = action.detail {
        document.text("x", detail);
    }
}

/// Only what is set.
pub(super) fn options(document: &mut Document<'_>, options: &PoolOptions) {
    for (spec, value) in options.clone().each() {
        let key = spec.trace_key;
        match value {
            OptionValue::Count(value) => {
                document.number_if(key, value.map(u64::from));
            }
            OptionValue::Number(value) => {
                document.number_if(key, *value);
            }
            OptionValue::Time(value) => duration(document, key, *value),
            OptionValue::Flag(Some(value)) => {
                document.boolean(key, *value);
            }
            OptionValue::Maintenance(Some(Maintenance::Never)) => {
                document.boolean(spec.name, false);
            }
            OptionValue::Maintenance(Some(Maintenance::PauseAfterFailure(pause))) => {
                duration(document, key, Some(*pause));
            }
            OptionValue::ReuseOrder(Some(order)) => {
                document.text(key, order.as_str());
            }
            OptionValue::Flag(None)
            | OptionValue::Maintenance(None)
            | OptionValue::ReuseOrder(None) => {}
        }
    }
}

pub(super) const fn status_name(status: Status) -> &'static str {
    match status {
        Status::Paused => "paused",
        Status::Ready => "ready",
        Status::Closed => "closed",
    }
}

/// Nanoseconds; for what is longer than they can say, seconds and nanoseconds.
fn duration(document: &mut Document<'_>, key: &str, duration: Option<Duration>) {
    let Some(duration) = duration else { return };
    match i64::try_from(duration.as_nanos()) {
        Ok(nanos) => {
            document.number(key, nanos as u64);
        }
        Err(_) => {
            document.document(key, |nested| {
                nested.number("s", duration.as_secs()).number("n", duration.subsec_nanos().into());
            });
        }
    }
}

/// Nothing, where nothing is remembered.
fn pacing(document: &mut Document<'_>, pacing: &Pacing) {
    if *pacing == Pacing::default() {
        return;
    }
    let &Pacing { establishment, use_time, gained, not_before, overloads } = pacing;
    document.document("pacing", |nested| {
        nested
            .number_if("establishment", establishment)
            .number_if("useTime", use_time)
            .number_if("gained", gained.map(Instant::as_nanos))
            .number_if("notBefore", not_before.map(Instant::as_nanos))
            .number_if("overloads", nonzero(overloads.into()));
    });
}

fn demand(document: &mut Document<'_>, demand: Option<Demand>) {
    let Some(Demand { since, sum, predicted }) = demand else { return };
    document.document("demand", |nested| {
        nested
            .number("since", since.as_nanos())
            .number("sum", sum)
            .number("predicted", predicted.into());
    });
}

/// The counts of a state; connections, requests and the rest follow in documents of their own.
pub(super) fn state(document: &mut Document<'_>, checkpoint: &PoolCheckpoint) {
    pacing(document, &checkpoint.pacing);
    demand(document, checkpoint.demand);
    document
        .text("status", status_name(checkpoint.status))
        .number("generation", checkpoint.generation)
        .flag("cleared", checkpoint.was_cleared)
        .number_if("populateAfter", checkpoint.populate_after.map(Instant::as_nanos))
        .number_if("standingSince", checkpoint.standing_since.map(Instant::as_nanos))
        .number("inherited", checkpoint.inherited)
        .number_if("reported", nonzero(checkpoint.reported))
        .number_if("lastRequest", checkpoint.last_waiter.map(|id| id.0))
        .number("lastConnection", checkpoint.last_connection)
        .number("clockRegressions", checkpoint.clock_regressions)
        .number_if("serviceClears", nonzero(checkpoint.service_clears))
        .number("services", checkpoint.services.len() as u64)
        .number("connections", checkpoint.connections.len() as u64)
        .number("freeSlots", checkpoint.free_slots.len() as u64)
        .number("requests", checkpoint.requests.len() as u64);
}

pub(super) fn service(document: &mut Document<'_>, service: &ServiceCheckpoint) {
    let &ServiceCheckpoint { id, generation, was_cleared, clears } = service;
    document.service("service", Some(id)).number("g", generation).flag("cleared", was_cleared);
    document.number_if("clears", nonzero(clears));
}

/// Absent for 0.
fn nonzero(number: u64) -> Option<u64> {
    Some(number).filter(|&number| number != 0)
}

pub(super) fn connection_checkpoint(
    document: &mut Document<'_>,
    checkpoint: &ConnectionCheckpoint,
) {
    let &ConnectionCheckpoint { id, generation, service, created, expires, expiry_met, state } =
        checkpoint;
    connection(document, "connection", id);
    document
        .number("g", generation)
        .service("v", service)
        .number("made", created.as_nanos())
        .number_if("ends", expires.map(Instant::as_nanos))
        .flag("met", expiry_met);
    match state {
        ConnectionStateCheckpoint::Pending { handshaken } => {
            document.boolean("pending", handshaken);
        }
        ConnectionStateCheckpoint::Available { since } => {
            document.number("idle", since.as_nanos());
        }
        ConnectionStateCheckpoint::InUse { since, purpose, interrupted, reported } => {
            document.number("used", since.as_nanos());
            self::purpose(document, purpose);
            document.flag("interrupted", interrupted).flag("reported", reported);
        }
        ConnectionStateCheckpoint::PendingResponse { since, request_id: id, last_read } => {
            document.number("idle", since.as_nanos()).number("read", last_read.as_nanos());
            request_id(document, id);
        }
        ConnectionStateCheckpoint::Draining { since, announced, request_id: id, last_read } => {
            document
                .number("drains", since.as_nanos())
                .number_if("announced", announced.map(Instant::as_nanos))
                .number("read", last_read.as_nanos());
            request_id(document, id);
        }
    }
}

pub(super) fn request(document: &mut Document<'_>, checkpoint: &RequestCheckpoint) {
    let &RequestCheckpoint { id, started, deadline, deadline_is_callers, purpose, owns } =
        checkpoint;
    document
        .number("request", id.0)
        .number("since", started.as_nanos())
        .number_if("d", deadline.map(Instant::as_nanos))
        .flag("callers", deadline_is_callers);
    self::purpose(document, purpose);
    if let Some(id) = owns {
        connection(document, "owns", id);
    }
}

/// Its number under this key, and its slot.
fn connection(document: &mut Document<'_>, key: &str, id: ConnId) {
    document.number(key, id.number()).number("s", u64::from(id.slot()));
}

/// Without its sign.
fn request_id(document: &mut Document<'_>, request_id: i32) {
    document.number("r", u64::from(request_id as u32));
}

/// Absent for the usual one.
fn purpose(document: &mut Document<'_>, purpose: Purpose) {
    match purpose {
        Purpose::Other => {}
        Purpose::Cursor => {
            document.text("p", "cursor");
        }
        Purpose::Transaction => {
            document.text("p", "transaction");
        }
    }
}
