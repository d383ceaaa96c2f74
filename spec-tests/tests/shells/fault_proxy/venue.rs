//! A server with a login, a proxy before it, and what a pool there has told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::proxy::FaultProxy;
use cenote::sockets;
use cenote_check::EventGuard;
use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{Event, Snapshot};
use cenote_endpoint::{Endpoint, ListenOptions, ScramSettings, Settings, User};

/// More than anything has to wait for.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A server that requires SCRAM-SHA-256. Not with TLS: what breaks is to break
/// hello, the login and commands.
pub(super) fn endpoint() -> Endpoint {
    start(ListenOptions::default())
}

/// The same with TLS.
pub(super) fn tls_endpoint() -> Endpoint {
    start(ListenOptions::with_tls())
}

fn start(options: ListenOptions) -> Endpoint {
    let settings = Settings {
        auth: true,
        users: vec![User::new("app", "pencil")],
        // The least that clients accept (AU-33).
        scram: ScramSettings { sha256_iterations: 4096, ..ScramSettings::default() },
        ..Settings::default()
    };
    Endpoint::start(settings, options).expect("it starts")
}

pub(super) fn proxy(endpoint: &Endpoint) -> FaultProxy {
    FaultProxy::to(&endpoint.address()).expect("it starts")
}

/// Counts what pools tell, which keeps the rules.
#[derive(Clone)]
pub(super) struct Ear {
    guard: Arc<EventGuard>,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) asked: u64,
    pub(super) answered: u64,
    pub(super) created: u64,
    pub(super) closed: u64,
}

impl Ear {
    pub(super) fn new() -> Self {
        Self { guard: Arc::new(EventGuard::new()), counts: Arc::default() }
    }

    pub(super) fn hear(&self, event: &Event<ConnectionError>, address: &ServerAddress) {
        self.guard.hear(event, address);
        let mut counts = self.counts.lock().expect("no panic");
        match event {
            Event::ConnectionCheckOutStarted { .. } => counts.asked += 1,
            Event::ConnectionCheckOutFailed { .. } | Event::ConnectionCheckedOut { .. } => {
                counts.answered += 1;
            }
            Event::ConnectionCreated { .. } => counts.created += 1,
            Event::ConnectionClosed { .. } => counts.closed += 1,
            Event::ConnectionPoolCreated { .. }
            | Event::ConnectionPoolReady
            | Event::ConnectionPoolCleared { .. }
            | Event::ConnectionPoolClosed
            | Event::ConnectionReady { .. }
            | Event::ConnectionCheckedIn { .. }
            | _ => {}
        }
    }

    /// How many connections were created and closed so far.
    pub(super) fn created_and_closed(&self) -> (u64, u64) {
        let counts = *self.counts.lock().expect("no panic");
        (counts.created, counts.closed)
    }

    /// What was told, once all of it was.
    pub(super) fn at_the_end(&self) -> Counts {
        loop {
            let counts = *self.counts.lock().expect("no panic");
            if counts.created == counts.closed && counts.asked == counts.answered {
                return counts;
            }
            std::thread::yield_now();
        }
    }
}

/// No request waits, no connection is in use, and there are this many connections.
pub(super) fn expect_rest(snapshot: &Snapshot, connections: u32, after: &str) {
    let Snapshot { total, available, in_use, pending, waiting, .. } = *snapshot;
    let found = (total, available, in_use, pending, waiting);
    assert_eq!(found, (connections, connections, 0, 0, 0), "after {after}: {snapshot}");
}

/// The operating system has no socket to there any more.
pub(super) fn expect_no_socket(address: &ServerAddress) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let settled = runtime.expect("a runtime").block_on(sockets::settle([address], PATIENCE));
    let count = settled.expect("the operating system tells");
    assert!(matches!(count, None | Some(0)), "{count:?} sockets are left");
}
