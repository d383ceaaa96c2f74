//! The actions of an input, as the text of a table cell.

use cenote_core::pool::{Action, Event, Status};

use crate::transcript::{Reply, Story};

/// The actions in their order; then the pool's state, if it changed.
pub(super) fn show(replies: &[Reply], becomes: Option<Status>) -> String {
    let mut parts: Vec<String> = replies.iter().map(reply).collect();
    parts.extend(becomes.map(|status| format!("**now {status}**")));
    if parts.is_empty() { "–".to_owned() } else { parts.join(", ") }
}

fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Acted(action) => self::action(action),
        Reply::Refused(reason) => {
            let reason = format!("{reason:?}");
            let name = reason.split([' ', '(']).next().unwrap_or_default();
            format!("misuse: {name}")
        }
        Reply::Woken(deadline) => format!("({})", deadline.reason),
        Reply::Told(text) => text.clone(),
    }
}

fn action(action: &Action<Story>) -> String {
    match action {
        Action::StartEstablish { .. } => "StartEstablish".to_owned(),
        Action::AbortEstablish { .. } => "AbortEstablish".to_owned(),
        Action::Deliver { outcome: Ok(_), .. } => "Deliver(ok)".to_owned(),
        Action::Deliver { outcome: Err(_), .. } => "Deliver(err)".to_owned(),
        Action::CloseSocket { .. } => "CloseSocket".to_owned(),
        Action::Interrupt { .. } => "Interrupt".to_owned(),
        Action::ReportLeak { .. } => "ReportLeak".to_owned(),
        Action::ReportUnanswered { .. } => "ReportUnanswered".to_owned(),
        Action::StartDrain { .. } => "StartDrain".to_owned(),
        Action::AbortDrain { .. } => "AbortDrain".to_owned(),
        Action::EmitEvent(event) => self::event(event),
    }
}

fn event(event: &Event<String>) -> String {
    let name = event.name().trim_start_matches("Connection");
    match event {
        Event::ConnectionClosed { reason, .. } => format!("{name}({})", reason.as_str()),
        Event::ConnectionCheckOutFailed { error, .. } => {
            format!("{name}({})", error.reason().as_str())
        }
        Event::ConnectionPendingResponseFailed { reason, .. } => {
            format!("{name}({})", reason.as_str())
        }
        Event::ConnectionPoolCleared { interrupt_in_use_connections: true, .. } => {
            format!("{name}(interrupt)")
        }
        Event::ConnectionPoolCleared { service_id: Some(_), .. } => format!("{name}(service)"),
        Event::ConnectionPoolCleared { .. }
        | Event::ConnectionPoolCreated { .. }
        | Event::ConnectionPoolReady
        | Event::ConnectionPoolClosed
        | Event::ConnectionCreated { .. }
        | Event::ConnectionReady { .. }
        | Event::ConnectionCheckOutStarted { .. }
        | Event::ConnectionCheckedOut { .. }
        | Event::ConnectionCheckedIn { .. }
        | Event::ConnectionPendingResponseStarted { .. }
        | Event::ConnectionPendingResponseSucceeded { .. }
        | _ => name.to_owned(),
    }
}
