//! Steps as JSON objects, one per line.

use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::pool::{Action, ConnId, Event, Health, Input, Instant, Purpose, Snapshot};
use cenote_core::trace::{ActionRecord, Cause, StageRecord, TraceHeader, Traced};
use serde_json::{Value, json};

use super::clock::Clock;
use super::filter::connection_of;
use super::step_reader::View;
use cenote_check::event_json;

/// A step with its actions and counts.
pub fn step(view: &View<'_>, address: &ServerAddress, clock: &Clock) -> Value {
    let step = view.step;
    let actions = view.actions.iter().map(|action| self::action(action, step.at, address));
    present(json!({
        "step": step.number,
        "byte": step.byte,
        "at": seconds(step.at),
        "time": clock.iso(step.at),
        "input": input(&step.input),
        "place": step.place.as_deref(),
        "follows": step.follows,
        "refused": step.refused.then_some(true),
        "lostBefore": step.lost_before,
        "actions": actions.collect::<Vec<_>>(),
        "state": snapshot(&view.pool.snapshot()),
    }))
}

/// A stage that an establishment has come to, or in which a connection failed.
pub fn stage(record: &StageRecord, clock: &Clock) -> Value {
    let StageRecord { at, connection, stage, failed, .. } = record;
    present(json!({
        "stage": stage.to_string(),
        "connectionId": connection,
        "failed": failed,
        "at": seconds(*at),
        "time": clock.iso(*at),
    }))
}

/// Without what there is not.
pub(crate) fn present(mut object: Value) -> Value {
    if let Value::Object(keys) = &mut object {
        keys.retain(|_, value| !value.is_null());
    }
    object
}

/// The events of a step as lines of `--events`.
pub fn events<'a>(
    actions: &'a [Action<Traced>],
    at: Instant,
    address: &'a ServerAddress,
) -> impl Iterator<Item = String> + 'a {
    actions.iter().filter_map(move |action| {
        let Action::EmitEvent(event) = action else { return None };
        let line = event_json::line(event, address, since_start(at));
        Some(serde_json::to_string(&line).expect("plain data"))
    })
}

/// The address of events. A hashed or omitted one is replaced.
pub fn address(header: &TraceHeader) -> ServerAddress {
    let told = header.address.as_deref().unwrap_or_default().trim_start_matches('#');
    let told = if told.is_empty() { "not-told" } else { told };
    told.parse().unwrap_or_else(|_| ServerAddress::tcp("not-told", 27017).expect("an address"))
}

fn event(event: &Event<Cause>, at: Instant, address: &ServerAddress) -> Value {
    serde_json::to_value(event_json::line(event, address, since_start(at))).expect("plain data")
}

fn since_start(at: Instant) -> Duration {
    at.saturating_since(Instant::ORIGIN)
}

fn input(input: &Input<Traced>) -> Value {
    let mut told = match input {
        Input::CheckOutRequested { id, deadline, purpose, .. } => json!({
            "request": id.0,
            "deadline": deadline.map(seconds),
            "purpose": purpose_name(*purpose),
        }),
        Input::CheckOutCancelled { id } => json!({ "request": id.0 }),
        Input::CheckedIn { health: Health::Healthy, .. }
        | Input::EstablishSucceeded { .. }
        | Input::DrainSucceeded { .. }
        | Input::DrainProgress { .. }
        | Input::Ready
        | Input::Close
        | Input::Timer
        | Input::RetireConnections
        | Input::ReleaseIdle
        | Input::ResetAfterFork => json!({}),
        Input::CheckedIn { health: Health::PendingResponse { request_id, cause }, .. } => {
            json!({ "pendingRequestId": request_id, "error": cause.to_string() })
        }
        Input::CheckedIn { health: Health::Errored(cause), .. }
        | Input::DrainFailed { cause, .. }
        | Input::IdleClosedByPeer { cause, .. } => json!({ "error": cause.to_string() }),
        Input::Repurposed { purpose, .. } => json!({ "purpose": purpose_name(*purpose) }),
        Input::Handshaken { service, clears_at_hello, .. } => json!({
            "serviceId": service.map(|id| id.to_string()),
            "clearsAtHello": clears_at_hello,
        }),
        Input::EstablishFailed { cause, overloaded, .. } => {
            json!({ "error": cause.to_string(), "overloaded": overloaded })
        }
        Input::Clear { cause, interrupt, service } => json!({
            "error": cause.to_string(),
            "interrupt": interrupt,
            "serviceId": service.map(|id| id.to_string()),
        }),
        Input::SetOptions { options } => {
            json!({ "options": options.to_string() })
        }
    };
    told["type"] = input.name().into();
    told["connectionId"] = connection_of(input).into();
    present(told)
}

fn action(action: &Action<Traced>, at: Instant, address: &ServerAddress) -> Value {
    if let Action::EmitEvent(event) = action {
        return self::event(event, at, address);
    }
    let Some(record) = ActionRecord::of(action) else { return Value::Null };
    let request = if let Action::Deliver { waiter, .. } = action { Some(waiter.0) } else { None };
    present(json!({
        "action": record.name.as_str(),
        "connectionId": record.connection.map(ConnId::number),
        "request": request,
        "detail": record.detail,
    }))
}

/// The counts, under the names of the text line.
pub fn snapshot(snapshot: &Snapshot) -> Value {
    json!({
        "status": snapshot.status.to_string(),
        "generation": snapshot.generation,
        "total": snapshot.total,
        "idle": snapshot.available,
        "pendingResponse": snapshot.pending_response,
        "inUse": snapshot.in_use,
        "pending": snapshot.pending,
        "waiting": snapshot.waiting,
        "maxPoolSize": snapshot.max_pool_size,
        "minPoolSize": snapshot.min_pool_size,
        "maxConnecting": snapshot.max_connecting,
    })
}

fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Cursor => "cursor",
        Purpose::Transaction => "transaction",
        Purpose::Other | _ => "other",
    }
}

/// Seconds since the origin.
pub fn seconds(at: Instant) -> f64 {
    since_start(at).as_secs_f64()
}
