//! Steps as JSON objects, one per line.

use cenote_core::topology::{Input, ServerId};
use cenote_core::trace::topology::{ActionRecord, Step};
use serde_json::{Map, Value, json};

use super::step_reader::View;
use crate::clock::Clock;
use crate::json::seconds;

/// A step with its actions and the topology afterwards.
pub fn step(view: &View<'_>, clock: &Clock) -> Value {
    let step = view.step;
    let mut object = Map::new();
    object.insert("step".into(), step.number.into());
    object.insert("byte".into(), step.byte.into());
    object.insert("at".into(), seconds(step.at).into());
    if let Some(time) = clock.iso(step.at) {
        object.insert("time".into(), time.into());
    }
    object.insert("input".into(), input(step));
    if let Some(lost) = step.lost_before {
        object.insert("lostBefore".into(), lost.into());
    }
    let actions = view.actions.iter().map(|it| action(&ActionRecord::of(it)));
    object.insert("actions".into(), actions.collect());
    object.insert("topology".into(), topology(view));
    Value::Object(object)
}

fn input(step: &Step) -> Value {
    let input = &step.input;
    match input {
        Input::Described { id: ServerId(id), description } => json!({
            "name": input.name(),
            "id": id,
            "server": step.server.as_ref().map(ToString::to_string),
            "kind": description.kind().map_or("Unknown", |kind| kind.name()),
            "setName": description.set_name(),
            "roundTripMS": description.round_trip.map(|it| it.average.as_nanos() as f64 / 1e6),
            "tags": description.membership().map(|it| &it.tags).filter(|it| !it.is_empty()),
            "error": description.error.as_ref().map(ToString::to_string),
        }),
        Input::Hosts { hosts } => {
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            json!({ "name": input.name(), "hosts": hosts })
        }
        Input::Close => json!({ "name": input.name() }),
    }
}

fn action(action: &ActionRecord) -> Value {
    let mut object = Map::new();
    object.insert("name".into(), action.name.into());
    if let Some(server) = &action.server {
        object.insert("server".into(), server.to_string().into());
    }
    if let Some(ServerId(id)) = action.id {
        object.insert("id".into(), id.into());
    }
    if let Some([was, now]) = action.change {
        object.insert("was".into(), was.into());
        object.insert("now".into(), now.into());
    }
    Value::Object(object)
}

fn topology(view: &View<'_>) -> Value {
    let servers = view.topology.servers().map(|(address, server)| {
        let kind = server.kind().map_or("Unknown", |kind| kind.name());
        json!({ "address": address.to_string(), "kind": kind })
    });
    json!({
        "kind": view.topology.kind.name(),
        "setName": view.topology.set_name,
        "servers": servers.collect::<Vec<_>>(),
    })
}
