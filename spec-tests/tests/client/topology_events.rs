//! What a client tells its subscribers of its topology and its servers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::monitor::Event as Heartbeat;
use cenote_core::topology::{Event, TopologyKind};
use cenote_endpoint::{Role, Server};

use crate::sdam_rules::SdamEvent;
use crate::shells::{AnyClient, Shell, Subscribers, client, on_all_runtimes};
use crate::world::{World, join, member, standalone, three, until_open, until_so};

on_all_runtimes!(
    everything_is_told_in_its_order,
    two_clients_have_two_topologies,
    a_subscriber_may_use_the_client,
    a_subscriber_that_panics_affects_nothing_else,
    closing_waits_until_everything_is_told,
    a_client_that_is_dropped_tells_its_end,
);

/// One seed, an election, and the end. That all rules about the order are kept, [`World`] checks.
// SE-01, SE-02, SE-03, SE-05
fn everything_is_told_in_its_order(shell: Shell) {
    let set = three();
    let world = World::of(shell, &[&set[1]], "replicaSet=rs0&heartbeatFrequencyMS=60000");
    world.until("found", |world| {
        world.kinds().len() == 3 && world.kinds().iter().all(Option::is_some)
    });
    let primary = |world: &World| {
        let topology = world.client.topology();
        topology.primary().map(|(address, _)| (**address).clone())
    };
    set[0].with(Server::step_down);
    world.until("stepped down", |world| primary(world).is_none());
    set[2].with(Server::step_up);
    world.until("elected", |world| primary(world) == Some(set[2].address()));
    world.client.close();

    let told = world.server_events();
    let begin = ["TopologyOpening", "TopologyDescriptionChanged", "ServerOpening"];
    assert_eq!(told[..3], begin);
    let end = ["ServerClosed", "TopologyDescriptionChanged", "TopologyClosed"];
    assert_eq!(told[told.len() - 5..], [&["ServerClosed"; 2][..], &end].concat());
    let count = |name| told.iter().filter(|it| **it == name).count();
    assert_eq!([count("ServerOpening"), count("ServerClosed")], [3, 3]);
    let kinds = kinds_of(&world);
    let [no_primary, with_primary] =
        [TopologyKind::ReplicaSetNoPrimary, TopologyKind::ReplicaSetWithPrimary];
    assert_eq!(kinds, [no_primary, with_primary, no_primary, with_primary, TopologyKind::Unknown]);
    what_a_check_finds_comes_after_its_end(&world);
}

/// The kinds of the topology, without those that stay.
fn kinds_of(world: &World) -> Vec<TopologyKind> {
    let mut kinds: Vec<_> =
        world.seen_by(|_, told| told.iter().filter_map(SdamEvent::topology_kind).collect());
    kinds.dedup();
    kinds
}

/// No application has failed here: each description is that of a check, and the next one begins later.
// SE-02, SE-06, SE-08
fn what_a_check_finds_comes_after_its_end(world: &World) {
    world.seen_by(|_, told| {
        for (at, event) in told.iter().enumerate() {
            let SdamEvent::Topology(changed) = event else { continue };
            let Event::ServerDescriptionChanged { address, .. } = &changed.event else { continue };
            let before = told[..at].iter().rev().find_map(|it| match it {
                SdamEvent::Heartbeat(beat) if beat.address == *address => Some(&beat.event),
                SdamEvent::Heartbeat(_) | SdamEvent::Topology(_) => None,
            });
            let has_ended = matches!(before, Some(Heartbeat::ServerHeartbeatSucceeded { .. }));
            assert!(has_ended, "event {at}, {event}, after {before:?}");
        }
    });
}

// SE-07
fn two_clients_have_two_topologies(shell: Shell) {
    let only = standalone();
    let ids = [(); 2].map(|()| {
        let world = World::of(shell, &[&only], "");
        world.client.close();
        world.seen_by(|_, told| told[0].topology_id())
    });
    assert_ne!(ids[0], ids[1]);
}

/// Whatever does not wait: nothing is locked while it runs.
fn a_subscriber_may_use_the_client(shell: Shell) {
    let set = three();
    let known: Arc<Mutex<Option<Box<dyn AnyClient>>>> = Arc::default();
    let of_subscriber = Arc::clone(&known);
    let used = Arc::new(AtomicUsize::new(0));
    let uses = Arc::clone(&used);
    let subscribers = Subscribers {
        topology: vec![Box::new(move |_| {
            let Some(client) =
                of_subscriber.lock().expect("no panic").as_ref().map(|it| it.again())
            else {
                return;
            };
            client.request_checks();
            assert!(client.servers().len() <= 3);
            assert_eq!(client.dropped_events(), 0);
            assert!(client.topology().servers().len() <= 3);
            uses.fetch_add(1, Ordering::Relaxed);
        })],
        ..Subscribers::default()
    };
    let uri = format!("mongodb://{}/?replicaSet=rs0", set[0].address());
    let made = client(shell, &uri, None, subscribers);
    *known.lock().expect("no panic") = Some(made.again());
    set[0].with(Server::step_down);
    set[1].with(Server::step_up);
    made.command("admin", &rawdoc! { "ping": 1 }).expect("a primary");
    until_so(|| match used.load(Ordering::Relaxed) {
        0 | 1 => Err("not used".to_owned()),
        _ => Ok(()),
    });
    // It would keep itself.
    known.lock().expect("no panic").take();
    made.close();
}

fn a_subscriber_that_panics_affects_nothing_else(shell: Shell) {
    let only = standalone();
    let (told, telling) = channel();
    let beats = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&beats);
    let subscribers = Subscribers {
        topology: vec![
            Box::new(|_| panic!("on purpose")),
            Box::new(move |event| {
                let _ = told.send(event.event.name());
            }),
        ],
        heartbeats: Some(Box::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        })),
        ..Subscribers::default()
    };
    let client = client(shell, &only.uri(), None, subscribers);
    client.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
    client.close();
    let told: Vec<_> = telling.try_iter().collect();
    let expected = [
        "TopologyOpening",
        "TopologyDescriptionChanged",
        "ServerOpening",
        "ServerDescriptionChanged",
        "TopologyDescriptionChanged",
        "ServerClosed",
        "TopologyDescriptionChanged",
        "TopologyClosed",
    ];
    assert_eq!(told, expected);
    assert!(beats.load(Ordering::Relaxed) >= 2);
    until_open(&only, 0);
}

/// Also if a thread of the application is telling it, in the middle of an event that takes long.
// SE-03
fn closing_waits_until_everything_is_told(shell: Shell) {
    let only = standalone();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = Arc::clone(&told);
    let (entered, is_in) = channel();
    let is_slow = Arc::new(AtomicBool::new(false));
    let takes_long = Arc::clone(&is_slow);
    let subscribers = Subscribers {
        heartbeats: Some(Box::new(move |_| {
            if takes_long.swap(false, Ordering::Relaxed) {
                let _ = entered.send(thread::current().id());
                thread::sleep(Duration::from_millis(500));
            }
        })),
        topology: vec![Box::new(move |event| {
            tells.lock().expect("no panic").push(event.event.name());
        })],
        ..Subscribers::default()
    };
    let options = "heartbeatFrequencyMS=60000&serverMonitoringMode=poll";
    let uri = format!("mongodb://{}/?{options}", only.address());
    let client = client(shell, &uri, None, subscribers);
    client.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
    // The next check begins on request, by the thread that requests it.
    thread::sleep(Duration::from_millis(600));
    thread::scope(|scope| {
        is_slow.store(true, Ordering::Relaxed);
        let requests = scope.spawn(|| client.request_checks());
        let teller = is_in.recv().expect("it is called");
        assert_eq!(teller, requests.thread().id());
        client.close();
        assert_eq!(told.lock().expect("no panic").last(), Some(&"TopologyClosed"));
    });
}

// SE-05
fn a_client_that_is_dropped_tells_its_end(shell: Shell) {
    let only = standalone();
    let (told, telling) = channel();
    let subscribers = Subscribers {
        topology: vec![Box::new(move |event| {
            let _ = told.send(event.event.name());
        })],
        ..Subscribers::default()
    };
    let client = client(shell, &only.uri(), None, subscribers);
    client.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
    drop(client);
    let told: Vec<_> = telling.iter().collect();
    assert_eq!(told.last(), Some(&"TopologyClosed"), "{told:?}");
    until_open(&only, 0);
}

/// Where there are several workers: the servers are found and followed, callers are served, and the events that
/// do not fit are dropped and counted. Of servers that are polled the timer tells that a check begins.
#[test]
fn on_tokio_a_subscriber_that_blocks_delays_no_check() {
    ["stream", "poll"].into_iter().for_each(a_subscriber_blocks);
}

fn a_subscriber_blocks(mode: &str) {
    let set = three();
    let (leave, may_leave) = channel::<()>();
    let may_leave = Mutex::new(may_leave);
    let (entered, is_in) = channel();
    // The thread that makes the client tells the first events.
    let here = thread::current().id();
    let subscribers = Subscribers {
        heartbeats: Some(Box::new(move |heartbeat| {
            let is_start = heartbeat.event.name() == "ServerHeartbeatStarted";
            if is_start && thread::current().id() != here {
                let _ = entered.send(());
                let _ = may_leave.lock().expect("no panic").recv();
            }
        })),
        queue: Some(6),
        ..Subscribers::default()
    };
    let options = format!("replicaSet=rs0&heartbeatFrequencyMS=500&serverMonitoringMode={mode}");
    let uri = format!("mongodb://{}/?{options}", set[1].address());
    let client = client(Shell::Tokio, &uri, None, subscribers);
    is_in.recv().expect("it is called");
    let ping = rawdoc! { "ping": 1 };
    client.command("admin", &ping).expect("the primary is found");
    for (from, to) in [(0, 2), (2, 0)] {
        set[from].with(Server::step_down);
        set[to].with(Server::step_up);
        until_so(|| {
            let topology = client.topology();
            match topology.primary() {
                Some((primary, _)) if **primary == set[to].address() => Ok(()),
                primary => Err(format!("{primary:?}")),
            }
        });
        client.command("admin", &ping).expect("the new primary");
    }
    assert!(client.dropped_events() > 0);
    drop(leave);
    client.close();
    set.iter().for_each(|endpoint| until_open(endpoint, 0));
}

/// When a server goes, before its pool is closed; subscribers of the pool use the client, too.
#[test]
fn on_mio_a_subscriber_may_close_the_client_as_a_server_goes() {
    let [a, b] = [member(Role::Primary), member(Role::Secondary)];
    join(&[&a, &b]);
    let client: Arc<Mutex<Option<cenote_mio::Client>>> = Arc::default();
    let known =
        |client: &Arc<Mutex<Option<cenote_mio::Client>>>| client.lock().expect("no panic").clone();
    let (of_topology, of_pools) = (Arc::clone(&client), Arc::clone(&client));
    let (told, telling) = channel();
    let uri = format!("mongodb://{}/?replicaSet=rs0", a.address());
    let builder = cenote_mio::Client::builder(&uri).expect("a connection string");
    let made = builder
        .on_topology_event(move |event| {
            if let (Event::ServerClosed { .. }, Some(client)) = (&event.event, known(&of_topology))
            {
                client.close();
            }
            let _ = told.send(event.event.name());
        })
        .on_event(move |_| {
            if let Some(client) = known(&of_pools) {
                assert!(client.topology().servers().count() <= 3);
            }
        })
        .build()
        .expect("good options");
    *client.lock().expect("no panic") = Some(made.clone());
    until_so(|| match made.topology().servers().all(|(_, server)| server.kind().is_some()) {
        true => Ok(()),
        false => Err(made.topology().to_string()),
    });
    join(&[&a]);
    let long = Duration::from_secs(30);
    while telling.recv_timeout(long).expect("it came back") != "TopologyClosed" {}
    client.lock().expect("no panic").take();
    made.close();
    [a, b].iter().for_each(|endpoint| until_open(endpoint, 0));
}
