//! Answers to questions about the state of a pool.

use std::collections::BTreeMap;

use cenote_core::pool::{
    ConnectionInfo, ConnectionState, PoolState, Purpose, WaiterId, WaiterInfo, WaitsFor,
};

use super::Story;
use super::command::Question;
use super::show::{service, snapshot, span, time};

type Names = BTreeMap<String, WaiterId>;

pub(super) fn answer(question: Question, pool: &PoolState<Story>, names: &Names) -> Vec<String> {
    match question {
        Question::State => vec![snapshot(&pool.snapshot())],
        Question::Connections => {
            let lines = pool.connections().map(|connection| {
                let since = pool.now().saturating_since(connection.since);
                format!("{} for {}", show_connection(&connection, names), span(since))
            });
            or_none(lines.collect(), "no connections")
        }
        Question::Waiters => {
            or_none(pool.waiters().map(|waiter| show_waiter(&waiter, names)).collect(), "nobody")
        }
        Question::Services => {
            let lines = pool.services().map(|(id, generation, connections)| {
                format!("{} gen {generation}, {connections} connections", service(id))
            });
            or_none(lines.collect(), "no services")
        }
        Question::Deadline => vec![match pool.next_deadline() {
            Some(deadline) => format!("{}: {}", time(deadline.at), deadline.reason),
            None => "no deadline".to_owned(),
        }],
    }
}

fn or_none(lines: Vec<String>, none: &str) -> Vec<String> {
    if lines.is_empty() { vec![none.to_owned()] } else { lines }
}

fn show_connection(connection: &ConnectionInfo, names: &Names) -> String {
    let state = match connection.state {
        ConnectionState::Pending { owner, handshaken } => {
            let owner = owner.map(|id| format!(" of {}", name(id, names))).unwrap_or_default();
            let handshaken = if handshaken { ", hello done," } else { "" };
            format!("pending{owner}{handshaken}")
        }
        ConnectionState::Available => "available".to_owned(),
        ConnectionState::PendingResponse { request_id } => {
            format!("available, pending the response to {request_id},")
        }
        ConnectionState::Draining { request_id, owner } => {
            let owner = owner.map(|id| format!(" for {}", name(id, names))).unwrap_or_default();
            format!("draining the response to {request_id}{owner}")
        }
        ConnectionState::InUse { purpose, interrupted } => {
            let interrupted = if interrupted { ", interrupted," } else { "" };
            format!("in use{}{interrupted}", show_purpose(purpose))
        }
    };
    let stale = if connection.stale { "stale, " } else { "" };
    let service = connection.service.map(|id| format!("{}, ", service(id))).unwrap_or_default();
    format!("{} {service}{stale}{state}", connection.id.number())
}

const fn show_purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Cursor => " by a cursor",
        Purpose::Transaction => " by a transaction",
        Purpose::Other | _ => "",
    }
}

fn show_waiter(waiter: &WaiterInfo, names: &Names) -> String {
    let waits_for = match waiter.waits_for {
        WaitsFor::Establishment(id) => format!("connection {}", id.number()),
        WaitsFor::PendingResponse(id) => format!("the late reply on {}", id.number()),
        WaitsFor::Connection => "a connection".to_owned(),
        WaitsFor::Permit => "a permit".to_owned(),
        WaitsFor::Pacing => "its time".to_owned(),
        other => format!("{other:?}"),
    };
    let until = waiter.deadline.map(|at| format!(", until {}", time(at))).unwrap_or_default();
    format!(
        "{} waits for {waits_for} since {}{until}",
        name(waiter.id, names),
        time(waiter.started)
    )
}

fn name(id: WaiterId, names: &Names) -> &str {
    names.iter().find(|&(_, known)| *known == id).map_or("somebody", |(name, _)| name)
}
