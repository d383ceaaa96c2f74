//! `mongodb+srv://` with a real name server on the loopback.
//!
//! The host is `cluster.0.0.1`, whose domain is `0.0.1`: a server `127.0.0.1` is in it, and the operating system knows
//! its address without a name server.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_core::client::Selector;
use cenote_core::connect::ServerKind;
use cenote_core::uri::srv::{SrvRecord, TxtRecord};
use cenote_endpoint::{
    Endpoint, ListenOptions, NameServer, NameServerFault, Role, Settings, Topology, User,
};
use cenote_shell::client::ClientBuildError;
use cenote_shell::error::CloseTimeout;
use serde_json::Value;

use crate::load_balanced::balanced;
use crate::shells::{Shell, on_all_runtimes};
use crate::world::{World, member, open, standalone, start, until_open, until_so};

on_all_runtimes!(
    servers_are_looked_up_with_tls,
    the_txt_record_sets_options,
    routers_are_followed,
    added_routers_are_shown_to_inspectors,
    a_connection_in_use_survives_its_server,
    bad_answers_leave_the_servers,
    members_of_a_replica_set_are_not_followed,
    a_load_balancer_is_not_followed,
    a_long_answer_comes_by_tcp,
    bad_answers_are_precise_errors,
    a_silent_name_server_ends_in_time,
);

pub(crate) const SRV: &str = "_mongodb._tcp.cluster.0.0.1";
pub(crate) const HOST: &str = "cluster.0.0.1";
pub(crate) const PLAIN: &str = "mongodb+srv://cluster.0.0.1/?tls=false&heartbeatFrequencyMS=500";

fn names(endpoints: &[&Endpoint]) -> NameServer {
    let names = NameServer::start().expect("a port");
    name(&names, endpoints);
    names
}

fn name(names: &NameServer, endpoints: &[&Endpoint]) {
    let records: Vec<_> = endpoints.iter().map(|endpoint| record(endpoint)).collect();
    names.set_srv(SRV, &records);
}

pub(crate) fn record(endpoint: &Endpoint) -> SrvRecord {
    SrvRecord::new("127.0.0.1.", endpoint.address().port().expect("a port"))
}

pub(crate) fn router() -> Endpoint {
    start(Topology::Mongos)
}

pub(crate) fn addresses(world: &World) -> Vec<String> {
    world.client.servers().iter().map(|server| server.address.to_string()).collect()
}

/// In any order: servers that stay keep their places, and new ones come after them.
fn are(world: &World, endpoints: &[&Endpoint]) -> bool {
    let sorted = |mut addresses: Vec<String>| {
        addresses.sort();
        addresses
    };
    let expected = endpoints.iter().map(|it| it.address().to_string()).collect();
    sorted(addresses(world)) == sorted(expected)
}

fn until_are(world: &World, endpoints: &[&Endpoint]) {
    until_so(
        || if are(world, endpoints) { Ok(()) } else { Err(format!("{:?}", addresses(world))) },
    );
}

/// Until the name server was asked so often again: what an earlier answer said has been done by then, because a
/// client asks again after that.
fn until_asked(names: &NameServer, times: u64) {
    let end = names.questions() + times;
    until_so(|| match names.questions() {
        asked if asked >= end => Ok(()),
        asked => Err(format!("asked {asked} times, not {end}")),
    });
}

// TL-01, SV-01, OP-53: TLS is on without a word about it.
fn servers_are_looked_up_with_tls(shell: Shell) {
    let settings = || Settings { topology: Topology::Mongos, ..Settings::default() };
    let endpoint = Endpoint::start(settings(), ListenOptions::with_tls()).expect("it starts");
    let names = names(&[&endpoint]);
    let own = endpoint.uri();
    let (_, options) = own.split_once("/?").expect("options");
    let options: Vec<_> = options.split('&').filter(|pair| !pair.starts_with("tls=")).collect();
    let uri = format!("mongodb+srv://{HOST}/?{}", options.join("&"));
    let world = World::srv(shell, &uri, &names).expect("a client");
    assert!(are(&world, &[&endpoint]));
    world.ping();
    world.until_all_known();
    assert_eq!(world.kinds(), [Some(ServerKind::Mongos)]);
    world.client.close();
}

// SV-06
fn the_txt_record_sets_options(shell: Shell) {
    let primary = member(Role::Primary);
    let names = names(&[&primary]);
    names.set_txt(HOST, &[TxtRecord::from("replicaSet=rs1")]);
    let world = World::srv(shell, PLAIN, &names).expect("a client");
    let error = world.client.check_out(&Selector::Any).map(drop).expect_err("another set");
    assert!(error.to_string().contains("the replica set `rs0`, not to `rs1`"), "{error}");
    world.client.close();

    // A user of another database than admin.
    let users = vec![User { database: "shop".to_owned(), ..User::new("app", "pencil") }];
    let settings =
        Settings { auth: true, topology: Topology::Mongos, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    name(&names, &[&endpoint]);
    let uri = PLAIN.replace("://", "://app:pencil@");
    for (txt, is_let_in) in [("authSource=shop", true), ("authSource=zoo", false)] {
        names.set_txt(HOST, &[TxtRecord::from(txt)]);
        let world = World::srv(shell, &uri, &names).expect("a client");
        let pinged = world.client.command("admin", &rawdoc! { "ping": 1 });
        assert_eq!(pinged.is_ok(), is_let_in, "{txt}: {pinged:?}");
        world.client.close();
    }
}

/// What stays is left alone, what goes is closed.
// SV-13
fn routers_are_followed(shell: Shell) {
    let [a, b, c, d] = [router(), router(), router(), router()];
    let names = names(&[&a, &b]);
    let world = World::srv(shell, PLAIN, &names).expect("a client");
    world.until_all_known();
    let generation = world.client.servers()[0].pool.generation;
    for now in [&[&a, &b, &c][..], &[&a, &c], &[&c, &a], &[&a, &d], &[&a]] {
        name(&names, now);
        until_are(&world, now);
        world.until_all_known();
        world.ping();
    }
    assert_eq!(world.client.servers()[0].pool.generation, generation, "never touched");
    // Four pools in all, of which three were closed again.
    world.until_told("ConnectionPoolClosed", 3);
    assert_eq!(world.count("ConnectionPoolCreated"), 4);
    for gone in [&b, &c, &d] {
        until_open(gone, 0);
    }
    name(&names, &[&c, &d]);
    until_are(&world, &[&c, &d]);
    until_open(&a, 0);
    world.ping();
    world.client.close();
    for gone in [&a, &b, &c, &d] {
        until_open(gone, 0);
    }
}

/// Also to an inspector that was there before, and the others keep their numbers.
fn added_routers_are_shown_to_inspectors(shell: Shell) {
    let [a, b, c] = [router(), router(), router()];
    let names = names(&[&a, &b]);
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("pools.sock");
    let world = World::srv_at(shell, PLAIN, &names, &socket).expect("a client");
    let stream = UnixStream::connect(&socket).expect("an inspector");
    let mut lines = BufReader::new(&stream).lines();
    let mut ask = |request: &str| -> Value {
        (&stream).write_all(request.as_bytes()).expect("it listens");
        let line = lines.next().expect("an answer").expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    };
    assert_eq!(ask("")["pools"], 2, "the greeting");
    let mut status = |number: u64, endpoint: &Endpoint| -> Option<String> {
        let answer = ask("pools\n");
        let mut pools = answer["pools"].as_array().expect("a list").iter();
        let pool = pools.find(|it| it["address"] == endpoint.address().to_string())?;
        assert_eq!(pool["pool"], number);
        Some(pool["status"].as_str().expect("a status").to_owned())
    };
    let expect = |seen: Option<String>, expected: &[Option<&str>]| match seen.as_deref() {
        seen if expected.contains(&seen) => Ok(()),
        seen => Err(format!("{seen:?}")),
    };
    name(&names, &[&a, &b, &c]);
    until_so(|| expect(status(3, &c), &[Some("ready")]));
    name(&names, &[&a, &c]);
    // It is shown as long as the client has not forgotten it.
    until_so(|| expect(status(2, &b), &[Some("closed"), None]));
    until_so(|| expect(status(1, &a), &[Some("ready")]));
    // The new one is watched as the others are.
    let mut held = Vec::new();
    until_so(|| {
        held.push(world.client.check_out(&Selector::Any).expect("a connection"));
        let connections = ask("pool 3\n")["pool"]["connections"].clone();
        match connections.as_array().expect("a list").iter().find(|it| it["state"] == "inUse") {
            Some(used) if used["place"].is_string() => Ok(()),
            found => Err(format!("{found:?}")),
        }
    });
    drop(held);
    world.client.close();
    assert!(!socket.exists());
}

// SV-13
fn a_connection_in_use_survives_its_server(shell: Shell) {
    let [a, b] = [router(), router()];
    let names = names(&[&a]);
    let world = World::srv(shell, PLAIN, &names).expect("a client");
    let mut connection = world.check_out(&Selector::Any);
    name(&names, &[&b]);
    until_are(&world, &[&b]);
    connection.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
    assert_eq!(
        world.client.close_within(Duration::from_millis(50)),
        Err(CloseTimeout { in_use: 1 }),
        "it is waited for"
    );
    drop(connection);
    until_open(&a, 0);
    world.client.close();
    until_open(&b, 0);
}

/// The prose tests 6 to 8: after them heartbeatFrequencyMS, 500 ms, is the pause.
// SV-12, SV-14, SV-16
fn bad_answers_leave_the_servers(shell: Shell) {
    let [a, b, c] = [router(), router(), router()];
    let names = names(&[&a, &b]);
    let uri = format!("{PLAIN}&connectTimeoutMS=300");
    let world = World::srv(shell, &uri, &names).expect("a client");
    let look_twice = || {
        until_asked(&names, 2);
        assert!(are(&world, &[&a, &b]), "{:?}", addresses(&world));
    };
    for fault in [NameServerFault::Silent, NameServerFault::Failing] {
        names.set_fault(Some(fault));
        look_twice();
        names.set_fault(None);
    }
    names.set_srv(SRV, &[]);
    look_twice();
    names.set_txt("_mongodb._tcp.cluster.0.0.1", &[TxtRecord::from("x")]);
    look_twice();
    names.set_srv(SRV, &[SrvRecord::new("db.evil.com.", 1)]);
    look_twice();
    world.ping();
    name(&names, &[&c]);
    until_are(&world, &[&c]);
    world.ping();
    world.client.close();
}

/// Such a client asks no more once it has found what its servers are.
fn is_not_followed(shell: Shell, endpoint: &Endpoint, txt: &[TxtRecord]) {
    let names = names(&[endpoint]);
    names.set_txt(HOST, txt);
    let world = World::srv(shell, PLAIN, &names).expect("a client");
    world.until_all_known();
    world.ping();
    // A look that was under way has ended by then.
    std::thread::sleep(Duration::from_millis(500));
    let asked = names.questions();
    name(&names, &[endpoint, &standalone()]);
    std::thread::sleep(5 * World::SRV_INTERVAL);
    assert_eq!(names.questions(), asked);
    assert!(are(&world, &[endpoint]));
    world.client.close();
    until_open(endpoint, 0);
}

// SV-10
fn members_of_a_replica_set_are_not_followed(shell: Shell) {
    is_not_followed(shell, &member(Role::Primary), &[]);
}

/// The prose test 9.
// LB-40, SV-10
fn a_load_balancer_is_not_followed(shell: Shell) {
    is_not_followed(shell, &balanced(), &[TxtRecord::from("loadBalanced=true")]);
}

// OP-53: srvMaxHosts, too.
fn a_long_answer_comes_by_tcp(shell: Shell) {
    let endpoint = router();
    let names = names(&[]);
    // Too long for a datagram, whose limit is 1,232 bytes.
    let elsewhere = (1..=200).map(|port| SrvRecord::new("127.0.0.1.", port));
    let records: Vec<_> = elsewhere.chain([record(&endpoint)]).collect();
    names.set_srv(SRV, &records);
    let world = World::srv(shell, &format!("{PLAIN}&srvMaxHosts=2"), &names).expect("a client");
    assert_eq!(world.client.servers().len(), 2);
    assert!(names.questions() >= 3, "once more for SRV");
    world.client.close();
}

// SV-04, SV-05
fn bad_answers_are_precise_errors(shell: Shell) {
    let names = names(&[]);
    let uri = "mongodb+srv://bob:hunter2@cluster.0.0.1/?tls=false&connectTimeoutMS=5000";
    let error = |what: &str| {
        let error = World::srv(shell, uri, &names).map(drop).expect_err(what);
        assert!(matches!(error, ClientBuildError::Srv(_)), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        let text = error.to_string();
        assert!(text.contains(HOST) && text.contains(what), "{text}");
    };
    error("the name does not exist");
    names.set_txt(SRV, &[TxtRecord::from("x")]);
    error("the name has no such records");
    names.set_fault(Some(NameServerFault::Failing));
    error("the name server answered");
    names.set_fault(None);
    names.set_srv(SRV, &[SrvRecord::new("db.evil.com.", 27017)]);
    error("db.evil.com., which is not below 0.0.1");
    names.set_srv(SRV, &[SrvRecord::new("127.0.0.1.", 27017)]);
    names.set_txt(HOST, &[TxtRecord::from("a=b")]);
    error("sets a, but may only set");
    names.set_txt(HOST, &[TxtRecord::from("replicaSet=a"), TxtRecord::from("replicaSet=b")]);
    error("2 TXT records");
    names.set_txt(HOST, &[TxtRecord::from("loadBalanced=true&replicaSet=a")]);
    error("loadBalanced=true and replicaSet exclude each other");
}

// SV-16
fn a_silent_name_server_ends_in_time(shell: Shell) {
    let names = names(&[]);
    names.set_fault(Some(NameServerFault::Silent));
    let began = Instant::now();
    let uri = format!("{PLAIN}&connectTimeoutMS=200");
    let error = World::srv(shell, &uri, &names).map(drop).expect_err("no answer").to_string();
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert!(error.contains("no name server answered within 200ms"), "{error}");
}

/// On tokio the servers are looked up before the client is built.
#[tokio::test]
async fn an_unresolved_connection_string_is_an_error() {
    let error = cenote_tokio::Client::new(PLAIN).expect_err("no hosts").to_string();
    assert!(error.contains("cluster.0.0.1") && error.contains("Client::connect_to"), "{error}");
    let error = cenote_tokio::Pool::connect_to(PLAIN).expect_err("no hosts").to_string();
    assert!(error.contains("use a client"), "{error}");
    let endpoint = standalone();
    let client = cenote_tokio::Client::connect_to(&endpoint.uri()).await.expect("hosts");
    client.command("admin", &rawdoc! { "ping": 1 }).await.expect("a reply");
    assert!(open(&endpoint) > 0);
    client.close().await;
}
