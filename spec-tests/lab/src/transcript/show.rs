//! The machine's answers as lines of text.

use std::time::Duration;

use cenote_core::pool::{Action, CheckOutError, Event, Instant, ServiceId, Snapshot};

use super::play::Reply;
use super::{Story, options};

pub(super) fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Acted(action) => self::action(action),
        Reply::Refused(reason) => format!("misuse: {reason}"),
        Reply::Woken(deadline) => format!("@ {} timer: {}", time(deadline.at), deadline.reason),
        Reply::Told(text) => text.clone(),
    }
}

fn action(action: &Action<Story>) -> String {
    match action {
        Action::StartEstablish { id, owner, deadline, generation: _ } => {
            let until = deadline.map(|at| format!(" until {}", time(at))).unwrap_or_default();
            let background = if owner.is_none() { " in the background" } else { "" };
            format!("-> establish {}{until}{background}", id.number())
        }
        Action::AbortEstablish { id } => format!("-> abort {}", id.number()),
        Action::StartDrain { id, conn } => format!("-> drain {} ({conn})", id.number()),
        Action::AbortDrain { id } => format!("-> stop draining {}", id.number()),
        Action::Deliver { waiter, outcome: Ok((id, conn)) } => {
            format!("-> {waiter} gets {} ({conn})", id.number())
        }
        Action::Deliver { waiter, outcome: Err(error) } => {
            format!("-> {waiter} fails: {}", failure(error))
        }
        Action::CloseSocket { id, conn } => format!("-> close {} ({conn})", id.number()),
        Action::Interrupt { id } => format!("-> interrupt {}", id.number()),
        Action::ReportLeak { id, held } => {
            format!("-> report {}: held for {}", id.number(), span(*held))
        }
        Action::ReportUnanswered { id, pending } => {
            format!("-> report {}: pending for {}", id.number(), span(*pending))
        }
        Action::EmitEvent(event) => self::event(event),
    }
}

fn event(event: &Event<String>) -> String {
    let name = event.name().trim_start_matches("Connection");
    match event {
        Event::ConnectionPoolCreated { options } => format!("{name}{}", options::show(options)),
        Event::ConnectionPoolCleared { service_id, interrupt_in_use_connections } => {
            let service = service_id.map(|id| format!(" service={}", service(id)));
            let service = service.unwrap_or_default();
            format!("{name} interrupt={interrupt_in_use_connections}{service}")
        }
        Event::ConnectionPoolReady
        | Event::ConnectionPoolClosed
        | Event::ConnectionCheckOutStarted { .. } => name.to_owned(),
        Event::ConnectionCreated { connection_id }
        | Event::ConnectionCheckedIn { connection_id } => format!("{name} {connection_id}"),
        Event::ConnectionReady { connection_id, duration } => {
            format!("{name} {connection_id} ({})", span(*duration))
        }
        Event::ConnectionCheckedOut { connection_id, duration, .. } => {
            format!("{name} {connection_id} ({})", span(duration.get()))
        }
        Event::ConnectionClosed { connection_id, reason, error } => {
            let error = error.as_ref().map(|error| format!(" {error:?}")).unwrap_or_default();
            format!("{name} {connection_id} {}{error}", reason.as_str())
        }
        Event::ConnectionCheckOutFailed { error, duration, .. } => {
            format!("{name} {} ({})", error.reason().as_str(), span(duration.get()))
        }
        Event::ConnectionPendingResponseStarted { connection_id, request_id } => {
            format!("{name} {connection_id} request {request_id}")
        }
        Event::ConnectionPendingResponseSucceeded { connection_id, request_id, duration } => {
            format!("{name} {connection_id} request {request_id} ({})", span(duration.get()))
        }
        Event::ConnectionPendingResponseFailed { connection_id, request_id, duration, reason } => {
            let (reason, took) = (reason.as_str(), span(duration.get()));
            format!("{name} {connection_id} request {request_id} {reason} ({took})")
        }
        _ => name.to_owned(),
    }
}

fn failure(error: &CheckOutError<String>) -> String {
    match error {
        CheckOutError::PoolClosed => "pool closed".to_owned(),
        CheckOutError::PoolCleared { cause: Some(cause) } => format!("pool cleared by {cause:?}"),
        CheckOutError::PoolCleared { cause: None } => "pool paused".to_owned(),
        CheckOutError::WaitQueueTimeout { snapshot } => {
            format!("timed out, {}", self::snapshot(snapshot))
        }
        CheckOutError::WaitQueueFull { max } => format!("queue full, at most {max} wait"),
        CheckOutError::Shed { delay } => {
            format!("shed ({}, {})", span(delay.target()), span(delay.interval()))
        }
        CheckOutError::EstablishFailed { cause } => format!("not established, {cause:?}"),
        CheckOutError::Cancelled => "cancelled".to_owned(),
    }
}

/// The snapshot as text, with the counts that its own text omits, if they are not 0.
pub(super) fn snapshot(snapshot: &Snapshot) -> String {
    let mut line = snapshot.to_string();
    if snapshot.load_balanced {
        line += &format!(
            " | cursors {} transactions {} others {}",
            snapshot.in_use_by_cursors, snapshot.in_use_by_transactions, snapshot.in_use_by_others
        );
    }
    if snapshot.clock_regressions > 0 {
        line += &format!(" | clock ran backwards {}", snapshot.clock_regressions);
    }
    line
}

pub(super) fn service(id: ServiceId) -> String {
    format!("S{}", id.0[11])
}

pub(super) fn time(at: Instant) -> String {
    span(at.saturating_since(Instant::ORIGIN))
}

pub(super) fn span(span: Duration) -> String {
    if span.is_zero() { "0".to_owned() } else { format!("{span:?}") }
}
