//! What Server Selection's test plan describes in words: the load of two routers, and chance among equals.

use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::client::{ReadPreference, Selector};
use cenote_core::error::OperationError;
use cenote_core::uri::ReadPreferenceMode;
use cenote_endpoint::{Endpoint, Topology};

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{World, commands, fail_point, start, three};

on_all_runtimes!(
    the_busier_of_two_routers_is_avoided,
    all_that_are_near_are_read_from,
    a_server_that_is_far_is_not_read_from,
    a_server_to_be_avoided_is_chosen_where_no_other_fits,
    an_operation_goes_elsewhere_after_an_overload,
);

/// Of two routers one has too much to do. With `enableOverloadRetargeting` the second attempt is on the other, whichever
/// was first.
// BP-03, BP-05
fn an_operation_goes_elsewhere_after_an_overload(shell: Shell) {
    let routers = [start(Topology::Mongos), start(Topology::Mongos)];
    let options = "localThresholdMS=30000&maxAdaptiveRetries=1&enableOverloadRetargeting=true";
    let world = World::of(shell, &[&routers[0], &routers[1]], options);
    world.until_all_known();
    let busy = rawdoc! {
        "failCommands": ["insert"], "errorCode": 462,
        "errorLabels": ["SystemOverloadedError", "RetryableError"],
    };
    fail_point(&routers[0], busy, 10_000);
    let insert = rawdoc! { "insert": "birds", "documents": [{ "name": "wren" }] };
    for _ in 0..20 {
        let mut retries = world.client.overload_retries();
        let selector = retries.selector(&Selector::Primary);
        let Err(error) = world.check_out(&selector).command("zoo", &insert) else { continue };
        let OperationError::Connection(error) = error else { panic!("{error}") };
        let pause = retries.again_after(&error, &routers[0].address(), 0);
        assert_eq!(pause, Some(Duration::ZERO));
        let selector = retries.selector(&Selector::Primary);
        world.check_out(&selector).command("zoo", &insert).expect("on the other");
        assert_eq!(retries.again_after(&error, &routers[0].address(), 0), None);
    }
    let refused = commands(&routers[0], "insert");
    assert!(refused > 0, "one in a million runs does not find it");
    world.client.close();
}

/// As a driver does that tries an operation again.
// SS-16
fn a_server_to_be_avoided_is_chosen_where_no_other_fits(shell: Shell) {
    let set = three();
    let world =
        World::of(shell, &[&set[0], &set[1], &set[2]], "localThresholdMS=30000&replicaSet=rs0");
    world.until_all_known();
    let [first, second, _] = set.each_ref().map(|member| member.address().clone());
    let found = || set.each_ref().map(|member| commands(member, "ping"));
    let expect = |selector: Selector, at: usize| {
        let mut expected = found();
        expected[at] += 1;
        let mut connection = world.check_out(&selector);
        connection.command("zoo", &rawdoc! { "ping": 1 }).expect("a reply");
        assert_eq!(found(), expected, "{selector:?}");
    };
    for _ in 0..8 {
        expect(Selector::Any.avoiding([first.clone(), second.clone()]), 2);
        expect(Selector::Secondary.avoiding([second.clone()]), 2);
    }
    expect(Selector::Primary.avoiding([first, second]), 0);
    world.client.close();
}

/// "operationCount-based Selection Within Latency Window". All connections are open before, so that none has to be
/// waited for.
// SD-53, SS-08, SS-11
fn the_busier_of_two_routers_is_avoided(shell: Shell) {
    let routers = [start(Topology::Mongos), start(Topology::Mongos)];
    let options = "appname=loadBalancingTest&localThresholdMS=30000&minPoolSize=10&maxPoolSize=10";
    let world = World::of(shell, &[&routers[0], &routers[1]], options);
    world.until_told("ConnectionReady", 20);
    let slow = rawdoc! {
        "failCommands": ["find"], "blockConnection": true, "blockTimeMS": 500,
        "appName": "loadBalancingTest",
    };
    fail_point(&routers[0], slow, 10_000);
    let [slow, fast] = find_in_ten_threads(&world, &routers, 10);
    assert!(slow > 0 && slow < 25, "{slow} on the slow one, {fast} on the other");

    // Both take as long as each other, and long enough for the chance of a busy machine not to matter.
    for router in &routers {
        let same = rawdoc! {
            "failCommands": ["find"], "blockConnection": true, "blockTimeMS": 10,
            "appName": "loadBalancingTest",
        };
        fail_point(router, same, 10_000);
    }
    let [one, other] = find_in_ten_threads(&world, &routers, 100);
    assert!((400..=600).contains(&one), "{one} on one, {other} on the other");
    world.client.close();
}

/// How many each router gets, of so many in each thread.
fn find_in_ten_threads(world: &World, routers: &[Endpoint; 2], each: u64) -> [u64; 2] {
    let count = || routers.each_ref().map(|router| commands(router, "find"));
    let before = count();
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                for _ in 0..each {
                    world.command(&rawdoc! { "find": "birds", "limit": 1 }).expect("a reply");
                }
            });
        }
    });
    let after = count();
    let got = [after[0] - before[0], after[1] - before[1]];
    assert_eq!(got.iter().sum::<u64>(), 10 * each);
    got
}

/// The plan's example of `nearest`.
// SS-09
fn all_that_are_near_are_read_from(shell: Shell) {
    let set = three();
    let world = World::of(shell, &[&set[0]], "replicaSet=rs0&localThresholdMS=30000");
    until_found(&world);
    let nearest = Selector::ReadPreference(ReadPreference::of_mode(ReadPreferenceMode::Nearest));
    let find = rawdoc! { "find": "birds", "$readPreference": { "mode": "nearest" } };
    // One of them is left out by accident once in ten thousand million runs.
    for _ in 0..60 {
        world.check_out(&nearest).command("zoo", &find).expect("a reply");
    }
    let found = set.each_ref().map(|member| commands(member, "find"));
    assert!(found.iter().all(|times| *times > 0), "{found:?}");
    world.client.close();
}

/// One of two secondaries is chosen by chance unless its heartbeats take too long.
// SS-01, SS-07
fn a_server_that_is_far_is_not_read_from(shell: Shell) {
    let set = three();
    let slow = rawdoc! {
        "failCommands": ["hello", "isMaster"], "blockConnection": true, "blockTimeMS": 2_000,
    };
    fail_point(&set[2], slow, 10_000);
    let options = "replicaSet=rs0&localThresholdMS=300&serverMonitoringMode=poll";
    let world = World::of(shell, &[&set[0]], options);
    until_found(&world);
    for _ in 0..30 {
        let ping = rawdoc! { "ping": 1 };
        world.check_out(&Selector::Secondary).command("zoo", &ping).expect("a reply");
    }
    assert_eq!([commands(&set[1], "ping"), commands(&set[2], "ping")], [30, 0]);
    world.client.close();
}

fn until_found(world: &World) {
    world.until("found", |world| {
        world.kinds().len() == 3 && world.kinds().iter().all(Option::is_some)
    });
}
