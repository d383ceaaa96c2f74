//! What the specifications of SRV records describe in words, with a name server on the loopback: which servers an
//! answer may name, and how routers are followed. Tests 6 to 9 about the latter are in `srv.rs`.

use cenote_core::uri::srv::{LookupError, SrvError, SrvRecord};
use cenote_endpoint::{Endpoint, NameServer};
use cenote_shell::client::ClientBuildError;

use crate::shells::{Shell, on_all_runtimes};
use crate::srv::{HOST, SRV, addresses, record, router};
use crate::world::{World, until_so};

on_all_runtimes!(
    a_host_may_have_fewer_than_three_parts,
    servers_outside_of_the_domain_are_refused,
    a_domain_in_punycode_covers_its_servers,
    routers_of_the_records_are_used,
    a_part_of_the_new_routers_is_used,
);

fn client_of(shell: Shell, host: &str, target: &str) -> Result<World, ClientBuildError> {
    let names = NameServer::start().expect("a port");
    names.set_srv(&format!("_mongodb._tcp.{host}"), &[SrvRecord::new(target, 1)]);
    let uri = format!("mongodb+srv://{host}/?tls=false&serverSelectionTimeoutMS=1");
    World::srv(shell, &uri, &names)
}

/// Test 1 of Initial DNS Seedlist Discovery. A name server is never asked about `localhost` (RFC 6761).
// SV-03
// Reports specifications#1628, node-mongodb-native#4197: an SRV host of fewer than three parts is refused.
fn a_host_may_have_fewer_than_three_parts(shell: Shell) {
    let world = client_of(shell, "mongo.local", "127.0.0.1.mongo.local.").expect("a client");
    assert_eq!(addresses(&world), ["127.0.0.1.mongo.local:1"]);
    world.client.close();
    let error =
        client_of(shell, "localhost", "127.0.0.1.localhost.").map(drop).expect_err("no records");
    let is_unknown = matches!(
        &error,
        ClientBuildError::Srv(SrvError::Srv { error: LookupError::NoRecords, .. })
    );
    assert!(is_unknown, "{error:?}");
}

/// Its tests 2, 3 and 4, each for its hosts but `localhost`.
// SV-03
fn servers_outside_of_the_domain_are_refused(shell: Shell) {
    for (host, target) in [
        ("mongo.local", "test_1.evil.local"),
        ("blogs.mongodb.com", "blogs.evil.com"),
        ("mongo.local", "mongo.local"),
        ("mongo.local", "test_1.my_hostmongo.local"),
        ("blogs.mongodb.com", "cluster.testmongodb.com"),
    ] {
        let error = client_of(shell, host, target).map(drop).expect_err(target);
        let is_outside = matches!(&error, ClientBuildError::Srv(SrvError::OutsideDomain { .. }));
        assert!(is_outside && error.to_string().contains(target), "{host} to {target}: {error}");
    }
}

/// Also where the connection string has letters outside ASCII.
// SV-03
fn a_domain_in_punycode_covers_its_servers(shell: Shell) {
    let names = NameServer::start().expect("a port");
    let record = SrvRecord::new("DB.xn--bcher-kva.example.", 1);
    names.set_srv("_mongodb._tcp.cluster.xn--bcher-kva.example", &[record]);
    for host in [
        "cluster.xn--bcher-kva.example/?",
        "Cluster.Bücher.example/?",
        "Cluster.Bücher.example/?srvAllowedHostsSuffix=BÜCHER.example.&",
    ] {
        let uri = format!("mongodb+srv://{host}tls=false&serverSelectionTimeoutMS=1");
        let world = World::srv(shell, &uri, &names).expect("a client");
        assert_eq!(addresses(&world), ["db.xn--bcher-kva.example:1"], "{host}");
        world.client.close();
    }
}

/// The options of the client, and which of the routers its records name before and after.
const CHANGES: [(&str, &[usize], &[usize]); 8] = [
    ("", &[0, 1], &[0, 1, 2]),
    ("", &[0, 1], &[0]),
    ("", &[0, 1], &[0, 2]),
    ("", &[0, 1], &[2]),
    ("", &[0, 1], &[2, 3]),
    ("srvMaxHosts=0", &[0, 1], &[0, 2, 3]),
    ("srvMaxHosts=2", &[0, 1], &[2, 3]),
    ("srvServiceName=customname", &[0], &[2, 3]),
];

/// The tests 1 to 5, 10, 11 and 13 of Polling SRV Records.
// SV-08
fn routers_of_the_records_are_used(shell: Shell) {
    let routers = [(); 4].map(|()| router());
    for (options, before, after) in CHANGES {
        let of = |which: &[usize]| which.iter().map(|at| &routers[*at]).collect::<Vec<_>>();
        let (names, world) = following(shell, options, &of(before));
        set(&names, options, &of(after));
        let mut expected: Vec<_> = of(after).iter().map(|it| it.address().to_string()).collect();
        expected.sort();
        until_so(|| {
            let mut used = addresses(&world);
            used.sort();
            if used == expected { Ok(()) } else { Err(format!("{options}: {used:?}")) }
        });
        world.ping();
        world.client.close();
    }
}

/// Its test 12.
// SV-07, SV-15
fn a_part_of_the_new_routers_is_used(shell: Shell) {
    let routers = [(); 4].map(|()| router());
    let [a, b, c, d] = routers.each_ref();
    let options = "srvMaxHosts=2";
    let (names, world) = following(shell, options, &[a, b]);
    set(&names, options, &[a, c, d]);
    let [a, c, d] = [a, c, d].map(|it| it.address().to_string());
    until_so(|| match &addresses(&world)[..] {
        [first, second] if *first == a && [&c, &d].contains(&second) => Ok(()),
        used => Err(format!("{used:?}")),
    });
    let chosen = addresses(&world);
    let asked = names.questions();
    until_so(
        || if names.questions() >= asked + 2 { Ok(()) } else { Err("asks no more".to_owned()) },
    );
    assert_eq!(addresses(&world), chosen, "those that stay are kept");
    world.ping();
    world.client.close();
}

/// A client of these routers, which it uses.
fn following(shell: Shell, options: &str, routers: &[&Endpoint]) -> (NameServer, World) {
    let names = NameServer::start().expect("a port");
    set(&names, options, routers);
    let uri = format!("mongodb+srv://{HOST}/?tls=false&heartbeatFrequencyMS=500&{options}");
    let world = World::srv(shell, &uri, &names).expect("a client");
    assert_eq!(addresses(&world).len(), routers.len());
    world.until_all_known();
    (names, world)
}

fn set(names: &NameServer, options: &str, routers: &[&Endpoint]) {
    let service = if options.contains("customname") {
        SRV.replace("mongodb", "customname")
    } else {
        SRV.to_owned()
    };
    let records: Vec<_> = routers.iter().map(|router| record(router)).collect();
    names.set_srv(&service, &records);
}
