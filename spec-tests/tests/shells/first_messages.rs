//! What servers are sent on a new connection, and what is taken of their answers, on each runtime: the conversations that
//! `core/tests/connect` plays without sockets.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bson::{Bson, Document, doc, rawdoc};
use cenote_core::error::{Kind, OperationError};
use cenote_core::uri::{self, Compressor};
use cenote_core::wire::{CompressorId, Flags, Ids, MessageLimit, MessageWriter};
use cenote_endpoint::{
    Certificates, Endpoint, ListenOptions, LoadBalanced, Mechanism, ScramSettings, Settings,
    Topology, User,
};

use crate::shell::{Shell, on_all_runtimes};
use crate::world::{ping, plain, pool, tls, with};

on_all_runtimes!(
    hello_comes_first_and_once,
    no_compressor_in_common_is_no_error,
    behind_a_load_balancer_hello_says_so,
    scram_begins_within_hello,
    another_mechanism_begins_anew,
    x509_needs_no_password,
    derived_keys_are_kept,
    replies_that_break_the_rules_cost_the_connection,
    the_server_is_told_its_name,
);

type Commands = Arc<Mutex<Vec<Document>>>;

fn observed(endpoint: &Endpoint) -> Commands {
    let commands = Commands::default();
    let heard = Arc::clone(&commands);
    endpoint.with(|server, _| {
        server.observe_commands(move |command| {
            let command = Document::try_from(command).expect("a document");
            heard.lock().expect("no panic").push(command);
        });
    });
    commands
}

fn taken(commands: &Commands) -> Vec<Document> {
    std::mem::take(&mut *commands.lock().expect("no panic"))
}

fn name(command: &Document) -> &str {
    command.keys().next().expect("a name")
}

fn text<'a>(command: &'a Document, key: &str) -> &'a str {
    let payload = command.get_binary_generic(key).expect("a payload");
    std::str::from_utf8(payload).expect("text")
}

// HS-01, HS-02, HS-04, HS-05, HS-08, HS-10, HS-11, HS-40, CM-01, CM-02, CM-03, CM-05, CM-08, CM-09, CM-10, MS-11, MS-13
fn hello_comes_first_and_once(shell: Shell) {
    let endpoint = plain();
    let commands = observed(&endpoint);
    let uri = with(&endpoint.uri(), "appname=shop&compressors=snoopy,zlib,snappy");
    let (first, _) = pool(shell, &uri);
    let mut connection = first.check_out().expect("a connection");
    let limit = connection.message_limit();
    let find = rawdoc! { "find": "c", "filter": { "a": { "$gt": 1 } } };
    connection.command("shop", &find).expect("a reply");
    let description = connection.description();
    assert_eq!(description.compressor, Some(Compressor::Zlib));
    assert_eq!(description.limits.max_message_size, limit.bytes());
    assert_eq!((description.mechanism, description.service_id), (None, None));
    let told = taken(&commands);
    let [hello, find] = &told[..] else { panic!("{told:?}") };
    assert_eq!(name(hello), "isMaster");
    assert_eq!(hello.get("helloOk"), Some(&true.into()));
    assert_eq!(hello.get("backpressure"), Some(&"2".into()));
    assert_eq!(
        hello.get("compression"),
        Some(&Bson::from(["zlib", "snappy"].map(Bson::from).to_vec()))
    );
    assert_eq!(hello.get("$db"), Some(&"admin".into()));
    let client = hello.get_document("client").expect("metadata");
    assert_eq!(client.get_document("application").ok(), Some(&doc! { "name": "shop" }));
    assert_eq!(find, &doc! { "find": "c", "filter": { "a": { "$gt": 1 } }, "$db": "shop" });
    // The command alone was compressed.
    let compressed = endpoint.with(|server, _| server.statistics()).compressed_commands;
    assert_eq!(compressed.into_iter().collect::<Vec<_>>(), [("zlib", 1)]);

    assert!(ping(&pool(shell, &endpoint.uri()).0));
    assert_eq!(taken(&commands)[0].get_array("compression").expect("a list").len(), 0);
}

// CM-06
fn no_compressor_in_common_is_no_error(shell: Shell) {
    let settings = Settings { compressors: vec![CompressorId::Zlib], ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let (pool, _) = pool(shell, &with(&endpoint.uri(), "compressors=snappy"));
    assert!(ping(&pool));
    assert_eq!(pool.check_out().expect("a connection").description().compressor, None);
    assert!(endpoint.with(|server, _| server.statistics()).compressed_commands.is_empty());
}

// HS-03, LB-10, LB-11
fn behind_a_load_balancer_hello_says_so(shell: Shell) {
    let topology = Topology::LoadBalanced(LoadBalanced { services: 1 });
    let settings = Settings { topology, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let commands = observed(&endpoint);
    assert!(ping(&pool(shell, &endpoint.uri()).0));
    let hello = &taken(&commands)[0];
    assert_eq!((name(hello), hello.get("loadBalanced")), ("hello", Some(&true.into())));
}

fn with_users(users: &[User]) -> Endpoint {
    let settings = Settings { auth: true, users: users.to_vec(), ..Settings::default() };
    Endpoint::start(settings, ListenOptions::default()).expect("it starts")
}

// AU-02, AU-08, AU-10, AU-20, AU-21, AU-22, AU-30, AU-34, HS-41, HS-42, HS-43, HS-44, HS-46
fn scram_begins_within_hello(shell: Shell) {
    let user = User::new("us=er,", "pencil");
    let endpoint = with_users(std::slice::from_ref(&user));
    let commands = observed(&endpoint);
    let uri = endpoint.uri_of(Some(&user));
    for (uri, asked) in
        [(uri.clone(), Some("admin.us=er,")), (with(&uri, "authMechanism=SCRAM-SHA-256"), None)]
    {
        let (pool, _) = pool(shell, &uri);
        assert!(ping(&pool));
        let told = taken(&commands);
        let [hello, last, ping] = &told[..] else { panic!("{told:?}") };
        assert_eq!(hello.get_str("saslSupportedMechs").ok(), asked);
        let start = hello.get_document("speculativeAuthenticate").expect("a login");
        assert_eq!(
            (name(start), start.get("mechanism")),
            ("saslStart", Some(&"SCRAM-SHA-256".into()))
        );
        assert_eq!(start.get("options"), Some(&doc! { "skipEmptyExchange": true }.into()));
        assert_eq!(start.get("db"), Some(&"admin".into()));
        assert!(text(start, "payload").starts_with("n,,n=us=3Der=2C,r="), "{start}");
        assert_eq!((name(last), last.get("$db")), ("saslContinue", Some(&"admin".into())));
        assert!(text(last, "payload").starts_with("c=biws,r="), "{last}");
        assert_eq!(name(ping), "ping");
    }
}

// AU-11, AU-20, AU-31, HS-45, HS-47
fn another_mechanism_begins_anew(shell: Shell) {
    let user = User::new("old", "pencil").with_mechanisms(&[Mechanism::ScramSha1]);
    let endpoint = with_users(&[user]);
    let commands = observed(&endpoint);
    let (pool, _) = pool(shell, &format!("mongodb://old:pencil@{}/", endpoint.address()));
    assert!(ping(&pool));
    let told = taken(&commands);
    let names: Vec<_> = told.iter().map(name).collect();
    assert_eq!(names[..3], ["isMaster", "saslStart", "saslContinue"]);
    assert_eq!(told[1].get("mechanism"), Some(&"SCRAM-SHA-1".into()));
    assert!(text(&told[1], "payload").starts_with("n,,n=old,r="));
    let connection = pool.check_out().expect("a connection");
    assert_eq!(connection.description().mechanism, Some(uri::Mechanism::ScramSha1));
}

// AU-45, AU-46, AU-47, HS-44
fn x509_needs_no_password(shell: Shell) {
    let users = vec![User::x509(Certificates::CLIENT_SUBJECT)];
    let endpoint = tls(Settings { auth: true, users, ..Settings::default() });
    let commands = observed(&endpoint);
    let file = endpoint.certificates().expect("with TLS").client_file();
    let options = format!("authMechanism=MONGODB-X509&tlsCertificateKeyFile={}", file.display());
    assert!(ping(&pool(shell, &with(&endpoint.uri_of(None), &options)).0));
    let told = taken(&commands);
    let names: Vec<_> = told.iter().map(name).collect();
    assert_eq!(names, ["isMaster", "authenticate", "ping"], "this server settles nothing in hello");
    let begun = told[0].get_document("speculativeAuthenticate").expect("a login");
    for login in [begun, &told[1]] {
        assert_eq!(
            (name(login), login.get("mechanism")),
            ("authenticate", Some(&"MONGODB-X509".into()))
        );
        assert!(!login.contains_key("user") && !login.contains_key("pwd"), "{login}");
    }
    assert_eq!(told[1].get("$db"), Some(&"$external".into()));
}

// AU-36
fn derived_keys_are_kept(shell: Shell) {
    let user = User::new("app", "pencil").with_mechanisms(&[Mechanism::ScramSha256]);
    let settings = Settings {
        auth: true,
        users: vec![user.clone()],
        scram: ScramSettings { sha256_iterations: 300_000, ..ScramSettings::default() },
        ..Settings::default()
    };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let uri = with(&endpoint.uri_of(Some(&user)), "connectTimeoutMS=120000");
    let (pool, _) = pool(shell, &uri);
    let mut held = Vec::new();
    let mut time = || {
        let begin = Instant::now();
        held.push(pool.check_out().expect("a connection"));
        begin.elapsed()
    };
    let first = time();
    // Without the keys each of them takes as long as the first.
    let least = (0..5).map(|_| time()).min().expect("five times");
    assert!(least < first / 2, "{least:?} after {first:?}");
}

/// Answers what a peer sends on one connection: hello well, and the command after it with this message.
fn answers(mut peer: TcpStream, answer: impl FnOnce(i32) -> Vec<u8>) {
    let welcome = rawdoc! { "ok": 1, "maxWireVersion": 25 };
    let id = request(&mut peer);
    peer.write_all(&reply(id, Flags::NONE, &welcome, 0)).expect("sent");
    let id = request(&mut peer);
    peer.write_all(&answer(id)).expect("sent");
    // Until the client goes.
    let _ = peer.read(&mut [0]);
}

/// The id of the next message.
fn request(peer: &mut TcpStream) -> i32 {
    let mut header = [0; 16];
    peer.read_exact(&mut header).expect("a header");
    let number = |at: usize| i32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let mut rest = vec![0; number(0) as usize - 16];
    peer.read_exact(&mut rest).expect("a message");
    number(4)
}

/// A reply with further bits among its flags.
fn reply(to: i32, flags: Flags, body: &bson::RawDocument, bits: u32) -> Vec<u8> {
    let mut message = Vec::new();
    let ids = Ids { request_id: 1, response_to: to };
    let writer = MessageWriter::new(&mut message, ids, flags, body);
    writer.finish(MessageLimit::DEFAULT).expect("small");
    let set = u32::from_le_bytes(message[16..20].try_into().expect("four bytes")) | bits;
    message[16..20].copy_from_slice(&set.to_le_bytes());
    message
}

// MS-04, MS-05, MS-07, MS-10
fn replies_that_break_the_rules_cost_the_connection(shell: Shell) {
    const SECTION: usize = 20;
    type Answer = fn(i32) -> Vec<u8>;
    let good: Answer = |id| reply(id, Flags::NONE, &rawdoc! { "ok": 1 }, 0);
    let unknown_section: Answer = |id| {
        let mut message = reply(id, Flags::NONE, &rawdoc! { "ok": 1 }, 0);
        message[SECTION] = 7;
        message
    };
    let required_bit: Answer = |id| reply(id, Flags::NONE, &rawdoc! { "ok": 1 }, 1 << 2);
    let optional_bit: Answer = |id| reply(id, Flags::NONE, &rawdoc! { "ok": 1 }, 1 << 20);
    let unasked_more: Answer = |id| reply(id, Flags::MORE_TO_COME, &rawdoc! { "ok": 1 }, 0);
    for (answer, is_good) in [
        (good, true),
        (optional_bit, true),
        (unknown_section, false),
        (required_bit, false),
        (unasked_more, false),
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let server = thread::spawn(move || {
            answers(listener.accept().expect("a connection").0, answer);
        });
        let (pool, _) = pool(shell, &format!("mongodb://127.0.0.1:{port}/"));
        let mut connection = pool.check_out().expect("a connection");
        let outcome = connection.command("admin", &rawdoc! { "ping": 1 });
        assert_eq!((outcome.is_ok(), connection.is_reusable()), (is_good, is_good));
        if let Err(error) = outcome {
            let OperationError::Connection(error) = error else { panic!("{error}") };
            assert_eq!(error.kind(), &Kind::Protocol, "{error}");
        }
        drop(connection);
        pool.close();
        server.join().expect("no panic");
    }
}

// TL-06
fn the_server_is_told_its_name(shell: Shell) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let server = thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a connection");
        peer.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        let mut acceptor = rustls::server::Acceptor::default();
        loop {
            acceptor.read_tls(&mut peer).expect("bytes");
            if let Some(accepted) = acceptor.accept().map_err(|(error, _)| error).expect("TLS") {
                return accepted.client_hello().server_name().map(str::to_owned);
            }
        }
    });
    let (pool, _) = pool(shell, &format!("mongodb://localhost:{port}/?tls=true"));
    assert!(pool.check_out().is_err(), "the server hangs up");
    assert_eq!(server.join().expect("no panic").as_deref(), Some("localhost"));
}
