//! Any inputs in any order: nothing panics, and what is promised to embedders holds. The books are those of
//! [`World`]: each server is added once and removed once, and events tell of every change.

use std::sync::Arc;

use cenote_core::connect::ServerKind;
use cenote_core::sdam::TopologyVersion;
use cenote_core::topology::{Input, TopologyKind};
use proptest::prelude::*;

use crate::world::{World, address, elected, member, router, standalone};

const HOSTS: [&str; 5] = ["a:27017", "b:27017", "c:27017", "d:27017", "e:27017"];

#[derive(Clone, Debug)]
enum Step {
    Reply {
        server: usize,
        role: usize,
        hosts: u8,
        election: u8,
        set_version: i64,
        counter: Option<i64>,
    },
    Fail {
        server: usize,
    },
    Hosts {
        hosts: u8,
    },
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let reply = (0..5_usize, 0..7_usize, 1..32_u8, 0..4_u8, 0..3_i64, prop::option::of(0..4_i64));
    let step = prop_oneof![
        12 => reply.prop_map(|(server, role, hosts, election, set_version, counter)| Step::Reply {
            server, role, hosts, election, set_version, counter
        }),
        3 => (0..5_usize).prop_map(|server| Step::Fail { server }),
        1 => (0..32_u8).prop_map(|hosts| Step::Hosts { hosts }),
        1 => prop::bool::weighted(0.1).prop_map(|close| {
            if close { Step::Close } else { Step::Fail { server: 0 } }
        }),
    ];
    proptest::collection::vec(step, 0..80)
}

fn named(hosts: u8) -> Vec<&'static str> {
    (0..5).filter(|bit| hosts & (1 << bit) != 0).map(|bit| HOSTS[bit]).collect()
}

fn reply(step: &Step) -> Option<bson::RawDocumentBuf> {
    let Step::Reply { role, hosts, election, set_version, counter, .. } = step else { return None };
    let hosts = named(*hosts);
    let mut reply = match role {
        0..=2 => elected(&hosts, *election, *set_version),
        3 => member("rs", "secondary", &hosts),
        4 => member("other", "primary", &hosts),
        5 => router(),
        _ => standalone(),
    };
    if let Some(counter) = counter {
        let process_id = bson::oid::ObjectId::from_bytes([7; 12]);
        let version = bson::rawdoc! { "processId": process_id, "counter": *counter };
        reply.append(bson::cstr!("topologyVersion"), version);
    }
    Some(reply)
}

fn version(world: &World, server: &str) -> Option<TopologyVersion> {
    world.topology.description().server(&address(server))?.topology_version
}

fn feed(world: &mut World, step: &Step) {
    match step {
        Step::Reply { server, .. } => world.reply(HOSTS[*server], &reply(step).expect("a reply")),
        Step::Fail { server } => world.fail(HOSTS[*server]),
        Step::Hosts { hosts } => {
            world.feed(Input::Hosts { hosts: named(*hosts).into_iter().map(address).collect() });
        }
        Step::Close => world.feed(Input::Close),
    }
}

/// At most one primary is believed, the type says whether there is one, and a server of the wrong kind or set stays
/// nowhere.
fn check_description(world: &World) {
    let description = world.topology.description();
    let of =
        |wanted| description.servers().filter(|(_, server)| server.kind() == Some(wanted)).count();
    let primaries = of(ServerKind::RsPrimary);
    match description.kind {
        TopologyKind::ReplicaSetWithPrimary => assert_eq!(primaries, 1),
        TopologyKind::ReplicaSetNoPrimary | TopologyKind::Unknown | TopologyKind::Sharded => {
            assert_eq!(primaries, 0);
        }
        TopologyKind::Single | TopologyKind::LoadBalanced => {
            assert_eq!(description.servers().len(), 1);
        }
        _ => unreachable!("no other type"),
    }
    if description.kind.is_replica_set() {
        assert_eq!(of(ServerKind::Mongos) + of(ServerKind::Standalone), 0);
        let mut names = description.servers().filter_map(|(_, server)| server.set_name());
        assert!(names.all(|name| Some(name) == description.set_name.as_deref()));
    }
    assert!(description.excluded().all(|(host, _)| description.server(host).is_none()));
}

/// A primary that is believed has the highest election that was ever accepted.
fn check_election(world: &World, highest: &mut Option<([u8; 12], i64)>) {
    let Some((_, primary)) = world.topology.description().primary() else { return };
    let said = primary.membership().expect("a member");
    let election = said.election_id.zip(said.set_version);
    if world.topology.description().kind == TopologyKind::Single {
        return;
    }
    assert!(election >= *highest, "{election:?} after {highest:?}");
    *highest = election.max(*highest);
}

fn uri() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "mongodb://a,b,c",
        "mongodb://a",
        "mongodb://a,b/?replicaSet=rs",
        "mongodb://a/?replicaSet=rs",
        "mongodb://a/?directConnection=true",
        "mongodb://a/?loadBalanced=true",
    ])
}

proptest! {
    #[test]
    fn one_primary_at_most_and_never_a_stale_one(uri in uri(), steps in steps()) {
        let mut world = World::new(uri);
        let mut highest = None;
        let mut is_closed = false;
        for step in &steps {
            is_closed |= matches!(step, Step::Close);
            let server = if let Step::Reply { server, .. } = step { HOSTS[*server] } else { HOSTS[0] };
            let known = world.topology.description().server(&address(server)).cloned();
            feed(&mut world, step);
            if is_closed {
                prop_assert!(world.servers.is_empty());
                break;
            }
            check_description(&world);
            check_election(&world, &mut highest);
            // An older version of a server's state changes nothing in its description.
            if let (Step::Reply { counter: Some(counter), .. }, Some(known)) = (step, known) {
                let is_older =
                    known.topology_version.is_some_and(|version| version.counter > *counter);
                let now = world.topology.description().server(&address(server));
                prop_assert!(!is_older || now.is_some_and(|now| Arc::ptr_eq(now, &known)));
                prop_assert!(!is_older || version(&world, server) == known.topology_version);
            }
        }
        world.feed(Input::Close);
        prop_assert!(world.servers.is_empty());
    }

    #[test]
    fn the_same_inputs_give_the_same_topology(uri in uri(), steps in steps()) {
        let mut worlds = [World::new(uri), World::new(uri)];
        for step in &steps {
            worlds.iter_mut().for_each(|world| feed(world, step));
        }
        prop_assert_eq!(worlds[0].shown(), worlds[1].shown());
        prop_assert_eq!(&worlds[0].events, &worlds[1].events);
    }
}
