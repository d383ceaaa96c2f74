//! Any inputs in any order: nothing panics, and what is promised to embedders holds. The books are those of
//! [`World`]: each server is added once and removed once, and events tell of every change.

use std::sync::Arc;

use cenote_core::connect::ServerKind;
use cenote_core::pool::Instant;
use cenote_core::sdam::TopologyVersion;
use cenote_core::topology::{Input, TopologyKind};
use proptest::prelude::*;

use crate::topology::steps::{HOSTS, Step, input, steps, uri};
use crate::topology::world::{World, address};

fn version(world: &World, server: &str) -> Option<TopologyVersion> {
    world.topology.description().server(&address(server))?.topology_version
}

fn feed(world: &mut World, step: &Step) {
    world.feed(input(step, Instant::ORIGIN, &world.ids));
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

proptest! {
    // ST-08
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
