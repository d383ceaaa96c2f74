//! Steps as JSON objects, one per line.

use cenote_core::topology::{Input, ServerId};
use cenote_core::trace::topology::{
    ActionRecord, SelectionOutcome, SelectionRecord, Step, StepInput,
};
use serde_json::{Value, json};

use super::step_reader::View;
use crate::clock::Clock;
use crate::json::{present, seconds};

/// A step with its actions and the topology afterwards.
pub fn step(view: &View<'_>, clock: &Clock) -> Value {
    let step = view.step;
    let actions = view.actions.iter().map(|it| action(&ActionRecord::of(it)));
    present(json!({
        "step": step.number,
        "clientStep": step.client_step,
        "byte": step.byte,
        "at": seconds(step.at),
        "time": clock.iso(step.at),
        "input": input(step),
        "lostBefore": step.lost_before,
        "actions": actions.collect::<Vec<_>>(),
        "topology": topology(view),
    }))
}

fn input(step: &Step) -> Value {
    let input = match &step.input {
        StepInput::Topology(input) => input,
        StepInput::Selection(selection) => return selected(selection),
    };
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

fn selected(selection: &SelectionRecord) -> Value {
    let (chosen, failed) = match &selection.outcome {
        SelectionOutcome::Chosen(servers) => {
            (Some(servers.iter().map(ToString::to_string).collect::<Vec<_>>()), None)
        }
        SelectionOutcome::Failed(reason) => (None, Some(reason)),
    };
    present(json!({
        "name": "Selection",
        "id": selection.id.0,
        "wanted": selection.wanted,
        "waited": selection.waited.as_secs_f64(),
        "chosen": chosen,
        "failed": failed,
    }))
}

fn action(action: &ActionRecord) -> Value {
    present(json!({
        "name": action.name,
        "server": action.server.as_ref().map(ToString::to_string),
        "id": action.id.map(|ServerId(id)| id),
        "was": action.change.map(|[was, _]| was),
        "now": action.change.map(|[_, now]| now),
    }))
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
