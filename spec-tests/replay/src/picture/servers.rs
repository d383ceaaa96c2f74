//! The servers of a client in a picture: what each was when.

use cenote_core::connect::ServerKind;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::json::seconds;
use crate::text::{PAGE, wrapped};
use crate::topology::{History, Span, summary, verdict};

/// For the page: the servers in the order in which they were found, and what each was.
pub(super) fn servers(history: &History, clock: &Clock) -> Value {
    let spans = history.spans();
    let mut addresses: Vec<&str> = Vec::new();
    for span in &spans {
        if !addresses.contains(&span.server.as_str()) {
            addresses.push(&span.server);
        }
    }
    let place = |server: &str| addresses.iter().position(|address| *address == server);
    let of = |span: &Span| {
        json!({
            "server": place(&span.server),
            "kind": span.kind.map_or("Unknown", ServerKind::name),
            "text": span.text,
            "step": span.step,
            "from": seconds(span.from),
            "to": seconds(span.to),
            "elected": span.is_elected,
            "removed": span.removed,
        })
    };
    json!({
        "addresses": addresses,
        "spans": spans.iter().map(of).collect::<Vec<_>>(),
        "changes": history.changes.iter().map(|change| json!({
            "at": seconds(change.at),
            "step": change.step,
            "text": change.to_string(),
        })).collect::<Vec<_>>(),
        "verdict": verdict(history, clock),
        "summary": wrapped(&summary(history, clock, CHANGES), PAGE),
    })
}

/// How many changes the summary lists.
const CHANGES: usize = 50;
