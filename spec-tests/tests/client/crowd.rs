//! Many sockets, many clients, many pools.

use std::thread;

use bson::rawdoc;
use cenote_core::client::Selector;
use cenote_endpoint::Topology;

use crate::shells::{AnyConnection, Shell, on_all_runtimes};
use crate::world::{World, sockets_to, start, three, until_open, until_so};

on_all_runtimes!(a_hundred_a_server_and_two_more, fifty_clients_of_twenty_pools);

// PS-06, SD-50, ND-02, ND-03: 106 sockets if only the primary is used, 306 if all three are, as the operating system
// counts them.
fn a_hundred_a_server_and_two_more(shell: Shell) {
    let set = three();
    let options = "replicaSet=rs0&maxConnecting=20";
    let world = World::of(shell, &[&set[0], &set[1], &set[2]], options);
    world.until_all_known();
    let mut out: Vec<Box<dyn AnyConnection>> = Vec::new();
    for (used, all) in [(0..1, 106), (1..3, 306)] {
        for endpoint in &set[used] {
            out.extend(a_hundred(&world, endpoint));
        }
        // The table may change while it is read.
        until_so(|| match set.iter().map(sockets_to).sum::<u64>() {
            open if open == all => Ok(()),
            open => Err(format!("{open} sockets, not {all}")),
        });
    }
    drop(out);
    world.client.close();
    assert_eq!(set.iter().map(sockets_to).sum::<u64>(), 0);
}

fn a_hundred(world: &World, of: &cenote_endpoint::Endpoint) -> Vec<Box<dyn AnyConnection>> {
    let ask = || {
        world.client.pool(&of.address()).expect("of this client").check_out().expect("a connection")
    };
    thread::scope(|scope| {
        let asking: Vec<_> = (0..100).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|asking| asking.join().expect("no panic")).collect()
    })
}

/// Fifty clients of twenty routers each: a thousand pools and a thousand monitors in one process.
fn fifty_clients_of_twenty_pools(shell: Shell) {
    let endpoints: Vec<_> = (0..20).map(|_| start(Topology::Mongos)).collect();
    let references: Vec<_> = endpoints.iter().collect();
    let worlds: Vec<_> = (0..50).map(|_| World::of(shell, &references, "")).collect();
    let ping_all = |world: &World| {
        for endpoint in &endpoints {
            let mut connection = world.check_out(&Selector::Address(endpoint.address()));
            connection.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
        }
    };
    thread::scope(|scope| {
        worlds.iter().for_each(|world| drop(scope.spawn(|| ping_all(world))));
    });
    for world in &worlds {
        assert_eq!(world.count("ConnectionPoolCleared"), 0);
        world.client.close();
    }
    for endpoint in &endpoints {
        until_open(endpoint, 0);
    }
}
