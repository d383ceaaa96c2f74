//! Servers that appear and disappear as fast as a client follows, at least a hundred a second: nothing is left of those
//! that have gone.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_core::address::ServerAddress;
use cenote_core::client::Selector;
use cenote_core::uri::srv::SrvRecord;
use cenote_endpoint::{Endpoint, NameServer, Role, Topology};

use crate::shells::{Shell, on_all_runtimes};
use crate::srv::{PLAIN, SRV};
use crate::world::{World, join, join_at, member, start, until_open, until_so};

on_all_runtimes!(
    members_come_and_go_by_the_hundred,
    routers_come_and_go_by_the_hundred,
    a_member_that_never_pauses_does_not_keep_the_others_waiting,
    nor_does_one_that_names_thirty_others_each_time,
);

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

/// One that streams another list of members each millisecond, with names that do not resolve.
fn a_member_that_never_pauses_does_not_keep_the_others_waiting(shell: Shell) {
    stream_members(shell, 1);
}

fn nor_does_one_that_names_thirty_others_each_time(shell: Shell) {
    stream_members(shell, 30);
}

/// `new` of them each time.
fn stream_members(shell: Shell, new: usize) {
    let (restless, calm) = (member(Role::Primary), member(Role::Secondary));
    join(&[&restless, &calm]);
    let world = World::of(shell, &[&restless, &calm], "replicaSet=rs0");
    world.until_all_known();
    let (begin, is_over) = (Instant::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        let stream = || {
            let mut names = 0..;
            while !is_over.load(Ordering::Relaxed) {
                let name = |number| format!("n{number}.invalid").parse().expect("an address");
                let stay = [restless.address(), calm.address()];
                let listed: Vec<_> =
                    stay.into_iter().chain(names.by_ref().take(new).map(name)).collect();
                join_at(&[&restless], &listed);
                thread::sleep(Duration::from_millis(1));
            }
        };
        scope.spawn(stream);
        while begin.elapsed() < Duration::from_secs(3) {
            let asked = Instant::now();
            let mut connection = world.check_out(&Selector::Address(calm.address()));
            connection.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
            assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
            thread::sleep(Duration::from_millis(10));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // Twenty at once, and ten a second.
    let most = 50.0 + 10.0 * begin.elapsed().as_secs_f64();
    let told = world.server_events();
    let beats = told.iter().filter(|name| **name == "ServerHeartbeatSucceeded").count() as f64;
    assert!((10.0..most).contains(&beats), "{beats} heartbeats, {most} at most");
    world.client.close();
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
