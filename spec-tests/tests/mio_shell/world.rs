//! An endpoint, and pools of it.

use std::sync::{Arc, Mutex};

use bson::rawdoc;
use cenote::endpoint::{Endpoint, Fault, ListenOptions, Script, Settings};
use cenote_check::Sentry;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{CheckOutError, Event};
use cenote_mio::{Mongo, Pool, PoolEvent};

pub(crate) type Events = Arc<Mutex<Vec<PoolEvent>>>;

pub(crate) fn plain() -> Endpoint {
    Endpoint::start(Settings::default(), ListenOptions::default()).expect("it starts")
}

pub(crate) fn tls(settings: Settings) -> Endpoint {
    Endpoint::start(settings, ListenOptions::with_tls()).expect("it starts")
}

/// A ready pool, and everything that it told, which keeps the rules.
pub(crate) fn pool(uri: &str) -> (Pool, Events) {
    let events = Events::default();
    let heard = Arc::clone(&events);
    let builder = Pool::builder(uri).expect("a connection string");
    let sentry = Sentry::new();
    let builder = builder.on_event(move |told| {
        sentry.hear(&told.event, &told.address);
        heard.lock().expect("no panic").push(told.clone());
    });
    let pool = builder.build().expect("good options");
    pool.ready();
    (pool, events)
}

/// The connection string with one more option.
pub(crate) fn with(uri: &str, option: &str) -> String {
    let separator = if uri.contains('?') { '&' } else { '?' };
    format!("{uri}{separator}{option}")
}

pub(crate) fn ping(pool: &Pool) -> bool {
    let mut connection = pool.check_out().expect("a connection");
    let reply = connection.command("admin", &rawdoc! { "ping": 1 });
    reply.expect("a reply").get_f64("ok").is_ok_and(|ok| ok == 1.0)
}

/// Why no connection can be established.
pub(crate) fn refusal(pool: &Pool<Mongo>) -> ConnectionError {
    let error = pool.check_out().expect_err("it must not work");
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

/// Why connections were closed, once so many have been. Whoever is served goes on before all is told
/// that led to it.
pub(crate) fn closed(events: &Events, count: usize) -> Vec<String> {
    loop {
        let reasons = reasons(events);
        if reasons.len() >= count {
            return reasons;
        }
        std::thread::yield_now();
    }
}

fn reasons(events: &Events) -> Vec<String> {
    let events = events.lock().expect("no panic");
    let reason = |event: &PoolEvent| match &event.event {
        Event::ConnectionClosed { reason, .. } => Some(reason.as_str().to_owned()),
        Event::ConnectionPoolCreated { .. }
        | Event::ConnectionPoolReady
        | Event::ConnectionPoolCleared { .. }
        | Event::ConnectionPoolClosed
        | Event::ConnectionCreated { .. }
        | Event::ConnectionReady { .. }
        | Event::ConnectionCheckOutStarted
        | Event::ConnectionCheckOutFailed { .. }
        | Event::ConnectionCheckedOut { .. }
        | Event::ConnectionCheckedIn { .. } => None,
    };
    events.iter().filter_map(reason).collect()
}
