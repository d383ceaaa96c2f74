//! Servers that cannot be used: each says which one, at which stage, and stays visible.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_core::client::{ClientError, ClientStatus, SelectionError, Selector};
use cenote_core::uri::srv::SrvRecord;
use cenote_endpoint::{
    Endpoint, ListenAddress, ListenOptions, NameServer, ReplicaSet, Role, ServerCertificate,
    Settings, TlsFault, TlsOptions, Topology, User,
};

use crate::shells::{Shell, on_all_runtimes};
use crate::srv::addresses;
use crate::world::{World, change_set, member, standalone, until_so};

on_all_runtimes!(
    an_absent_host,
    another_replica_set,
    another_protocol,
    tls_where_there_is_none_and_the_reverse,
    certificates_that_are_refused,
    a_tls_handshake_that_is_refused_for_a_while,
    a_wrong_password,
    one_bad_server_of_three,
    what_is_not_of_this_client,
    hosts_that_differ_only_in_case,
    wire_versions_that_change,
    a_name_that_forges_and_floods,
);

const SOON: &str = "serverSelectionTimeoutMS=300";

/// What a command is told, and what the only server shows.
fn refused(shell: Shell, uri: &str) -> (ClientError, String) {
    let world = World::new(shell, uri);
    world.until("refused", |world| world.error().is_some());
    let command = world.client.command("admin", &rawdoc! { "ping": 1 });
    let error = command.expect_err("it fails");
    let shown = world.error().expect("it is Unknown");
    let usable = ClientStatus::of(&world.client.topology());
    assert!(usable.to_string().contains(&format!(" cannot be used: {shown}")), "{usable}");
    // A server that is not there now may come; a name or an option is to be corrected.
    for (beginning, is_lasting) in [("name resolution", true), ("connect", false)] {
        if shown.starts_with(beginning) {
            assert_eq!(usable.is_misconfigured(), is_lasting, "{usable}");
        }
    }
    let status = world.client.servers()[0].to_string();
    // What to do is said behind the reason, or by the reason itself.
    let says_it = ["correct the host", "this version of Cenote"];
    let advice = if says_it.iter().any(|it| shown.contains(it)) { "[paused" } else { "(" };
    assert!(status.contains(&format!(": Unknown: {shown} {advice}")), "{status}");
    assert!(status.contains(" [paused"), "{status}");
    world.client.close();
    (error, shown)
}

fn has_waited(error: &ClientError) -> bool {
    matches!(error, ClientError::Selection(SelectionError::TimedOut { .. }))
}

fn is_incompatible(error: &ClientError) -> bool {
    matches!(error, ClientError::Selection(SelectionError::Incompatible { .. }))
}

fn with(endpoint: &Endpoint, options: &str) -> String {
    format!("mongodb://{}/?{options}", endpoint.address())
}

fn an_absent_host(shell: Shell) {
    let begin = Instant::now();
    let (error, shown) = refused(shell, &format!("mongodb://absent.invalid/?{SOON}"));
    assert!(shown.starts_with("name resolution"), "{shown}");
    assert!(
        error.to_string().contains("absent.invalid:27017: Unknown: name resolution"),
        "{error}"
    );
    assert!(error.to_string().starts_with("there was no primary"), "{error}");
    let (error, shown) = refused(shell, &format!("mongodb://127.0.0.1:1/?{SOON}"));
    assert!(shown.contains("refused"), "{shown}");
    assert!(error.to_string().contains("127.0.0.1:1: Unknown: "), "{error}");
    // OP-21: it would be thirty seconds each without the option.
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

/// A server of another set is removed, unless it is the only one by `directConnection`. Callers wait: it may be
/// configured meanwhile.
// ST-16
// Reports beside Go, Java, PyMongo and Rust (mended): a direct connection with `replicaSet` serves a member that has no set.
fn another_replica_set(shell: Shell) {
    let direct = format!("replicaSet=rs1&directConnection=true&{SOON}");
    for (server, reason) in [
        (member(Role::Primary), "belongs to the replica set `rs0`, not to `rs1`"),
        (member(Role::Ghost), "belongs to no replica set yet, not to `rs1`"),
    ] {
        let (error, shown) = refused(shell, &with(&server, &direct));
        assert!(has_waited(&error), "{error}");
        assert!(shown.contains(reason), "{shown}");
        assert!(shown.ends_with("correct the host or replicaSet"), "{shown}");
    }
    for (server, reason) in [
        (member(Role::Primary), "belongs to the replica set `rs0`, not to `rs1`"),
        (standalone(), "belongs to no replica set, not to `rs1`"),
    ] {
        let world = World::of(shell, &[&server], &format!("replicaSet=rs1&{SOON}"));
        world.until("refused", |world| world.client.servers().is_empty());
        let error = world.client.command("admin", &rawdoc! { "ping": 1 }).expect_err("it fails");
        assert!(has_waited(&error), "{error}");
        // It may have been looked at anew for the caller.
        world.until(reason, |world| {
            let usable = ClientStatus::of(&world.client.topology());
            usable.is_misconfigured() && usable.to_string().contains(reason)
        });
        let (shown, address) = (error.to_string(), server.address());
        assert!(shown.contains(&format!("{address} is not used: ")), "{shown}");
        assert!(shown.contains(reason), "{shown}");
        assert!(world.client.servers().is_empty());
        world.client.close();
    }
}

fn another_protocol(shell: Shell) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // Ends with the process.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 16]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let (error, shown) = refused(shell, &format!("mongodb://{address}/?{SOON}"));
    assert!(has_waited(&error), "{error}");
    assert!(shown.starts_with("hello"), "{shown}");
}

/// Either way round; and neither takes longer than it must.
fn tls_where_there_is_none_and_the_reverse(shell: Shell) {
    let plain = standalone();
    let insecure = format!("tls=true&tlsInsecure=true&{SOON}");
    let (_, shown) = refused(shell, &with(&plain, &insecure));
    assert!(shown.starts_with("TLS"), "{shown}");
    let tls = Endpoint::start(Settings::default(), ListenOptions::with_tls()).expect("it starts");
    let (_, shown) = refused(shell, &with(&tls, SOON));
    assert!(shown.starts_with("hello"), "{shown}");
}

/// The error names what is wrong with a certificate.
fn certificates_that_are_refused(shell: Shell) {
    for (certificate, word) in [
        (ServerCertificate::Expired, "expired"),
        (ServerCertificate::NotYetValid, "not valid yet"),
        (ServerCertificate::WrongHost, "not valid for name"),
        (ServerCertificate::ForeignAuthority, "a signature that is not its issuer's"),
        (ServerCertificate::SelfSigned, "not of an authority that is trusted"),
    ] {
        let tls = TlsOptions { certificate, ..TlsOptions::default() };
        let options = ListenOptions { tls: Some(tls), ..ListenOptions::default() };
        let endpoint = Endpoint::start(Settings::default(), options).expect("it starts");
        let (error, shown) = refused(shell, &format!("{}&{SOON}", endpoint.uri()));
        assert!(has_waited(&error), "{certificate:?}: {error}");
        assert!(shown.starts_with("TLS verification"), "{certificate:?}: {shown}");
        assert!(shown.contains(word), "{certificate:?}: {shown}");
        assert!(error.to_string().contains(&shown), "{certificate:?}: {error}");
    }
}

/// Such as by a proxy that restarts: the caller is served as soon as TLS works again.
// Reports beside PyMongo (mended): TLS that fails for a moment fails callers that have time.
fn a_tls_handshake_that_is_refused_for_a_while(shell: Shell) {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::with_tls());
    let endpoint = endpoint.expect("it starts");
    for fault in [TlsFault::Alert { description: 80 }, TlsFault::Garbage] {
        endpoint.set_tls_fault(Some(fault));
        let (error, _) = refused(shell, &format!("{}&{SOON}", endpoint.uri()));
        assert!(has_waited(&error), "{error}");

        let world = World::new(shell, &endpoint.uri());
        thread::scope(|scope| {
            let ping = || world.client.command("admin", &rawdoc! { "ping": 1 });
            let waiting = scope.spawn(ping);
            world.until("refused", |world| world.error().is_some());
            assert!(!waiting.is_finished(), "{fault:?}");
            endpoint.set_tls_fault(None);
            waiting.join().expect("no panic").expect("a reply");
        });
        world.client.close();
    }
}

// AU-03, LN-06, SD-24: monitors do not log in, so that it is the first check-out that finds out.
fn a_wrong_password(shell: Shell) {
    let settings =
        Settings { auth: true, users: vec![User::new("app", "pencil")], ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    // So that the next check comes after the assertions.
    let options = "heartbeatFrequencyMS=600000";
    let world =
        World::new(shell, &format!("mongodb://app:wrong@{}/?{options}", endpoint.address()));
    let error = world.client.command("admin", &rawdoc! { "ping": 1 }).expect_err("it fails");
    assert!(matches!(error, ClientError::Pool(_)), "{error}");
    assert!(error.to_string().starts_with("authentication"), "{error}");
    let shown = format!(" [{} | request w1 | waited ", endpoint.address());
    assert!(error.to_string().contains(&shown), "{error}");
    assert!(!error.to_string().contains("wrong"), "{error}");
    world.until_told("ConnectionPoolCleared", 1);
    let shown = world.error().expect("it is Unknown");
    assert!(shown.starts_with("authentication"), "{shown}");
    world.client.close();
}

/// Two unusable servers do not block the third, whose members replace the hosts of the connection string.
fn one_bad_server_of_three(shell: Shell) {
    let (good, other_set) = (member(Role::Primary), {
        crate::world::start(Topology::ReplicaSet(ReplicaSet::primary("rs1")))
    });
    let absent = "absent.invalid:27017".parse().expect("an address");
    let addresses = [absent, other_set.address(), good.address()];
    let world = World::at(shell, &addresses, "replicaSet=rs0");
    world.ping();
    let others = [addresses[0].clone(), addresses[1].clone()];
    until_so(|| match world.client.servers().iter().find(|it| others.contains(&it.address)) {
        None => Ok(()),
        Some(server) => Err(format!("{server} is there")),
    });
    // It is the only one that the primary lists.
    assert_eq!(world.client.servers().len(), 1);
    world.client.close();
}

fn what_is_not_of_this_client(shell: Shell) {
    let only = standalone();
    let world = World::of(shell, &[&only], "");
    world.until_all_known();
    let selector = Selector::Address("elsewhere.example.com".parse().expect("an address"));
    let error = world.client.check_out(&selector).expect_err("it is not there");
    assert_eq!(
        error.to_string(),
        "elsewhere.example.com:27017 is no server of this client: name one of the servers that \
         `Client::servers` lists"
    );
    world.client.close();
}

/// The name of a replica set is the server's, and comes before it has to prove anything.
fn a_name_that_forges_and_floods(shell: Shell) {
    let forged = "rs0\r\n2026-11-22 ERROR root logged in\u{1b}[31m\u{202e}".to_owned();
    for name in [forged, "x".repeat(1 << 19)] {
        let set = ReplicaSet { role: Role::Secondary, ..ReplicaSet::primary(&name) };
        let server = crate::world::start(Topology::ReplicaSet(set));
        let world = World::of(shell, &[&server], SOON);
        world.until_all_known();
        let error = world.client.check_out(&Selector::Primary).expect_err("there is none");
        let status = &world.client.servers()[0];
        let told = world.server_texts();
        world.client.close();
        let shown = [error.to_string(), format!("{error:?}"), status.to_string()];
        for shown in told.into_iter().chain(shown).chain([format!("{status:?}")]) {
            let is_bad = |it: char| it.is_control() || it == '\u{202e}';
            assert!(!shown.contains(is_bad), "{}", shown.escape_debug());
            assert!(shown.chars().count() < 4000, "{} characters", shown.len());
        }
        assert!(error.to_string().contains("RSSecondary of "), "{error}");
    }
}

#[test]
fn connection_strings_that_are_none() {
    for uri in ["", "http://db", "mongodb://", "mongodb://db/?minPoolSize=3&maxPoolSize=2"] {
        assert!(cenote_mio::Client::new(uri).is_err(), "{uri}");
        if !uri.contains("minPoolSize") {
            assert!(cenote_tokio::Client::builder(uri).is_err(), "{uri}");
        }
    }
    let uri = "mongodb://db/?heartbeatFrequencyMS=10&colour=red";
    let builder = cenote_tokio::Client::builder(uri);
    assert_eq!(builder.expect("a connection string").warnings().len(), 2);
    let builder = cenote_mio::Client::builder(uri);
    assert_eq!(builder.expect("a connection string").warnings().len(), 2);
}

// AU-07, AU-55
#[tokio::test]
async fn a_mechanism_that_is_not_supported_is_refused_before_any_connection() {
    // Nothing listens there.
    let uri = "mongodb://user@127.0.0.1:1/?authMechanism=GSSAPI";
    let clients = [
        cenote_tokio::Client::new(uri).err().map(|error| error.to_string()),
        cenote_mio::Client::new(uri).err().map(|error| error.to_string()),
        cenote_shell::client::Client::<cenote_smol::Smol>::builder(uri)
            .and_then(cenote_shell::client::ClientBuilder::build)
            .err()
            .map(|error| error.to_string()),
    ];
    let pools = [
        cenote_tokio::Pool::connect_to(uri).err().map(|error| error.to_string()),
        cenote_mio::Pool::connect_to(uri).err().map(|error| error.to_string()),
    ];
    for error in clients.into_iter().chain(pools) {
        let error = error.expect("it fails");
        assert!(error.contains("GSSAPI"), "{error}");
    }
}

/// In the connection string, in SRV records and in what members say: one server, whose name is in lower case.
fn hosts_that_differ_only_in_case(shell: Shell) {
    let only = member(Role::Primary);
    let port = only.address().port().expect("a port");
    let [upper, mixed, lower] =
        ["LOCALHOST", "LocalHost", "localhost"].map(|host| format!("{host}:{port}"));
    let (hosts, me) = (vec![mixed.clone()], Some(upper.clone()));
    change_set(&only, |set| ReplicaSet { hosts, me, ..set });
    let world = World::new(shell, &format!("mongodb://{upper},{mixed},{lower}/?replicaSet=rs0"));
    world.ping();
    assert_eq!(addresses(&world), [lower]);
    assert_eq!(world.client.topology().excluded().len(), 0);
    assert_eq!(world.count("ConnectionPoolCreated"), 1);
    world.client.close();

    let names = NameServer::start().expect("a port");
    let records = ["DB.Cluster.TEST.", "db.cluster.test."].map(|host| SrvRecord::new(host, 1));
    names.set_srv("_mongodb._tcp.cluster.test", &records);
    let uri = "mongodb+srv://Cluster.Test/?tls=false&serverSelectionTimeoutMS=1";
    let world = World::srv(shell, uri, &names).expect("a client");
    assert_eq!(addresses(&world), ["db.cluster.test:1"]);
    world.client.close();
}

/// A server is replaced by an older one and then by a newer one: commands fail without waiting while it is too old.
fn wire_versions_that_change(shell: Shell) {
    let first = standalone();
    let port = first.address().port().expect("a port");
    let again = |wire_versions| {
        let settings = Settings { wire_versions, ..Settings::default() };
        let options =
            ListenOptions { place: ListenAddress::Tcp { port }, ..ListenOptions::default() };
        Endpoint::start(settings, options).expect("it starts")
    };
    let world = World::of(shell, &[&first], "heartbeatFrequencyMS=500");
    world.ping();
    drop(first);
    let old = again(0..=8);
    let text = format!(
        "Server at {} reports wire version 8, but this version of Cenote requires at least 9 (MongoDB 4.4).",
        old.address()
    );
    world.until("refused", |world| world.error().is_some_and(|error| error.ends_with(&text)));
    let error = world.client.command("admin", &rawdoc! { "ping": 1 }).expect_err("it is too old");
    assert!(is_incompatible(&error) && error.to_string().contains(&text), "{error}");
    // It is asked again with every heartbeat, and not more often.
    let accepted = || old.with(|server, _| server.statistics().accepted);
    let before = accepted();
    thread::sleep(Duration::from_secs(2));
    assert!((1..=8).contains(&(accepted() - before)), "{} connections", accepted() - before);
    drop(old);
    let _new = again(0..=9);
    world.until("known", |world| world.kinds()[0].is_some());
    world.ping();
    world.client.close();
}
