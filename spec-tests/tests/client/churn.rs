//! Servers that appear and disappear as fast as a client follows, at least a hundred a second: nothing is left of those
//! that have gone.

use std::collections::BTreeSet;
use std::time::Instant;

use cenote_core::address::ServerAddress;
use cenote_core::uri::srv::SrvRecord;
use cenote_endpoint::{Endpoint, NameServer, Role, Topology};

use crate::shells::{Shell, on_all_runtimes};
use crate::srv::{PLAIN, SRV};
use crate::world::{World, join_at, member, start, until_open, until_so};

on_all_runtimes!(members_come_and_go_by_the_hundred, routers_come_and_go_by_the_hundred);

/// How many servers appear in each step, and as many disappear.
const STEP: usize = 10;

/// How many are there at a time, besides the one that stays.
const THERE: usize = 30;

/// How many there are in all.
const ALL: usize = 120;

/// Each pool opens a connection as soon as it is ready.
const OPTIONS: &str = "minPoolSize=1&heartbeatFrequencyMS=60000";

/// Every fourth is a server; at the other addresses nothing listens.
struct Crowd {
    servers: Vec<Endpoint>,
    addresses: Vec<ServerAddress>,
}

impl Crowd {
    fn new(start: impl Fn() -> Endpoint) -> Self {
        let servers: Vec<_> = (0..ALL / 4).map(|_| start()).collect();
        let address = |at: usize| match at % 4 {
            0 => servers[at / 4].address(),
            _ => format!("127.0.0.1:{}", at + 1).parse().expect("an address"),
        };
        Self { addresses: (0..ALL).map(address).collect(), servers }
    }

    /// The addresses of one step, after that of the server that stays.
    fn step(&self, step: usize, stays: &Endpoint) -> Vec<ServerAddress> {
        let there = self.addresses.iter().cycle().skip(step * STEP).take(THERE);
        [stays.address()].into_iter().chain(there.cloned()).collect()
    }

    /// Lists the addresses of each step in turn; in the end the one server is left, with the sockets of its monitor and
    /// one of its pool.
    fn come_and_go(
        &self,
        steps: usize,
        world: &World,
        stays: &Endpoint,
        list: impl Fn(&[ServerAddress]),
    ) {
        let until_there = |listed: &[ServerAddress]| {
            list(listed);
            let listed: BTreeSet<_> = listed.iter().cloned().collect();
            until_so(|| {
                let servers = world.client.servers();
                let there: BTreeSet<_> = servers.iter().map(|it| (*it.address).clone()).collect();
                if there == listed { Ok(()) } else { Err(format!("{there:?}, not {listed:?}")) }
            });
        };
        let begin = Instant::now();
        (0..steps).for_each(|step| until_there(&self.step(step, stays)));
        let a_second = (steps * 2 * STEP) as f64 / begin.elapsed().as_secs_f64();
        assert!(a_second >= 10.0, "{a_second} servers appear or disappear a second");
        until_there(&[stays.address()]);
        let added = THERE + (steps - 1) * STEP;
        world.until_told("ConnectionPoolClosed", added);
        assert_eq!(world.count("ConnectionPoolCreated"), added + 1);
        self.servers.iter().for_each(|gone| until_open(gone, 0));
        until_so(|| match world.pools() {
            1 => Ok(()),
            pools => Err(format!("{pools} pools are left in memory")),
        });
        world.ping();
        until_open(stays, 3);
        world.client.close();
        until_open(stays, 0);
    }
}

fn members_come_and_go_by_the_hundred(shell: Shell) {
    let primary = member(Role::Primary);
    let crowd = Crowd::new(|| {
        let member = member(Role::Secondary);
        join_at(&[&member], &[member.address()]);
        member
    });
    let world = World::of(shell, &[&primary], &format!("replicaSet=rs0&{OPTIONS}"));
    crowd.come_and_go(60, &world, &primary, |listed| join_at(&[&primary], listed));
}

fn routers_come_and_go_by_the_hundred(shell: Shell) {
    let router = start(Topology::Mongos);
    let crowd = Crowd::new(|| start(Topology::Mongos));
    let names = NameServer::start().expect("a port");
    let list = |listed: &[ServerAddress]| {
        let port = |address: &ServerAddress| address.port().expect("a port");
        let records = listed.iter().map(|it| SrvRecord::new("127.0.0.1.", port(it)));
        names.set_srv(SRV, &records.collect::<Vec<_>>());
    };
    list(&[router.address()]);
    let world = World::srv(shell, &format!("{PLAIN}&minPoolSize=1"), &names).expect("a client");
    // The records are looked up ten times a second.
    crowd.come_and_go(30, &world, &router, list);
}
