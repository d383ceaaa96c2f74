//! What SDAM makes of an application's failures.

use std::thread;

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::client::Selector;
use cenote_core::connect::ServerKind;
use cenote_core::pool::Status;
use cenote_endpoint::{
    Endpoint, ListenOptions, ReplicaSet, Role, Server, Settings, Topology, User,
};

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{World, commands, fail_point, member, standalone, until_so};

on_all_runtimes!(
    an_error_that_the_monitor_knows_of,
    description_and_pool_change_together,
    a_server_that_is_selected_has_a_ready_pool,
    errors_while_establishing,
    six_operations_clear_once,
    what_does_not_clear,
);

fn find() -> RawDocumentBuf {
    rawdoc! { "find": "birds" }
}

// SD-04, SD-05, CLR-15: when an error is returned, the server is Unknown and its pool is paused. Callers that
// wait for the server never find it known with a paused pool.
fn description_and_pool_change_together(shell: Shell) {
    let only = member(Role::Primary);
    let world = World::of(shell, &[&only], "heartbeatFrequencyMS=600000");
    world.ping();
    for round in 1..=3 {
        fail_point(&only, rawdoc! { "failCommands": ["find"], "closeConnection": true }, 1);
        assert!(world.command(&find()).is_err());
        let server = &world.client.servers()[0];
        assert_eq!((server.kind, server.pool.status), (None, Status::Paused));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| world.ping());
            }
        });
        world.until_told("ConnectionPoolCleared", round);
        world.until_told("ConnectionPoolReady", round + 1);
    }
    world.client.close();
}

// SD-04: as soon as a server can be selected, its pool is ready. Looked at without a pause while the first check
// ends.
fn a_server_that_is_selected_has_a_ready_pool(shell: Shell) {
    let only = member(Role::Primary);
    for _ in 0..300 {
        let world = World::of(shell, &[&only], "");
        loop {
            let server = &world.client.servers()[0];
            if server.kind.is_some() {
                assert_eq!(server.pool.status, Status::Ready);
                break;
            }
        }
        world.client.close();
    }
}

// ER-35, ER-36, SD-22, SD-23, SD-24, AU-03: an error before the end of hello that may be overload changes nothing.
fn errors_while_establishing(shell: Shell) {
    let known = (Some(ServerKind::RsPrimary), Status::Ready);
    let unknown = (None, Status::Paused);
    for (data, expected) in [
        (rawdoc! { "failCommands": ["isMaster"], "closeConnection": true }, known),
        (rawdoc! { "failCommands": ["isMaster"], "errorCode": 91 }, unknown),
        (rawdoc! { "failCommands": ["saslContinue"], "closeConnection": true }, unknown),
        (rawdoc! { "failCommands": ["saslContinue"], "errorCode": 18 }, unknown),
    ] {
        let text = format!("{data:?}");
        let topology = Topology::ReplicaSet(ReplicaSet::primary("rs0"));
        let users = vec![User::new("app", "pencil")];
        let settings = Settings { auth: true, users, topology, ..Settings::default() };
        let only = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
        let options = "heartbeatFrequencyMS=600000";
        let uri = format!("mongodb://app:pencil@{}/?{options}", only.address());
        let world = World::new(shell, &uri);
        world.until_all_known();
        // Of both sockets of the monitor: the next hello is of the pool.
        until_so(|| match commands(&only, "isMaster") {
            2 => Ok(()),
            count => Err(format!("{count} of 2")),
        });
        fail_point(&only, data, 1);
        assert!(world.command(&find()).is_err(), "{text}");
        let server = &world.client.servers()[0];
        assert_eq!((server.kind, server.pool.status), expected, "{text}");
        world.until_told("ConnectionPoolCleared", usize::from(expected == unknown));
        world.client.close();
    }
}

// SD-21: the server has told its monitor of a later state, or of the same.
fn an_error_that_the_monitor_knows_of(shell: Shell) {
    let only = member(Role::Primary);
    let world = World::of(shell, &[&only], "heartbeatFrequencyMS=600000");
    let mut connection = world.check_out(&Selector::Primary);
    only.with(Server::step_down);
    let secondary = [Some(ServerKind::RsSecondary)];
    world.until("reported", |world| world.count_changes() == 2);
    let insert = rawdoc! { "insert": "birds", "documents": [{ "_id": 1 }] };
    assert_eq!(world.kinds(), secondary);
    let error = connection.command("zoo", &insert).expect_err("it takes no writes");
    assert!(error.to_string().contains("10107"), "{error}");
    assert_eq!(world.kinds(), secondary);
    drop(connection);
    world.client.close();
    assert_eq!(world.count_changes(), 2);
}

// SD-29, SD-31: six operations that meet a server which shuts down clear once.
fn six_operations_clear_once(shell: Shell) {
    let only = member(Role::Primary);
    let world = World::of(shell, &[&only], "maxPoolSize=6&maxConnecting=6");
    world.ping();
    let out: Vec<_> = (0..6).map(|_| world.check_out(&Selector::Primary)).collect();
    let data = rawdoc! {
        "failCommands": ["find"], "errorCode": 91, "blockConnection": true, "blockTimeMS": 100,
    };
    fail_point(&only, data, 6);
    thread::scope(|scope| {
        let find = |mut connection: Box<dyn crate::shells::AnyConnection>| {
            scope.spawn(move || connection.command("zoo", &find()).is_err())
        };
        let operations: Vec<_> = out.into_iter().map(find).collect();
        for operation in operations {
            assert!(operation.join().expect("no panic"), "it fails");
        }
    });
    world.until_told("ConnectionPoolCleared", 1);
    assert_eq!(commands(&only, "find"), 6);
    world.client.close();
}

// LN-05, SD-29: no longer a primary, but the connections are good; and SD-25: a timeout says nothing.
fn what_does_not_clear(shell: Shell) {
    let only = standalone();
    let world = World::of(shell, &[&only], "socketTimeoutMS=1000&heartbeatFrequencyMS=500");
    world.ping();
    fail_point(&only, rawdoc! { "failCommands": ["find"], "errorCode": 10107 }, 1);
    assert!(world.command(&find()).is_err());
    let changed = |event: &&&str| **event == "ServerDescriptionChanged";
    world.until("Unknown", |world| world.server_events().iter().filter(changed).count() >= 2);
    world.ping();
    let data = rawdoc! { "failCommands": ["find"], "blockConnection": true, "blockTimeMS": 5000 };
    fail_point(&only, data, 1);
    assert!(world.command(&find()).is_err());
    world.ping();
    assert_eq!(world.count("ConnectionPoolCleared"), 0);
    world.client.close();
}
