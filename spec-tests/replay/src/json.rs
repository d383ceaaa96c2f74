//! Steps as JSON objects, one per line.

use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::pool::{Action, Event, Health, Input, Instant, Purpose, Snapshot};
use cenote_core::trace::{ActionRecord, Cause, TraceHeader, Traced};
use serde_json::{Map, Value, json};

use super::clock::Clock;
use super::step_reader::View;
use cenote_check::event_json;

/// A step with its actions and counts.
pub fn step(view: &View<'_>, address: &ServerAddress, clock: &Clock) -> Value {
    let step = view.step;
    let mut object = Map::new();
    object.insert("step".into(), step.number.into());
    object.insert("byte".into(), step.byte.into());
    object.insert("at".into(), seconds(step.at).into());
    if let Some(time) = clock.iso(step.at) {
        object.insert("time".into(), time.into());
    }
    object.insert("input".into(), input(&step.input));
    if let Some(place) = &step.place {
        object.insert("place".into(), (**place).into());
    }
    if step.refused {
        object.insert("refused".into(), true.into());
    }
    if let Some(lost) = step.lost_before {
        object.insert("lostBefore".into(), lost.into());
    }
    let actions: Vec<_> =
        view.actions.iter().map(|action| self::action(action, step.at, address)).collect();
    object.insert("actions".into(), actions.into());
    object.insert("state".into(), snapshot(&view.pool.snapshot()));
    Value::Object(object)
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
    let mut object = Map::new();
    let mut set = |key: &str, value: Value| drop(object.insert(key.to_owned(), value));
    set("type", input.name().into());
    match input {
        Input::CheckOutRequested { id, deadline, purpose, .. } => {
            set("request", id.0.into());
            deadline.iter().for_each(|at| set("deadline", seconds(*at).into()));
            set("purpose", purpose_name(*purpose).into());
        }
        Input::CheckOutCancelled { id } => set("request", id.0.into()),
        Input::CheckedIn { id, health, .. } => {
            set("connectionId", id.number().into());
            match health {
                Health::Healthy => {}
                Health::Errored(cause) => set("error", cause.to_string().into()),
                Health::PendingResponse { request_id, cause } => {
                    set("pendingRequestId", (*request_id).into());
                    set("error", cause.to_string().into());
                }
            }
        }
        Input::Repurposed { id, purpose } => {
            set("connectionId", id.number().into());
            set("purpose", purpose_name(*purpose).into());
        }
        Input::Handshaken { id, service, clears_at_hello } => {
            set("connectionId", id.number().into());
            service.iter().for_each(|id| set("serviceId", id.to_string().into()));
            clears_at_hello.iter().for_each(|&clears| set("clearsAtHello", clears.into()));
        }
        Input::EstablishSucceeded { id, .. }
        | Input::DrainSucceeded { id, .. }
        | Input::DrainProgress { id } => set("connectionId", id.number().into()),
        Input::EstablishFailed { id, cause, overloaded } => {
            set("connectionId", id.number().into());
            set("error", cause.to_string().into());
            set("overloaded", (*overloaded).into());
        }
        Input::DrainFailed { id, cause } | Input::IdleClosedByPeer { id, cause } => {
            set("connectionId", id.number().into());
            set("error", cause.to_string().into());
        }
        Input::Clear { cause, interrupt, service } => {
            set("error", cause.to_string().into());
            set("interrupt", (*interrupt).into());
            service.iter().for_each(|id| set("serviceId", id.to_string().into()));
        }
        Input::SetOptions { options } => {
            set("options", super::brief::Brief(options).to_string().into());
        }
        Input::Ready
        | Input::Close
        | Input::Timer
        | Input::RetireConnections
        | Input::ReleaseIdle
        | Input::ResetAfterFork => {}
    }
    Value::Object(object)
}

fn action(action: &Action<Traced>, at: Instant, address: &ServerAddress) -> Value {
    if let Action::EmitEvent(event) = action {
        return self::event(event, at, address);
    }
    let Some(record) = ActionRecord::of(action) else { return Value::Null };
    let mut object = Map::new();
    object.insert("action".into(), record.name.as_str().into());
    if let Some(id) = record.connection {
        object.insert("connectionId".into(), id.number().into());
    }
    if let Action::Deliver { waiter, .. } = action {
        object.insert("request".into(), waiter.0.into());
    }
    if let Some(detail) = record.detail {
        object.insert("detail".into(), detail.into());
    }
    Value::Object(object)
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
