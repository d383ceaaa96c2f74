//! The tests that the specifications describe in words, as far as they concern a client: CMAP's 1 to 5
//! and SDAM's about its pools.

use std::io::Read;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_core::client::ClientError;
use cenote_core::error::{Kind, Stage};
use cenote_core::monitor::Event as Heartbeat;
use cenote_core::pool::{CheckOutFailedReason, Event, PoolOptions};
use cenote_endpoint::{Fault, Role, Script, Topology};

use crate::sdam_rules::SdamEvent;
use crate::shells::{ClientSetup, Shell, Subscribers, client, on_all_runtimes};
use crate::world::{World, fail_point, member, open, standalone, start, tell, three, until_so};

on_all_runtimes!(
    cmap_1_and_3_every_option_of_pools_is_given_to_the_client_and_in_its_uri,
    options_that_are_changed_keep_the_others_of_the_uri,
    cmap_2_all_pools_of_a_client_have_the_same_options,
    cmap_4_one_subscription_hears_of_all_pools,
    cmap_5_a_connection_that_fails_fails_its_check_out,
    sdam_heartbeats_make_pools_ready_and_clear_them,
    sdam_heartbeats_come_as_often_as_the_option_says,
    sdam_a_heartbeat_is_reported_before_its_socket_is_opened,
    sdam_round_trip_times_are_updated,
);

const OPTIONS: &str = "maxPoolSize=7&minPoolSize=1&maxIdleTimeMS=60000&maxConnecting=3\
                       &waitQueueTimeoutMS=4000";

fn options() -> PoolOptions {
    PoolOptions::default()
        .with_max_pool_size(7)
        .with_min_pool_size(1)
        .with_max_idle_time(Duration::from_secs(60))
        .with_max_connecting(3)
        .with_wait_queue_timeout(Duration::from_secs(4))
}

// OP-01, OP-10, OP-13, PT-03, PT-01.
fn cmap_1_and_3_every_option_of_pools_is_given_to_the_client_and_in_its_uri(shell: Shell) {
    let only = standalone();
    let given = options().with_leak_detection_threshold(Duration::from_secs(60));
    let uri = format!("mongodb://{}/?maxPoolSize=3", only.address());
    let world = World::with_options(shell, &uri, Some(given.clone()));
    assert_eq!(world.client.pool(&only.address()).expect("of this client").options(), given);
    world.client.close();
    let world = World::of(shell, &[&only], OPTIONS);
    assert_eq!(world.client.pool(&only.address()).expect("of this client").options(), options());
    world.client.close();
}

// OP-52
fn options_that_are_changed_keep_the_others_of_the_uri(shell: Shell) {
    let only = standalone();
    let uri = format!("mongodb://{}/?{OPTIONS}", only.address());
    let threshold = Duration::from_secs(60);
    let changes: [fn(PoolOptions) -> PoolOptions; 2] = [
        |options| options.with_leak_detection_threshold(Duration::from_secs(60)),
        |options| options.with_max_pool_size(8).with_load_balanced(true),
    ];
    let setup = ClientSetup { changes: Some(changes), ..ClientSetup::default() };
    let client = shell.build_client(&uri, setup).expect("good options");
    let expected = options().with_max_pool_size(8).with_leak_detection_threshold(threshold);
    assert_eq!(client.pool(&only.address()).expect("of this client").options(), expected);
    client.close();
}

// OP-12, PT-02.
fn cmap_2_all_pools_of_a_client_have_the_same_options(shell: Shell) {
    let set = three();
    let world = World::of(shell, &[&set[0], &set[1], &set[2]], OPTIONS);
    for endpoint in &set {
        assert_eq!(
            world.client.pool(&endpoint.address()).expect("of this client").options(),
            options()
        );
    }
    world.client.close();
}

// CO-01, PS-05, EV-03, PT-04.
fn cmap_4_one_subscription_hears_of_all_pools(shell: Shell) {
    let set = three();
    let world = World::of(shell, &[&set[0], &set[1], &set[2]], "replicaSet=rs0");
    world.until_all_known();
    for endpoint in &set {
        drop(
            world
                .client
                .pool(&endpoint.address())
                .expect("of this client")
                .check_out()
                .expect("a connection"),
        );
    }
    world.client.close();
    for endpoint in &set {
        let address = endpoint.address().to_string();
        let told: Vec<_> = world.seen_by(|pools, _| {
            let of_it = pools.iter().filter(|(of, _)| of.to_string() == address);
            of_it.map(|(_, event)| event.name()).collect()
        });
        let expected = [
            "ConnectionPoolCreated",
            "ConnectionPoolReady",
            "ConnectionCheckOutStarted",
            "ConnectionCreated",
            "ConnectionReady",
            "ConnectionCheckedOut",
            "ConnectionCheckedIn",
            "ConnectionClosed",
            "ConnectionPoolClosed",
        ];
        assert_eq!(told, expected, "{address}");
    }
}

// PT-05.
fn cmap_5_a_connection_that_fails_fails_its_check_out(shell: Shell) {
    let only = standalone();
    let world = World::of(shell, &[&only], "heartbeatFrequencyMS=600000");
    world.until_all_known();
    tell(&only, |server, now| {
        server.set_fault(now, Script::new(Fault::Refuse));
    });
    let error = world
        .client
        .pool(&only.address())
        .expect("of this client")
        .check_out()
        .expect_err("connections are refused");
    assert!(matches!(ClientError::from(error), ClientError::Pool(_)));
    // The caller may hear of it before the subscriber does.
    world.until_told("ConnectionCheckOutFailed", 1);
    let reason = world.seen_by(|pools, _| {
        pools.iter().find_map(|(_, event)| {
            let Event::ConnectionCheckOutFailed { error, .. } = event else { return None };
            Some(error.reason())
        })
    });
    assert_eq!(reason, Some(CheckOutFailedReason::ConnectionError));
    world.client.close();
}

// PCR-01, PRD-05, SD-02, SD-40, HS-20
// SD-09: "Connection Pool Management" of SDAM's prose tests. Polled: of a server that streams, the
// next command is one for a round-trip time, whose failure means nothing (SD-42).
fn sdam_heartbeats_make_pools_ready_and_clear_them(shell: Shell) {
    let only = member(Role::Primary);
    let options = "appname=SDAMPoolManagementTest&heartbeatFrequencyMS=500&directConnection=true\
                   &serverMonitoringMode=poll";
    let world = World::of(shell, &[&only], options);
    world.until("ready", |world| world.count("ConnectionPoolReady") == 1);
    let of_servers = world.server_events();
    assert!(of_servers.contains(&"ServerHeartbeatSucceeded"), "{of_servers:?}");
    let data = rawdoc! {
        "failCommands": ["isMaster", "hello"], "errorCode": 1234,
        "appName": "SDAMPoolManagementTest",
    };
    fail_point(&only, data, 2);
    world.until("cleared", |world| world.count("ConnectionPoolCleared") >= 1);
    let failure = world.seen_by(|_, servers| {
        servers.iter().find_map(|event| {
            let SdamEvent::Heartbeat(told) = event else { return None };
            let Heartbeat::ServerHeartbeatFailed { error, .. } = &told.event else { return None };
            Some(error.clone())
        })
    });
    let failure = failure.expect("reported before that");
    assert_eq!(failure.stage(), Stage::Hello, "{failure}");
    assert!(matches!(failure.kind(), Kind::Command(_)), "{failure}");
    world.until("ready again", |world| world.count("ConnectionPoolReady") == 2);
    let pools = world.pool_events();
    let expected = [
        "ConnectionPoolCreated",
        "ConnectionPoolReady",
        "ConnectionPoolCleared",
        "ConnectionPoolReady",
    ];
    assert_eq!(pools, expected);
    world.client.close();
}

// OP-22, SM-03, SM-04, SM-05: SDAM's "Streaming protocol Tests", and Max Staleness' "heartbeatFrequencyMS is configurable". By
// default the fourth would come after thirty seconds.
fn sdam_heartbeats_come_as_often_as_the_option_says(shell: Shell) {
    let modes = [("stream", 2), ("poll", 1)];
    let worlds = [standalone, || member(Role::Primary), || start(Topology::Mongos)].map(|server| {
        modes.map(|(mode, sockets)| {
            let only = server();
            let options = format!("heartbeatFrequencyMS=500&serverMonitoringMode={mode}");
            let begin = Instant::now();
            (begin, World::of(shell, &[&only], &options), only, sockets)
        })
    });
    for (begin, world, only, sockets) in worlds.iter().flatten() {
        let count = || {
            let events = world.server_events();
            events.iter().filter(|&&name| name == "ServerHeartbeatSucceeded").count()
        };
        world.until("four heartbeats", |_| count() >= 4);
        let (counted, after) = (count(), begin.elapsed().as_millis());
        let what = format!("{}: {counted} in {after} ms", world.client.servers()[0]);
        assert!(after < 15_000, "{what}");
        assert!(counted as u128 <= 2 + after / 500, "{what}");
        // OP-30, SM-02, SM-07.
        assert_eq!(open(only), *sockets, "{what}");
        world.client.close();
    }
}

// SM-12: the first of SDAM's "Heartbeat Tests".
fn sdam_a_heartbeat_is_reported_before_its_socket_is_opened(shell: Shell) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let [of_server, of_client] = [(); 2].map(|()| {
        let seen = Arc::clone(&seen);
        move |what: &'static str| seen.lock().expect("no panic").push(what)
    });
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // Ends with the process.
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            of_server("client connected");
            let _ = client.read(&mut [0; 16]);
            of_server("client hello received");
        }
    });
    let subscribers = Subscribers {
        heartbeats: Some(Box::new(move |event| of_client(event.event.name()))),
        ..Subscribers::default()
    };
    let uri = format!("mongodb://{address}/?serverSelectionTimeoutMS=500");
    let client = client(shell, &uri, None, subscribers);
    assert!(client.command("admin", &rawdoc! { "ping": 1 }).is_err());
    until_so(|| match seen.lock().expect("no panic").len() {
        4.. => Ok(()),
        count => Err(format!("{count} so far")),
    });
    client.close();
    let expected = [
        "ServerHeartbeatStarted",
        "client connected",
        "client hello received",
        "ServerHeartbeatFailed",
    ];
    assert_eq!(seen.lock().expect("no panic")[..4], expected);
}

// SM-08: SDAM's "RTT Tests".
fn sdam_round_trip_times_are_updated(shell: Shell) {
    let only = member(Role::Primary);
    let world = World::of(shell, &[&only], "heartbeatFrequencyMS=500&appname=streamingRttTest");
    world.ping();
    // By the hello that the monitor's first socket began with.
    let before = world.client.servers()[0].description.round_trip.expect("it was measured");
    assert!(before.average > Duration::ZERO);
    let data = rawdoc! {
        "failCommands": ["hello"], "blockConnection": true, "blockTimeMS": 500,
        "appName": "streamingRttTest",
    };
    fail_point(&only, data, 1000);
    until_so(|| match world.client.servers()[0].description.round_trip {
        Some(now) if now.average > Duration::from_millis(250) => Ok(()),
        now => Err(format!("{now:?} after {before:?}")),
    });
    world.client.close();
}
