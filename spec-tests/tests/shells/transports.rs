//! All transports of a connection, and all authentication mechanisms.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote::proxy::{FaultProxy, Way};
use cenote_core::error::Stage;
use cenote_core::pool::{Event, Purpose};
use cenote_core::uri::Compressor;
use cenote_endpoint::{
    Certificates, Endpoint, ListenAddress, ListenOptions, LoadBalanced, Mechanism, Settings,
    TlsFault, TlsOptions, Topology, User,
};

use crate::shell::{Shell, on_all_runtimes};
use crate::world::{ping, plain, pool, refusal, tls, with};

on_all_runtimes!(
    plain_tcp,
    each_mechanism_logs_in,
    each_conversation_has_its_own_nonce,
    x509_needs_the_client_certificate,
    tls_is_part_of_establishing_a_connection,
    a_session_is_resumed_until_a_file_of_tls_changes,
    each_compressor_compresses,
    zlib_has_the_level_that_was_set,
    a_unix_domain_socket,
    behind_a_load_balancer_each_connection_knows_its_service,
    a_server_that_is_no_load_balancer_is_refused,
    through_a_proxy_with_tls_to_the_server,
    a_proxy_resolves_the_name,
);

// CO-01, IN-06
fn plain_tcp(shell: Shell) {
    let endpoint = plain();
    let (pool, _) = pool(shell, &endpoint.uri());
    for _ in 0..3 {
        assert!(ping(&pool));
    }
    assert_eq!(endpoint.with(|server, _| server.statistics()).accepted, 1);
    pool.close();
}

// CO-07, ES-01, ES-02, OUT-14, AU-01, AU-32, AU-41, AU-50
fn each_mechanism_logs_in(shell: Shell) {
    let certificate = User::x509(Certificates::CLIENT_SUBJECT);
    let users = [
        User::new("both", "pencil"),
        User::new("old", "pen,cil=").with_mechanisms(&[Mechanism::ScramSha1]),
        User::new("new", "I\u{AD}X").with_mechanisms(&[Mechanism::ScramSha256]),
        User::new("elsewhere", "x").in_database("app"),
        User::plain("ldap", "pencil"),
        certificate,
    ];
    let settings = Settings { auth: true, users: users.to_vec(), ..Settings::default() };
    let endpoint = tls(settings);
    for user in &users {
        let (pool, _) = pool(shell, &endpoint.uri_of(Some(user)));
        assert!(ping(&pool), "{user:?}");
        let connection = pool.check_out().expect("it works");
        assert!(connection.description().mechanism.is_some(), "{user:?}");
    }
    assert_eq!(endpoint.with(|server, _| server.statistics()).failed_logins, 0);

    // AU-12: a user that does not exist fails like a wrong password.
    for name in ["both", "none"] {
        let wrong = endpoint.uri_of(Some(&User::new(name, "eraser")));
        let error = refusal(&pool(shell, &wrong).0);
        assert_eq!(error.stage(), Stage::Authentication);
        assert_eq!(error.command_error().and_then(|error| error.code), Some(18));
        assert!(!error.to_string().contains("eraser"));
    }
}

// AU-35.
fn each_conversation_has_its_own_nonce(shell: Shell) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let server = thread::spawn(move || {
        [(); 2].map(|()| {
            let (mut client, _) = listener.accept().expect("a connection");
            let mut hello = [0; 4096];
            let length = client.read(&mut hello).expect("hello");
            nonce(&hello[..length])
        })
    });
    let (pool, _) = pool(shell, &format!("mongodb://user:pencil@127.0.0.1:{port}/"));
    for _ in 0..2 {
        assert_eq!(refusal(&pool).stage(), Stage::Hello);
    }
    let [first, second] = server.join().expect("no panic");
    assert_ne!(first, second);
}

/// The client's part, in the first message of SCRAM.
fn nonce(hello: &[u8]) -> Vec<u8> {
    let before = b"n,,n=user,r=";
    let begin = hello.windows(before.len()).position(|it| it == before).expect("it is in there");
    let nonce = hello[begin + before.len()..].iter().take_while(|it| it.is_ascii_graphic());
    let nonce: Vec<_> = nonce.copied().collect();
    assert!(nonce.len() >= 20, "{nonce:?}");
    nonce
}

// TL-02, TL-11, AU-45.
fn x509_needs_the_client_certificate(shell: Shell) {
    let users = vec![User::x509(Certificates::CLIENT_SUBJECT)];
    let endpoint = tls(Settings { auth: true, users, ..Settings::default() });
    let uri = with(&endpoint.uri_of(None), "authMechanism=MONGODB-X509");
    let error = refusal(&pool(shell, &uri).0);
    assert_eq!(error.stage(), Stage::Authentication, "{error}");
    assert_eq!(error.command_error().and_then(|error| error.code), Some(18), "{error}");
    let file = endpoint.certificates().expect("with TLS").client_file();
    let uri = with(&uri, &format!("tlsCertificateKeyFile={}", file.display()));
    assert!(ping(&pool(shell, &uri).0));
    let of_another = uri.replace("://", "://CN%3Danother@");
    let error = refusal(&pool(shell, &of_another).0);
    assert_eq!(error.command_error().and_then(|error| error.code), Some(18), "{error}");
}

// DU-02, TL-09: it has a permit of maxConnecting, and its time is in the event.
fn tls_is_part_of_establishing_a_connection(shell: Shell) {
    let endpoint = tls(Settings::default());
    // The server's part has about a thousand bytes.
    let every = Duration::from_millis(1);
    endpoint.set_tls_fault(Some(TlsFault::Drip { every }));
    let (pool, events) = pool(shell, &with(&endpoint.uri(), "connectTimeoutMS=60000"));
    thread::scope(|scope| {
        let request = scope.spawn(|| pool.check_out().map(drop));
        while pool.snapshot().connections_created == 0 {
            thread::yield_now();
        }
        assert_eq!(pool.snapshot().pending, 1);
        request.join().expect("no panic").expect("a connection");
    });
    pool.close();
    let events = events.lock().expect("no panic");
    let ready = events.iter().find_map(|event| {
        let Event::ConnectionReady { duration, .. } = event else { return None };
        Some(*duration)
    });
    assert!(ready >= Some(Duration::from_millis(500)), "{ready:?}");
}

/// What was verified by other files counts no more.
fn a_session_is_resumed_until_a_file_of_tls_changes(shell: Shell) {
    for only_tls_1_2 in [false, true] {
        let tls = Some(TlsOptions { only_tls_1_2, ..TlsOptions::default() });
        let options = ListenOptions { tls, ..ListenOptions::default() };
        let endpoint = Endpoint::start(Settings::default(), options).expect("it starts");
        let authority = endpoint.certificates().expect("with TLS").ca_file();
        let authority = fs::read_to_string(authority).expect("a file");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ca.pem");
        fs::write(&file, &authority).expect("a file");
        let name = file.to_str().expect("UTF-8").replace('/', "%2F");
        let (pool, _) =
            pool(shell, &format!("mongodb://{}/?tls=true&tlsCAFile={name}", endpoint.address()));
        let open = || pool.check_out().expect("a connection");

        let (_first, _second) = (open(), open());
        assert_eq!(endpoint.resumed_handshakes(), 1);
        // The same authority in a longer file.
        fs::write(&file, format!("{authority}\n")).expect("a file");
        let _third = open();
        assert_eq!(endpoint.resumed_handshakes(), 1);
        let _fourth = open();
        assert_eq!(endpoint.resumed_handshakes(), 2);
    }
}

// OP-27, CO-07, CO-21, ES-02, OUT-14, CM-07, CM-14
fn each_compressor_compresses(shell: Shell) {
    let endpoint = plain();
    for (name, compressor) in
        [("snappy", Compressor::Snappy), ("zlib", Compressor::Zlib), ("zstd", Compressor::Zstd)]
    {
        let (pool, _) = pool(shell, &with(&endpoint.uri(), &format!("compressors={name}")));
        let mut connection = pool.check_out().expect("it works");
        assert_eq!(connection.description().compressor, Some(compressor));
        let documents = (0..100).map(|id| rawdoc! { "_id": id, "text": "again and again" });
        let insert =
            rawdoc! { "insert": name, "documents": documents.collect::<bson::RawArrayBuf>() };
        let reply = connection.command("test", &insert).expect("it works");
        assert_eq!(reply.get_i32("n").ok(), Some(100));
        let reply = connection.command("test", &rawdoc! { "find": name }).expect("it works");
        assert!(reply.as_bytes().len() > 3000);
    }
}

// OP-28, CM-11.
fn zlib_has_the_level_that_was_set(shell: Shell) {
    let endpoint = plain();
    let [stored, compressed] = [0, 9].map(|level| {
        let proxy = FaultProxy::to(&endpoint.address()).expect("it starts");
        let options = format!("compressors=zlib&zlibCompressionLevel={level}");
        let (pool, _) = pool(shell, &with(&proxy.uri(&endpoint.uri()), &options));
        let mut connection = pool.check_out().expect("it works");
        let text = "again and again ".repeat(1000);
        let command = rawdoc! { "find": "birds", "filter": { "text": text } };
        connection.command("test", &command).expect("it works");
        let passed = proxy.passed(0).expect("one connection");
        passed.iter().filter(|(way, _)| *way == Way::ToServer).map(|(_, bytes)| bytes).sum::<u64>()
    });
    assert!(stored > 16_000 && compressed < 4000, "{stored} {compressed}");
}

fn a_unix_domain_socket(shell: Shell) {
    let folder = tempfile::tempdir().expect("it works");
    let place = ListenAddress::Unix { path: folder.path().join("server.sock") };
    let options = ListenOptions { place, ..ListenOptions::default() };
    let endpoint = Endpoint::start(Settings::default(), options).expect("it works");
    let (pool, _) = pool(shell, &endpoint.uri());
    assert!(ping(&pool));
}

// CO-21, CLB-06
fn behind_a_load_balancer_each_connection_knows_its_service(shell: Shell) {
    let topology = Topology::LoadBalanced(LoadBalanced { services: 2 });
    let endpoint = tls(Settings { topology, ..Settings::default() });
    let (pool, _) = pool(shell, &endpoint.uri());
    let mut first = pool.check_out().expect("it works");
    let second = pool.check_out().expect("it works");
    // LB-06.
    for (purpose, cursors, transactions) in [(Purpose::Cursor, 1, 0), (Purpose::Transaction, 0, 1)]
    {
        first.set_purpose(purpose);
        let counts = pool.snapshot();
        assert_eq!(
            (counts.in_use_by_cursors, counts.in_use_by_transactions),
            (cursors, transactions)
        );
        assert_eq!(counts.in_use_by_others, 1);
    }
    let services = [first.service_id().expect("it works"), second.service_id().expect("it works")];
    assert_ne!(services[0], services[1]);
    // A clear of one leaves the other alone.
    let cause = cenote_core::error::ConnectionError::network(Stage::Operation, "reset");
    pool.clear_service(cause, services[0]);
    assert!(first.is_stale() && !second.is_stale());
    drop((first, second));
    assert_eq!(pool.snapshot().available, 1);
}

// LB-12
fn a_server_that_is_no_load_balancer_is_refused(shell: Shell) {
    let endpoint = plain();
    let (pool, _) = pool(shell, &with(&endpoint.uri(), "loadBalanced=true"));
    let error = refusal(&pool);
    assert_eq!(error.stage(), Stage::Hello);
    assert!(error.to_string().contains("does not support this mode"), "{error}");
}

/// A SOCKS5 proxy, with or without a login.
fn proxy(login: bool) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            thread::spawn(move || relay(client, login));
        }
    });
    Ok(port)
}

fn relay(mut client: TcpStream, login: bool) -> io::Result<()> {
    let mut head = [0; 2];
    client.read_exact(&mut head)?;
    let mut methods = vec![0; usize::from(head[1])];
    client.read_exact(&mut methods)?;
    assert_eq!(methods, if login { vec![0, 2] } else { vec![0] });
    client.write_all(&[5, if login { 2 } else { 0 }])?;
    if login {
        let mut credential = [0; 2 + 4 + 1 + 6];
        client.read_exact(&mut credential)?;
        let is_right = &credential[2..6] == b"user" && &credential[7..] == b"pencil";
        client.write_all(&[1, u8::from(!is_right)])?;
    }
    let mut request = [0; 4];
    client.read_exact(&mut request)?;
    let length = match request[3] {
        1 => 4, // An IPv4 address.
        3 => {
            let mut length = [0];
            client.read_exact(&mut length)?;
            usize::from(length[0])
        }
        other => panic!("an address of type {other}"),
    };
    client.read_exact(&mut vec![0; length])?;
    let mut port = [0; 2];
    client.read_exact(&mut port)?;
    let port = u16::from_be_bytes(port);
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let copied = io::copy(&mut from_client, &mut to_server);
        copied.and_then(|_| to_server.shutdown(Shutdown::Write))
    });
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Write)
}

// ER-32, SX-03, SX-05, SX-06, TL-10
fn through_a_proxy_with_tls_to_the_server(shell: Shell) {
    let endpoint = tls(Settings::default());
    let port = proxy(false).expect("it works");
    let uri = with(&endpoint.uri(), &format!("proxyHost=127.0.0.1&proxyPort={port}"));
    assert!(ping(&pool(shell, &uri).0));

    let port = proxy(true).expect("it works");
    let uri = with(&endpoint.uri(), &format!("proxyHost=127.0.0.1&proxyPort={port}"));
    let right = with(&uri, "proxyUsername=user&proxyPassword=pencil");
    assert!(ping(&pool(shell, &right).0));
    let wrong = with(&uri, "proxyUsername=user&proxyPassword=eraser");
    let error = refusal(&pool(shell, &wrong).0);
    assert_eq!(error.stage(), Stage::Proxy);
    assert!(!error.is_overload());
}

// SX-04, SX-07
fn a_proxy_resolves_the_name(shell: Shell) {
    let endpoint = plain();
    let port = proxy(false).expect("it works");
    let uri = endpoint.uri().replacen("127.0.0.1", "db.nowhere.invalid", 1);
    let (pool, events) = pool(shell, &with(&uri, &format!("proxyHost=127.0.0.1&proxyPort={port}")));
    assert!(ping(&pool));
    let events = format!("{:?}", events.lock().expect("no panic"));
    assert!(!events.contains(&port.to_string()), "{events}");
}
