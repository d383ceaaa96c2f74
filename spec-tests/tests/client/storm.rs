//! Many connections are opened at once, and the server refuses many of them.

use std::ops::RangeInclusive;
use std::thread;

use bson::rawdoc;
use cenote_core::connect::ServerKind;
use cenote_core::error::RetryWrites;
use cenote_endpoint::{
    Endpoint, Fault, ListenOptions, ReplicaSet, Script, Server, Settings, TlsFault, Topology,
};

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{World, fail_point, tell, until_open};

on_all_runtimes!(
    connections_that_are_closed_clear_nothing,
    connections_that_are_closed_over_tls_clear_nothing,
    handshakes_of_tls_that_end_early_clear_nothing,
);

/// The connections that are closed, and those that are reset.
const REFUSED: [RangeInclusive<u64>; 2] = [20..=44, 45..=69];

// PS-13, ER-34, ER-37, SD-22
fn connections_that_are_closed_clear_nothing(shell: Shell) {
    storm(shell, ListenOptions::default(), refuse);
}

fn connections_that_are_closed_over_tls_clear_nothing(shell: Shell) {
    storm(shell, ListenOptions::with_tls(), refuse);
}

fn handshakes_of_tls_that_end_early_clear_nothing(shell: Shell) {
    storm(shell, ListenOptions::with_tls(), |endpoint| {
        endpoint.set_tls_fault(Some(TlsFault::CloseAfter { bytes: 0 }));
    });
}

fn refuse(endpoint: &Endpoint) {
    tell(endpoint, |server, now| {
        for (fault, connections) in [Fault::Close, Fault::Reset].into_iter().zip(REFUSED) {
            server.set_fault(now, Script::new(fault).at_accept().on_connections(connections));
        }
    });
}

// SD-54: "Connection Pool Backpressure" of SDAM's prose tests. The endpoint has no rate limiter: it closes or
// resets half of the connections as soon as they are accepted, or ends every handshake of TLS.
fn storm(shell: Shell, listen: ListenOptions, refuse: impl Fn(&Endpoint)) {
    let topology = Topology::ReplicaSet(ReplicaSet::primary("rs0"));
    let settings = Settings { topology, ..Settings::default() };
    let only = Endpoint::start(settings, listen).expect("it starts");
    let uri = only.uri();
    let separator = if uri.contains('?') { '&' } else { '?' };
    let world = World::new(shell, &format!("{uri}{separator}maxConnecting=100"));
    world.ping();
    // One of the pool and both of the monitor: all others are opened in the storm.
    until_open(&only, 3);
    refuse(&only);
    let data = rawdoc! { "failCommands": ["find"], "blockConnection": true, "blockTimeMS": 500 };
    fail_point(&only, data, 100);

    let find = rawdoc! { "find": "birds" };
    let outcomes: Vec<_> = thread::scope(|scope| {
        let finds: Vec<_> = (0..100).map(|_| scope.spawn(|| world.command(&find))).collect();
        finds.into_iter().map(|find| find.join().expect("no panic")).collect()
    });
    let failures: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert!(failures.len() >= 10, "only {} failed", failures.len());
    for error in &failures {
        let labels = error.labels(RetryWrites::Disabled);
        let expected = ["SystemOverloadedError", "RetryableError"];
        assert!(expected.iter().all(|label| labels.contains(label)), "{error}: {labels:?}");
    }
    world.until_told("ConnectionCheckOutFailed", failures.len());
    assert_eq!(world.count("ConnectionPoolCleared"), 0);
    assert_eq!(world.kinds(), [Some(ServerKind::RsPrimary)]);

    tell(&only, Server::clear_faults);
    only.set_tls_fault(None);
    world.ping();
    assert_eq!(world.count("ConnectionPoolReady"), 1);
    world.client.close();
}
