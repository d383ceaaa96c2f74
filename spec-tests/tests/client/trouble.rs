//! Servers that fall silent, break, go away and come back.

use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_core::client::Selector;
use cenote_core::error::OperationError;
use cenote_endpoint::{
    Ending, Endpoint, Fault, ListenOptions, ReplicaSet, Role, Script, Server, Settings, Topology,
    User,
};

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{SOON, World, fail_point, member, standalone, tell};

on_all_runtimes!(
    a_server_that_stalls,
    a_known_server_is_asked_again_at_once,
    a_server_that_restarts,
    a_caller_that_waits_has_the_server_checked,
    a_requested_check_does_not_wait_for_the_heartbeat,
    troubles_that_pass,
    a_login_that_is_refused_for_a_moment,
    a_write_concern_error_tells_of_the_server,
);

// INT-08, SD-52
// SD-41: a server that hangs is cleared with an interrupt, within connectTimeoutMS and heartbeatFrequencyMS; the
// operations that hang with it fail at once, with the error that may be tried again; and it is asked
// again at once (SM-06).
fn a_server_that_stalls(shell: Shell) {
    let only = member(Role::Primary);
    let world = World::of(shell, &[&only], SOON);
    let mut connection = world.check_out(&Selector::Primary);
    tell(&only, |server, now| server.break_connections(now, Ending::Stall, None));
    let begin = Instant::now();
    let error = connection.command("admin", &rawdoc! { "ping": 1 }).expect_err("it fails");
    assert!(matches!(error, OperationError::Interrupted(_)), "{error}");
    assert!(error.is_retryable());
    // One second in theory; socketTimeoutMS is without limit.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    drop(connection);
    // The operation may hear of it before the subscriber does.
    world.until("reported", |world| world.interrupts() == 1);
    world.ping();
    assert!(world.count("ConnectionPoolReady") >= 2);
    world.client.close();
}

// SM-06: without a request for it, and long before the next heartbeat.
fn a_known_server_is_asked_again_at_once(shell: Shell) {
    let only = member(Role::Primary);
    let world = World::of(shell, &[&only], "heartbeatFrequencyMS=600000");
    world.until_all_known();
    tell(&only, |server, now| server.break_connections(now, Ending::Reset, None));
    world.until("Unknown and known again", |world| world.count_changes() == 3);
    world.client.close();
}

/// Another process at the same place: its count of changes begins anew, and is news all the same.
fn a_server_that_restarts(shell: Shell) {
    let only = member(Role::Primary);
    let world = World::of(shell, &[&only], SOON);
    world.ping();
    let before = world.client.servers()[0].description.topology_version;
    tell(&only, Server::restart);
    world.until("another process", |world| {
        let after = world.client.servers()[0].description.topology_version;
        after.is_some() && after.map(|it| it.process_id) != before.map(|it| it.process_id)
    });
    world.ping();
    world.client.close();
}

// SS-15, SM-05: a request for a server triggers a check, and does not wait for the next heartbeat.
fn a_caller_that_waits_has_the_server_checked(shell: Shell) {
    let only = standalone();
    tell(&only, |server, now| {
        server.set_fault(now, Script::new(Fault::Refuse));
    });
    let world = World::of(shell, &[&only], "heartbeatFrequencyMS=600000&connectTimeoutMS=5000");
    world.until("refused", |world| world.error().is_some());
    thread::scope(|scope| {
        scope.spawn(|| world.ping());
        tell(&only, Server::clear_faults);
    });
    world.client.close();
}

fn a_requested_check_does_not_wait_for_the_heartbeat(shell: Shell) {
    let only = standalone();
    tell(&only, |server, now| {
        server.set_fault(now, Script::new(Fault::Refuse));
    });
    let world = World::of(shell, &[&only], "heartbeatFrequencyMS=600000&connectTimeoutMS=5000");
    world.until("refused", |world| world.error().is_some());
    tell(&only, Server::clear_faults);
    world.client.request_checks();
    world.until_all_known();
}

/// What answers is no server, is in another replica set, or in none, twice at least while a caller waits.
fn troubles_that_pass(shell: Shell) {
    let answers_garbage: fn(&Endpoint) = |server| {
        tell(server, |server, now| {
            server.set_fault(now, Script::new(Fault::Garbage { bytes: 64 }));
        });
    };
    let is_elsewhere =
        |server: &Endpoint| be(server, Topology::ReplicaSet(ReplicaSet::primary("rs1")));
    let is_alone = |server: &Endpoint| be(server, Topology::Standalone);
    for begin in [answers_garbage, is_elsewhere, is_alone] {
        let only = member(Role::Primary);
        begin(&only);
        let limits = "heartbeatFrequencyMS=600000&connectTimeoutMS=5000";
        let world = World::of(shell, &[&only], &format!("replicaSet=rs0&{limits}"));
        world.until("not used", |world| {
            world.exclusion(&only.address()).is_some() || world.error_of(0).is_some()
        });
        let begin = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| world.ping());
            thread::sleep(Duration::from_millis(1200));
            be(&only, Topology::ReplicaSet(ReplicaSet::primary("rs0")));
            tell(&only, Server::clear_faults);
        });
        assert!(begin.elapsed() < Duration::from_secs(60));
        world.client.close();
    }
}

fn be(server: &Endpoint, topology: Topology) {
    tell(server, |server, now| server.set_topology(now, topology));
}

/// The monitor's hello is awaited at the server all the while.
fn a_login_that_is_refused_for_a_moment(shell: Shell) {
    let user = User::new("app", "secret");
    let topology = Topology::ReplicaSet(ReplicaSet::primary("rs0"));
    let settings = Settings { topology, users: vec![user.clone()], ..Settings::default() };
    let only = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let uri = format!("{}&heartbeatFrequencyMS=600000", only.uri_of(Some(&user)));
    let world = World::new(shell, &uri);
    world.until_all_known();
    let refusal = rawdoc! { "failCommands": ["saslContinue"], "errorCode": 18 };
    fail_point(&only, refusal, 2);
    let begin = Instant::now();
    let refused = (0..).take_while(|_| world.command(&rawdoc! { "ping": 1 }).is_err()).count();
    assert!(begin.elapsed() < Duration::from_secs(60));
    assert_eq!(refused, 2);
    world.client.close();
}

// SD-29, SD-30: the write succeeded, and the server says that it shuts down, is not the primary any more, or
// neither.
fn a_write_concern_error_tells_of_the_server(shell: Shell) {
    let insert = rawdoc! { "insert": "c", "documents": [{ "_id": 1 }] };
    for (code, changes, clears) in [(91, true, true), (10107, true, false), (64, false, false)] {
        let only = member(Role::Primary);
        let world = World::of(shell, &[&only], "heartbeatFrequencyMS=500");
        world.ping();
        // Events may be told after what they are about.
        world.until("known", |world| world.count_changes() > 0);
        let before = world.count_changes();
        let fail_point = rawdoc! {
            "configureFailPoint": "failCommand",
            "mode": { "times": 1 },
            "data": {
                "failCommands": ["insert"],
                "writeConcernError": { "code": code, "errmsg": "not durable" },
            },
        };
        only.with(|server, _| server.set_fail_point(&fail_point)).expect("a fail point");
        let reply = world.client.command("test", &insert).expect("the write succeeded");
        let concern = reply.get_document("writeConcernError").expect("it is in the reply");
        assert_eq!(concern.get_i32("code").ok(), Some(code));
        if changes {
            // Nothing has changed, so that the server answers after a heartbeat only.
            world.until("Unknown and known again", |world| world.count_changes() >= before + 2);
        }
        world.ping();
        world.client.close();
        assert_eq!(world.count_changes() > before, changes, "{code}");
        assert_eq!(world.count("ConnectionPoolCleared"), usize::from(clears), "{code}");
    }
}
