//! An endpoint, and pools of it.

use std::sync::{Arc, Mutex};
use std::thread;

use bson::{RawDocumentBuf, rawdoc};
use cenote_check::EventGuard;
use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{CheckOutError, Event};
use cenote_endpoint::{Endpoint, Fault, ListenOptions, Script, Settings};

use crate::shell::{AnyPool, Shell, Subscriber, paused_pool};

pub(crate) type Events = Arc<Mutex<Vec<Event<ConnectionError>>>>;

pub(crate) fn plain() -> Endpoint {
    Endpoint::start(Settings::default(), ListenOptions::default()).expect("it starts")
}

pub(crate) fn tls(settings: Settings) -> Endpoint {
    Endpoint::start(settings, ListenOptions::with_tls()).expect("it starts")
}

/// A ready pool, and its events.
pub(crate) fn pool(shell: Shell, uri: &str) -> (Arc<dyn AnyPool>, Events) {
    let (subscriber, events) = subscriber();
    let pool = paused_pool(shell, uri, subscriber, None);
    pool.ready();
    (pool, events)
}

/// Collects the events of a pool, and checks that they follow the rules.
pub(crate) fn subscriber() -> (Subscriber, Events) {
    let events = Events::default();
    let heard = Arc::clone(&events);
    let guard = EventGuard::new();
    let subscriber =
        Box::new(move |event: &Event<ConnectionError>, address: &Arc<ServerAddress>| {
            guard.hear(event, address);
            heard.lock().expect("no panic").push(event.clone());
        });
    (subscriber, events)
}

/// The connection string with one more option.
pub(crate) fn with(uri: &str, option: &str) -> String {
    let separator = if uri.contains('?') { '&' } else { '?' };
    format!("{uri}{separator}{option}")
}

pub(crate) fn ping(pool: &Arc<dyn AnyPool>) -> bool {
    let mut connection = pool.check_out().expect("a connection");
    let reply = connection.command("admin", &rawdoc! { "ping": 1 });
    reply.expect("a reply").get_f64("ok").is_ok_and(|ok| ok == 1.0)
}

/// Why no connection can be established.
pub(crate) fn refusal(pool: &Arc<dyn AnyPool>) -> ConnectionError {
    let Err(error) = pool.check_out() else { panic!("it fails") };
    let CheckOutError::EstablishFailed { cause } = error.error() else { panic!("{error}") };
    cause.clone()
}

pub(crate) fn set(endpoint: &Endpoint, script: Script) {
    endpoint.with(|server, now| {
        server.clear_faults(now);
        server.set_fault(now, script);
    });
}

pub(crate) fn at(fault: Fault, command: &str) -> Script {
    Script::new(fault).at_command(command, 0)
}

/// Delays the next ping.
pub(crate) fn block_ping(endpoint: &Endpoint, milliseconds: i32) {
    let block: RawDocumentBuf = rawdoc! {
        "configureFailPoint": "failCommand",
        "mode": { "times": 1 },
        "data": {
            "failCommands": ["ping"],
            "blockConnection": true,
            "blockTimeMS": milliseconds,
        },
    };
    endpoint.with(|server, _| server.set_fail_point(&block)).expect("a fail point");
}

/// Waits until the endpoint has seen that many pings.
pub(crate) fn until_seen(endpoint: &Endpoint, pings: u64) {
    while endpoint.with(|server, _| server.statistics()).commands.get("ping") < Some(&pings) {
        thread::yield_now();
    }
}

/// Why connections were closed, once so many have been. A served caller goes on before all events are emitted
/// that led to it.
pub(crate) fn closed(events: &Events, count: usize) -> Vec<String> {
    loop {
        let reasons = reasons(events);
        if reasons.len() >= count {
            return reasons;
        }
        thread::yield_now();
    }
}

fn reasons(events: &Events) -> Vec<String> {
    let events = events.lock().expect("no panic");
    let reason = |event: &Event<ConnectionError>| match event {
        Event::ConnectionClosed { reason, .. } => Some(reason.as_str().to_owned()),
        Event::ConnectionPoolCreated { .. }
        | Event::ConnectionPoolReady
        | Event::ConnectionPoolCleared { .. }
        | Event::ConnectionPoolClosed
        | Event::ConnectionCreated { .. }
        | Event::ConnectionReady { .. }
        | Event::ConnectionCheckOutStarted { .. }
        | Event::ConnectionCheckOutFailed { .. }
        | Event::ConnectionCheckedOut { .. }
        | Event::ConnectionCheckedIn { .. }
        | _ => None,
    };
    events.iter().filter_map(reason).collect()
}
