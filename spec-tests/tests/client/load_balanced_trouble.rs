//! Four services behind one port, which fall silent, break, go away and come back.

use std::collections::BTreeSet;

use bson::rawdoc;
use cenote_core::client::Selector;
use cenote_core::connect::ServerKind;
use cenote_core::pool::{Event, ServiceId};
use cenote_endpoint::{Ending, Endpoint, Fault, Script, Server};

use crate::load_balanced::balanced;
use crate::shells::{AnyConnection, Shell, on_all_runtimes};
use crate::world::{World, fail_point, tell};

on_all_runtimes!(
    all_connections_are_reset,
    a_service_that_stalls,
    the_balancer_goes_and_comes_back
);

/// Eight connections, two of each service.
fn eight(world: &World) -> Vec<Box<dyn AnyConnection>> {
    (0..8).map(|_| world.check_out(&Selector::Any)).collect()
}

/// The services that were cleared, each as often as it was.
fn cleared(world: &World) -> Vec<Option<ServiceId>> {
    world.seen_by(|pools, _| {
        let services = pools.iter().filter_map(|(_, event)| {
            let Event::ConnectionPoolCleared { service_id, .. } = event else { return None };
            Some(*service_id)
        });
        services.collect()
    })
}

fn ping_each(connections: &mut [Box<dyn AnyConnection>]) -> usize {
    let ping = rawdoc! { "ping": 1 };
    connections.iter_mut().filter_map(|it| it.command("admin", &ping).ok()).count()
}

fn is_ready(world: &World) -> bool {
    world.kinds() == [Some(ServerKind::LoadBalancer)] && world.count("ConnectionPoolReady") == 1
}

// CLB-04, CLB-07, LB-22, SD-20: each service is cleared by the first of its connections that fails, and by no other;
// the pool stays ready, and the next operation works.
fn all_connections_are_reset(shell: Shell) {
    let endpoint = balanced();
    let world = World::of(shell, &[&endpoint], "loadBalanced=true&maxConnecting=8");
    let mut out = eight(&world);
    assert_eq!(ping_each(&mut out), 8);
    tell(&endpoint, |server, now| server.break_connections(now, Ending::Reset, None));
    assert_eq!(ping_each(&mut out), 0);
    drop(out);
    world.until_told("ConnectionPoolCleared", 4);
    let cleared = cleared(&world);
    let services: BTreeSet<_> = cleared.iter().flatten().map(|it| format!("{it:?}")).collect();
    assert_eq!(services.len(), 4, "{cleared:?}");
    assert!(is_ready(&world));
    world.ping();
    world.client.close();
}

// SD-25: there is no monitor, so socketTimeoutMS ends the waits. A timeout clears nothing;
// the connection itself is not used again.
fn a_service_that_stalls(shell: Shell) {
    let endpoint: Endpoint = balanced();
    let world = World::of(shell, &[&endpoint], "loadBalanced=true&socketTimeoutMS=1000");
    let mut out = eight(&world);
    let data = rawdoc! { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 5000 };
    fail_point(&endpoint, data, 1);
    assert_eq!(ping_each(&mut out), 7);
    drop(out);
    assert_eq!(cleared(&world), []);
    assert_eq!(world.client.servers()[0].pool.total, 7);
    assert!(is_ready(&world));
    world.ping();
    world.client.close();
}

// LB-20: what fails before hello says nothing of any service. As soon as the server listens
// again, the next request is served.
fn the_balancer_goes_and_comes_back(shell: Shell) {
    let endpoint = balanced();
    let world = World::of(shell, &[&endpoint], "loadBalanced=true&connectTimeoutMS=2000");
    world.ping();
    tell(&endpoint, |server, now| {
        server.set_fault(now, Script::new(Fault::Refuse));
        server.break_connections(now, Ending::Close, None);
    });
    let ping = rawdoc! { "ping": 1 };
    let failed = (0..5).filter(|_| world.client.command("admin", &ping).is_err()).count();
    assert_eq!(failed, 5);
    assert!(cleared(&world).len() <= 1, "only by the connection that was open");
    assert!(is_ready(&world));
    tell(&endpoint, Server::restart);
    tell(&endpoint, Server::clear_faults);
    world.ping();
    world.client.close();
}
