//! `mongodb+srv://` with a name server on the loopback: the servers of its records, and how they are followed.
//!
//! The host is `cluster.0.0.1`, whose domain is `0.0.1`: a server `127.0.0.1` is in it.

use cenote_core::connect::ServerKind::{LoadBalancer, Mongos, RsPrimary, RsSecondary};
use cenote_core::topology::TopologyKind::{LoadBalanced, ReplicaSetWithPrimary, Sharded};
use cenote_core::uri::srv::{SrvRecord, TxtRecord};
use cenote_endpoint::{Endpoint, LoadBalanced as Routers, NameServer, Topology};

use crate::pymongo::world::{SOON, World, address, start, three};

const HOST: &str = "cluster.0.0.1";

fn set(names: &NameServer, endpoints: &[&Endpoint]) {
    let records: Vec<_> = endpoints
        .iter()
        .map(|it| SrvRecord::new("127.0.0.1.", it.address().port().expect("a port")))
        .collect();
    names.set_srv(&format!("_mongodb._tcp.{HOST}"), &records);
}

fn connect(world: &mut World, names: &NameServer) {
    world.connect(&format!("mongodb+srv://{HOST}/?tls=false&{SOON}"), Some(names.address()));
}

#[test]
fn routers_are_followed() {
    let routers = [(); 3].map(|()| start(Topology::Mongos));
    let [first, second, third] = routers.each_ref();
    let [a, b, c] = routers.each_ref().map(address);
    let names = NameServer::start().expect("a port");
    set(&names, &[first, second]);
    let mut world = World::new();
    connect(&mut world, &names);
    world.agree(Sharded, &[(&a, Some(Mongos)), (&b, Some(Mongos))]);
    set(&names, &[first, second, third]);
    world.agree(Sharded, &[(&a, Some(Mongos)), (&b, Some(Mongos)), (&c, Some(Mongos))]);
    set(&names, &[third]);
    world.agree(Sharded, &[(&c, Some(Mongos))]);
}

#[test]
fn a_seed_of_a_replica_set_and_a_load_balancer() {
    let members = three();
    let [a, b, c] = members.each_ref().map(address);
    let names = NameServer::start().expect("a port");
    set(&names, &[&members[1]]);
    names.set_txt(HOST, &[TxtRecord::from("replicaSet=rs0")]);
    let mut world = World::new();
    connect(&mut world, &names);
    let found = [(&*a, Some(RsPrimary)), (&b, Some(RsSecondary)), (&c, Some(RsSecondary))];
    world.agree(ReplicaSetWithPrimary, &found);

    let balancer = start(Topology::LoadBalanced(Routers { services: 2 }));
    set(&names, &[&balancer]);
    names.set_txt(HOST, &[TxtRecord::from("loadBalanced=true")]);
    connect(&mut world, &names);
    world.agree(LoadBalanced, &[(&address(&balancer), Some(LoadBalancer))]);
}
