//! A proxy that gives each of two connections the reply to the other one's request.

use std::thread;

use bson::rawdoc;
use cenote::proxy::FaultProxy;
use cenote_core::error::{Kind, OperationError, Stage};
use cenote_endpoint::{Endpoint, Fault, Script, Settings};

use crate::shell::{Shell, on_all_runtimes};
use crate::world::{closed, plain, pool, tls};

on_all_runtimes!(
    a_reply_to_a_request_of_another_connection_is_refused,
    a_server_that_crosses_replies_is_refused,
);

// MS-15
fn a_reply_to_a_request_of_another_connection_is_refused(shell: Shell) {
    for (endpoint, is_tls) in [(plain(), false), (tls(Settings::default()), true)] {
        let proxy = FaultProxy::to(&endpoint.address()).expect("it starts");
        // What TLS protects is refused by TLS.
        let why = if is_tls { &(Kind::Network, "cannot decrypt") } else { REFUSED };
        expect_refusals(shell, &proxy.uri(&endpoint.uri()), why, || proxy.cross(1));
    }
}

// MS-15
fn a_server_that_crosses_replies_is_refused(shell: Shell) {
    for endpoint in [plain(), tls(Settings::default())] {
        expect_refusals(shell, &endpoint.uri(), REFUSED, || cross(&endpoint));
    }
}

/// The kind of the errors, and what they say.
type Refusal = (Kind, &'static str);

const REFUSED: &Refusal = &(Kind::Protocol, "expected a reply to message");

fn cross(endpoint: &Endpoint) {
    let script = Script::new(Fault::Crossed).at_command("ping", 0);
    endpoint.with(|server, now| server.set_fault(now, script));
}

/// Two connections that have sent the same number of requests ask at the same time after `cross`.
fn expect_refusals(shell: Shell, uri: &str, (kind, says): &Refusal, cross: impl FnOnce()) {
    let (pool, events) = pool(shell, uri);
    let mut connections = [0, 1].map(|_| pool.check_out().expect("a connection"));
    cross();
    let outcomes = thread::scope(|scope| {
        connections
            .each_mut()
            .map(|connection| scope.spawn(|| connection.command("admin", &rawdoc! { "ping": 1 })))
            .map(|command| command.join().expect("no panic"))
    });
    for outcome in outcomes {
        let Err(OperationError::Connection(error)) = outcome else { panic!("{outcome:?}") };
        assert_eq!((error.stage(), error.kind()), (Stage::Operation, kind), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert!(connections.iter().all(|connection| !connection.is_reusable()));
    drop(connections);
    assert_eq!(closed(&events, 2), ["error"; 2]);
}
