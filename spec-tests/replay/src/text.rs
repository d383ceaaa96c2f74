//! Steps as lines of text.

use std::fmt::Write as _;
use std::time::Duration;

use cenote_core::pool::{
    Action, CheckOutError, ConnectionInfo, ConnectionState, Event, Health, Input, Purpose,
    WaiterInfo, WaitsFor,
};
use cenote_core::trace::{Cause, StageRecord, Traced};

use super::clock::Clock;
use super::filter::connection_of_event;
use super::step_reader::View;

/// The step in one line: number, time, wall-clock time if there is one, input, actions, and the state
/// afterwards.
pub fn step(view: &View<'_>, clock: &Clock) -> String {
    brief_step(view, clock, usize::MAX)
}

/// The same, with this many actions at most, and how many more there are.
pub fn brief_step(view: &View<'_>, clock: &Clock, actions_max: usize) -> String {
    let step = view.step;
    let time = clock.time(step.at).map(|time| format!("  {time}")).unwrap_or_default();
    let outcome = brief_outcome(view, actions_max);
    let mut line = format!("{:>7}  {}{time}  {outcome}", step.number, step.at);
    if let Some(lost) = step.lost_before {
        let lost = match lost {
            0 => "some actions of the input".to_owned(),
            1 => "1 input".to_owned(),
            lost => format!("{lost} inputs"),
        };
        line = format!("         … not recorded: {lost} before this\n{line}");
    }
    line
}

/// The input of a step, its actions, and the state afterwards.
pub fn outcome(view: &View<'_>) -> String {
    brief_outcome(view, usize::MAX)
}

fn brief_outcome(view: &View<'_>, actions_max: usize) -> String {
    let step = view.step;
    let refused = if step.refused { " REFUSED" } else { "" };
    let place = step.place.as_ref().map(|place| format!(" at {place}"));
    let follows = step.follows.map(|step| format!(" after step {step} of the client"));
    let mut line =
        format!("{}{}{refused}", input(&step.input), place.or(follows).unwrap_or_default());
    let mut actions: Vec<_> = view.actions.iter().take(actions_max).map(action).collect();
    if let more @ 1.. = view.actions.len() - actions.len() {
        actions.push(format!("and {more} more"));
    }
    if !actions.is_empty() {
        let _ = write!(line, "  ->  {}", actions.join(", "));
    }
    let _ = write!(line, "  |  {}", view.pool.snapshot());
    line
}

/// A stage that an establishment has come to, or in which a connection failed, in one line: time, wall-clock time if there
/// is one, connection and stage.
pub fn stage(record: &StageRecord, clock: &Clock) -> String {
    let StageRecord { at, connection, stage, failed, .. } = record;
    let time = clock.time(*at).map(|time| format!("  {time}")).unwrap_or_default();
    let failed = failed.map(|step| format!(" failed: step {step} of the client"));
    format!("{:>7}  {at}{time}  c{connection}: {stage}{}", "", failed.unwrap_or_default())
}

/// An input with its parameters.
pub fn input(input: &Input<Traced>) -> String {
    let name = input.name();
    match input {
        Input::CheckOutRequested { id, deadline, purpose, .. } => {
            let until = deadline.map(|at| format!(" until {at}")).unwrap_or_default();
            format!("{name} {id}{until}{}", for_purpose(*purpose))
        }
        Input::CheckOutCancelled { id } => format!("{name} {id}"),
        Input::CheckedIn { id, health: Health::Errored(cause), .. } => {
            format!("{name} {id} errored ({cause})")
        }
        Input::CheckedIn { id, health: Health::PendingResponse { request_id, cause }, .. } => {
            format!("{name} {id} pending the response to {request_id} ({cause})")
        }
        Input::CheckedIn { id, health: Health::Healthy, .. }
        | Input::DrainSucceeded { id, .. }
        | Input::DrainProgress { id }
        | Input::EstablishSucceeded { id, .. } => format!("{name} {id}"),
        Input::Repurposed { id, purpose } => format!("{name} {id}{}", for_purpose(*purpose)),
        Input::Handshaken { id, service, clears_at_hello } => {
            let service = service.map(|id| format!(" with service {id}")).unwrap_or_default();
            let clears = clears_at_hello.map(|clears| format!(" after {clears} clears"));
            format!("{name} {id}{service}{}", clears.unwrap_or_default())
        }
        Input::EstablishFailed { id, cause, overloaded: true } => {
            format!("{name} {id} overloaded ({cause})")
        }
        Input::EstablishFailed { id, cause, overloaded: false }
        | Input::DrainFailed { id, cause }
        | Input::IdleClosedByPeer { id, cause } => {
            format!("{name} {id} ({cause})")
        }
        Input::Ready
        | Input::Close
        | Input::Timer
        | Input::RetireConnections
        | Input::ReleaseIdle
        | Input::ResetAfterFork => name.to_owned(),
        Input::Clear { cause, interrupt, service } => {
            let interrupt = if *interrupt { " interrupting" } else { "" };
            let service = service.map(|id| format!(" of service {id}")).unwrap_or_default();
            format!("{name}{service}{interrupt} ({cause})")
        }
        Input::SetOptions { options } => {
            format!("{name} {}", options)
        }
    }
}

/// An action with its parameters.
pub fn action(action: &Action<Traced>) -> String {
    match action {
        Action::StartEstablish { id, owner, .. } => {
            format!("establish {id}{}", if owner.is_none() { " in the background" } else { "" })
        }
        Action::AbortEstablish { id } => format!("abort {id}"),
        Action::StartDrain { id, .. } => format!("drain {id}"),
        Action::AbortDrain { id } => format!("stop draining {id}"),
        Action::Deliver { waiter, outcome: Ok((id, ())) } => format!("{waiter} gets {id}"),
        Action::Deliver { waiter, outcome: Err(error) } => {
            format!("{waiter} fails: {}", failure(error))
        }
        Action::CloseSocket { id, .. } => format!("close socket {id}"),
        Action::Interrupt { id } => format!("interrupt {id}"),
        Action::ReportLeak { id, held } => format!("report {id} held for {}", span(*held)),
        Action::ReportUnanswered { id, pending } => {
            format!("report {id} pending for {}", span(*pending))
        }
        Action::EmitEvent(event) => self::event(event),
    }
}

/// Why a check-out failed.
pub fn failure(error: &CheckOutError<Cause>) -> String {
    match error {
        CheckOutError::PoolClosed => "pool closed".to_owned(),
        CheckOutError::PoolCleared { cause: Some(cause) } => format!("pool cleared ({cause})"),
        CheckOutError::PoolCleared { cause: None } => "pool paused".to_owned(),
        CheckOutError::WaitQueueTimeout { .. } => "timed out".to_owned(),
        CheckOutError::WaitQueueFull { .. } => "wait queue full".to_owned(),
        CheckOutError::Shed { .. } => "shed".to_owned(),
        CheckOutError::EstablishFailed { cause } => format!("not established ({cause})"),
        CheckOutError::Cancelled => "cancelled".to_owned(),
    }
}

/// The event's name without the prefix `Connection`.
fn event(event: &Event<Cause>) -> String {
    let name = event.name().trim_start_matches("Connection");
    let connection = connection_of_event(event).map(|number| format!(" c{number}"));
    let reason = if let Event::ConnectionClosed { reason, .. } = event {
        reason.as_str()
    } else if let Event::ConnectionCheckOutFailed { error, .. } = event {
        error.reason().as_str()
    } else if let Event::ConnectionPendingResponseFailed { reason, .. } = event {
        reason.as_str()
    } else {
        ""
    };
    format!("{name}{} {reason}", connection.unwrap_or_default()).trim_end().to_owned()
}

/// A connection as `--step` lists it.
pub fn connection(connection: &ConnectionInfo) -> String {
    let ConnectionInfo { id, state, stale, service, created, since, .. } = connection;
    let activity = match state {
        ConnectionState::Pending { owner: Some(owner), .. } => format!("pending for {owner}"),
        ConnectionState::Pending { owner: None, .. } => "pending in the background".to_owned(),
        ConnectionState::Available => "idle".to_owned(),
        ConnectionState::PendingResponse { request_id } => {
            format!("idle, pending the response to {request_id}")
        }
        ConnectionState::Draining { request_id, owner } => {
            let owner = owner.map(|owner| format!(" for {owner}")).unwrap_or_default();
            format!("draining the response to {request_id}{owner}")
        }
        ConnectionState::InUse { purpose, interrupted } => {
            let interrupted = if *interrupted { ", interrupted" } else { "" };
            format!("in use{}{interrupted}", for_purpose(*purpose))
        }
    };
    let stale = if *stale { ", stale" } else { "" };
    let service = service.map(|id| format!(", service {id}")).unwrap_or_default();
    format!("{id:<6} {activity} since {since}{stale}{service} (created {created})")
}

/// A request as `--step` lists it.
pub fn waiter(waiter: &WaiterInfo) -> String {
    let WaiterInfo { id, started, age, deadline, purpose, waits_for } = waiter;
    let what = match waits_for {
        WaitsFor::Establishment(id) => format!("for {id} to be established"),
        WaitsFor::PendingResponse(id) => format!("for the late reply on {id}"),
        WaitsFor::Connection => "for a connection: maxPoolSize is reached".to_owned(),
        WaitsFor::Permit => "for a permit to connect: maxConnecting is reached".to_owned(),
        WaitsFor::Pacing => "until the pool establishes more connections".to_owned(),
        other => format!("for {other:?}"),
    };
    let until = deadline.map(|at| format!(", until {at}")).unwrap_or_default();
    let purpose = for_purpose(*purpose);
    format!("{id:<6} since {started} ({}){until}{purpose}: waits {what}", span(*age))
}

fn for_purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Cursor => " for a cursor",
        Purpose::Transaction => " for a transaction",
        Purpose::Other | _ => "",
    }
}

/// A paragraph: its lines begin below each other, behind the head, as wide as [`wrapped`] makes them. No line ends at a
/// no-break space.
pub fn paragraph(out: &mut String, head: &str, text: &str) {
    let _ = writeln!(out, "{head}{HEAD_ENDS}{text}");
}

/// A text whose paragraphs have lines of this width, in characters.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let Some((head, text)) = line.split_once(HEAD_ENDS) else {
            let _ = writeln!(out, "{line}");
            continue;
        };
        let (mut at, mut is_empty) = (head.chars().count(), true);
        let indent = at;
        out.push_str(head);
        for word in text.split(' ') {
            let length = word.chars().count();
            if !is_empty && at + 1 + length > width {
                let _ = write!(out, "\n{:indent$}", "");
                (at, is_empty) = (indent, true);
            }
            if !is_empty {
                out.push(' ');
                at += 1;
            }
            out.push_str(word);
            (at, is_empty) = (at + length, false);
        }
        out.push('\n');
    }
    out.replace(NO_BREAK, " ")
}

/// The width of a page, and of a terminal that does not say its own.
pub const PAGE: usize = 100;

/// Stands between the head of a paragraph and its text.
const HEAD_ENDS: char = '\u{1f}';
const NO_BREAK: char = '\u{a0}';

/// A duration with three significant digits.
pub fn span(span: Duration) -> String {
    let nanos = span.as_nanos() as f64;
    let (value, unit) = match nanos {
        0.0 => return "0 s".to_owned(),
        ..999.5 => (nanos, "ns"),
        ..999_500.0 => (nanos / 1e3, "µs"),
        ..999_500_000.0 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

/// A number with a separator every three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        for (nanos, text) in [
            (0, "0 s"),
            (412, "412 ns"),
            (4_124, "4.12 µs"),
            (999_600, "1 ms"),
            (41_200_000, "41.2 ms"),
            (999_600_000, "1 s"),
            (1_234_500_000_000, "1234 s"),
        ] {
            assert_eq!(span(Duration::from_nanos(nanos)), text);
        }
    }
}
