//! The test plan of SDAM, on sockets: what becomes of the topology when an operation fails, which servers are
//! discovered, and how often a server that fails is checked.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::address::ServerAddress;
use cenote_core::client::Selector;
use cenote_core::monitor::Event as Heartbeat;
use cenote_core::topology::{Event, TopologyKind};
use cenote_endpoint::{Endpoint, ReplicaSet, Role, Server};

use crate::sdam_rules::SdamEvent;
use crate::shells::{Shell, on_all_runtimes};
use crate::world::{World, change_set, fail_point, member, standalone, three, until_so};

on_all_runtimes!(
    a_client_is_built_though_no_server_can_be_reached,
    what_an_error_says_about_its_server,
    a_secondary_leads_to_the_primary_unless_the_connection_is_direct,
    a_server_that_fails_is_checked_twice_a_second_at_most,
    the_date_of_the_last_write_is_read,
);

/// So that no check is due while a test looks.
const SLOW: &str = "replicaSet=rs0&heartbeatFrequencyMS=60000&serverMonitoringMode=poll";

/// "All servers unavailable".
// ST-02
fn a_client_is_built_though_no_server_can_be_reached(shell: Shell) {
    let seeds = ["127.0.0.1:1", "127.0.0.1:2"].map(|it| it.parse().expect("an address"));
    let world = World::at(shell, &seeds, "serverSelectionTimeoutMS=200");
    let error = world.command(&rawdoc! { "ping": 1 }).expect_err("nothing listens there");
    for seed in &seeds {
        assert!(error.to_string().contains(&format!("{seed}: Unknown")), "{error}");
    }
    world.client.close();
}

struct Case {
    name: &'static str,
    command: RawDocumentBuf,
    /// Makes the command fail.
    cause: fn(&Endpoint),
    /// Of three members, of which the first is the primary.
    on: usize,
    kind: TopologyKind,
    is_checked_at_once: bool,
    /// In the error that the description of the server keeps.
    says: &'static str,
}

/// The plan wants no immediate check after "not writable primary"; SDAM itself does, and says why.
// SD-26, SD-27, SD-29
fn what_an_error_says_about_its_server(shell: Shell) {
    let insert = rawdoc! { "insert": "birds", "documents": [{}] };
    let (none, with) = (TopologyKind::ReplicaSetNoPrimary, TopologyKind::ReplicaSetWithPrimary);
    let cases = [
        Case {
            name: "Network error writing to primary",
            command: insert.clone(),
            cause: |it| {
                fail_point(it, rawdoc! { "failCommands": ["insert"], "closeConnection": true }, 1);
            },
            on: 0,
            kind: none,
            is_checked_at_once: false,
            says: "closed",
        },
        Case {
            name: "Not writable primary",
            command: rawdoc! { "find": "birds" },
            cause: |it| it.with(Server::step_down),
            on: 0,
            kind: none,
            is_checked_at_once: true,
            says: "13435",
        },
        Case {
            name: "Node is recovering",
            command: rawdoc! { "find": "birds", "$readPreference": { "mode": "secondary" } },
            cause: |it| change_set(it, |set| ReplicaSet { role: Role::Other, ..set }),
            on: 1,
            kind: with,
            is_checked_at_once: true,
            says: "13436",
        },
        Case {
            name: "Node is recovering, as a write concern error",
            command: insert,
            cause: |it| {
                let error = rawdoc! { "code": 91, "errmsg": "Replication is being shut down" };
                fail_point(
                    it,
                    rawdoc! { "failCommands": ["insert"], "writeConcernError": error },
                    1,
                );
            },
            on: 0,
            kind: none,
            is_checked_at_once: true,
            says: "91",
        },
    ];
    cases.iter().for_each(|case| an_error(shell, case));
}

fn an_error(shell: Shell, case: &Case) {
    let set = three();
    let what = case.name;
    let world = World::of(shell, &[&set[0], &set[1], &set[2]], SLOW);
    world.until_all_known();
    let address = set[case.on].address();
    let mut connection = world.check_out(&Selector::Address(address.clone()));
    let before = world.server_events().len();
    (case.cause)(&set[case.on]);
    let reply = connection.command("zoo", &case.command);
    let has_error = |reply: &RawDocumentBuf| reply.get_document("writeConcernError").is_ok();
    assert!(reply.as_ref().map_or(true, has_error), "{what}: {reply:?}");

    // Unknown, with the error, and then the topology without it. What was found before may be told after `before`.
    let change = |told: &[SdamEvent]| {
        let place = (before..told.len()).find(|&place| server_change(&told[place]).is_some())?;
        Some((server_change(&told[place])?, told.get(place + 1)?.topology_kind()))
    };
    world.until(what, |world| world.seen_by(|_, told| change(told).is_some()));
    let ((changed, error), topology) = world.seen_by(|_, told| change(told)).expect("it is there");
    assert_eq!(changed, address, "{what}");
    assert!(error.as_ref().is_some_and(|it| it.contains(case.says)), "{what}: {error:?}");
    assert_eq!(topology, Some(case.kind), "{what}");

    let is_checked = |world: &World| {
        world.seen_by(|_, told| told[before..].iter().any(|event| is_start_at(event, &address)))
    };
    if case.is_checked_at_once {
        world.until("checked", is_checked);
    } else {
        thread::sleep(Duration::from_secs(1));
        assert!(!is_checked(&world), "{what}");
        assert_eq!(world.client.topology().kind, case.kind, "{what}");
    }
    drop(connection);
    world.client.close();
}

/// The server that became Unknown, and why.
fn server_change(event: &SdamEvent) -> Option<(ServerAddress, Option<String>)> {
    let SdamEvent::Topology(told) = event else { return None };
    let Event::ServerDescriptionChanged { address, new, .. } = &told.event else { return None };
    let error = new.error.as_ref().map(ToString::to_string);
    (!new.is_known()).then(|| ((**address).clone(), error))
}

fn is_start_at(event: &SdamEvent, address: &ServerAddress) -> bool {
    let SdamEvent::Heartbeat(told) = event else { return false };
    *told.address == *address && matches!(told.event, Heartbeat::ServerHeartbeatStarted { .. })
}

/// "Topology discovery and direct connection". Without the option the topology is discovered, too.
// SS-10
fn a_secondary_leads_to_the_primary_unless_the_connection_is_direct(shell: Shell) {
    let set = three();
    let insert = rawdoc! { "insert": "birds", "documents": [{}] };
    for (options, is_written) in
        [("directConnection=false", true), ("directConnection=true", false), ("", true)]
    {
        let world = World::of(shell, &[&set[1]], options);
        let outcome = world.command(&insert);
        match &outcome {
            Ok(_) => assert!(is_written, "{options}"),
            Err(error) => {
                assert!(!is_written, "{options}: {error}");
                assert!(error.to_string().contains("10107"), "{error}");
            }
        }
        world.client.close();
    }
}

/// "Monitors sleep at least minHeartbeatFrequencyMS between checks": after five checks that fail, the sixth makes the
/// server known.
// SS-15
fn a_server_that_fails_is_checked_twice_a_second_at_most(shell: Shell) {
    let only = standalone();
    let name = "SDAMMinHeartbeatFrequencyTest";
    let data =
        rawdoc! { "failCommands": ["hello", "isMaster"], "errorCode": 1234, "appName": name };
    fail_point(&only, data, 5);
    // With a pause of the usual ten seconds instead, five of them would be too long.
    let options = format!("directConnection=true&appname={name}&serverSelectionTimeoutMS=20000");
    let begin = Instant::now();
    let world = World::of(shell, &[&only], &options);
    world.ping();
    assert!(begin.elapsed() >= Duration::from_secs(2), "{:?}", begin.elapsed());
    world.client.close();
}

/// Max Staleness' "Parse lastWriteDate": the endpoint writes whenever it is asked.
// SS-05
fn the_date_of_the_last_write_is_read(shell: Shell) {
    let only = member(Role::Primary);
    let world = World::of(shell, &[&only], "heartbeatFrequencyMS=500");
    world.ping();
    let written =
        || world.client.servers()[0].description.hello.as_ref().and_then(|it| it.last_write_ms);
    let first = written().expect("a member says so");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
    let now = i64::try_from(now.as_millis()).expect("not that late");
    assert!((now - 10_000..=now).contains(&first), "{first} at {now}");
    let mut later = first;
    until_so(|| {
        later = written().unwrap_or(first);
        if later > first { Ok(()) } else { Err(format!("still {first}")) }
    });
    assert!(later < first + 10_000, "{later} after {first}");
    world.client.close();
}
