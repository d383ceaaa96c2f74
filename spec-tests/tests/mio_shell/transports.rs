//! Everything that a connection can travel on, and everyone who can log in.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote::endpoint::{
    Certificates, Endpoint, ListenOptions, LoadBalanced, Mechanism, Place, Settings, TlsFault,
    Topology, User,
};
use cenote_core::error::Stage;
use cenote_core::uri::{Compressor, ConnectionString};
use cenote_mio::{Builder, Mongo};

use crate::world::{ping, plain, pool, refusal, tls, with};

#[test]
fn plain_tcp() {
    let endpoint = plain();
    let (pool, _) = pool(&endpoint.uri());
    for _ in 0..3 {
        assert!(ping(&pool));
    }
    assert_eq!(endpoint.with(|server, _| server.statistics()).accepted, 1);
    pool.close();
}

#[test]
fn everyone_who_can_log_in_does() {
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
        let (pool, _) = pool(&endpoint.uri_of(Some(user)));
        assert!(ping(&pool), "{user:?}");
        let connection = pool.check_out().unwrap();
        assert!(connection.description().mechanism.is_some(), "{user:?}");
    }
    assert_eq!(endpoint.with(|server, _| server.statistics()).failed_logins, 0);

    let wrong = endpoint.uri_of(Some(&User::new("both", "eraser")));
    let error = refusal(&pool(&wrong).0);
    assert_eq!(error.stage(), Stage::Authentication);
    assert_eq!(error.command_error().and_then(|error| error.code), Some(18));
    assert!(!error.to_string().contains("eraser"));
}

#[test]
fn each_compressor_compresses() {
    let endpoint = plain();
    for (name, compressor) in
        [("snappy", Compressor::Snappy), ("zlib", Compressor::Zlib), ("zstd", Compressor::Zstd)]
    {
        let (pool, _) = pool(&with(&endpoint.uri(), &format!("compressors={name}")));
        let mut connection = pool.check_out().unwrap();
        assert_eq!(connection.description().compressor, Some(compressor));
        let documents = (0..100).map(|id| rawdoc! { "_id": id, "text": "again and again" });
        let insert =
            rawdoc! { "insert": name, "documents": documents.collect::<bson::RawArrayBuf>() };
        let reply = connection.command("test", &insert).unwrap();
        assert_eq!(reply.get_i32("n").ok(), Some(100));
        let reply = connection.command("test", &rawdoc! { "find": name }).unwrap();
        assert!(reply.as_bytes().len() > 3000);
    }
}

#[test]
fn a_unix_domain_socket() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Unix { path: folder.path().join("server.sock") };
    let options = ListenOptions { place, ..ListenOptions::default() };
    let endpoint = Endpoint::start(Settings::default(), options).unwrap();
    let (pool, _) = pool(&endpoint.uri());
    assert!(ping(&pool));
}

#[test]
fn behind_a_load_balancer_each_connection_knows_its_service() {
    let topology = Topology::LoadBalanced(LoadBalanced { services: 2 });
    let endpoint = tls(Settings { topology, ..Settings::default() });
    let (pool, _) = pool(&endpoint.uri());
    let first = pool.check_out().unwrap();
    let second = pool.check_out().unwrap();
    let services = [first.service_id().unwrap(), second.service_id().unwrap()];
    assert_ne!(services[0], services[1]);
    // A clear of one leaves the other alone.
    let cause = cenote_core::error::ConnectionError::network(Stage::Operation, "reset");
    pool.clear_service(cause, services[0]);
    assert!(first.is_stale() && !second.is_stale());
    drop((first, second));
    assert_eq!(pool.snapshot().available, 1);
}

#[test]
fn a_server_that_is_no_load_balancer_says_so() {
    let endpoint = plain();
    let (pool, _) = pool(&with(&endpoint.uri(), "loadBalanced=true"));
    let error = refusal(&pool);
    assert_eq!(error.stage(), Stage::Hello);
    assert!(error.to_string().contains("does not support this mode"), "{error}");
}

/// A proxy that only knows how to connect, with or without a login.
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
    client.write_all(&[5, if login { 2 } else { 0 }])?;
    if login {
        let mut credential = [0; 2 + 4 + 1 + 6];
        client.read_exact(&mut credential)?;
        let is_right = &credential[2..6] == b"user" && &credential[7..] == b"pencil";
        client.write_all(&[1, u8::from(!is_right)])?;
    }
    let mut request = [0; 4];
    client.read_exact(&mut request)?;
    assert_eq!(request[3], 1, "an IPv4 address");
    let mut address = [0; 6];
    client.read_exact(&mut address)?;
    let port = u16::from_be_bytes([address[4], address[5]]);
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

#[test]
fn through_a_proxy_with_tls_to_the_server() {
    let endpoint = tls(Settings::default());
    let port = proxy(false).unwrap();
    let uri = with(&endpoint.uri(), &format!("proxyHost=127.0.0.1&proxyPort={port}"));
    assert!(ping(&pool(&uri).0));

    let port = proxy(true).unwrap();
    let uri = with(&endpoint.uri(), &format!("proxyHost=127.0.0.1&proxyPort={port}"));
    let right = with(&uri, "proxyUsername=user&proxyPassword=pencil");
    assert!(ping(&pool(&right).0));
    let wrong = with(&uri, "proxyUsername=user&proxyPassword=eraser");
    let error = refusal(&pool(&wrong).0);
    assert_eq!(error.stage(), Stage::Proxy);
    assert!(!error.is_overload());
}

/// A name with several addresses, the first of which nobody answers at.
#[test]
fn the_addresses_of_a_name_are_tried_in_turn() {
    let endpoint = plain();
    let uri = endpoint.uri().replace("127.0.0.1", "db.invalid");
    let address = ConnectionString::parse(&uri).unwrap();
    let [nobody, somebody] = ["127.0.0.2", "127.0.0.1"].map(|it| it.parse().unwrap());
    for addresses in [vec![nobody, somebody], vec![somebody]] {
        let mongo = Mongo::new(&address).unwrap().with_addresses(addresses);
        let pool = Builder::new(address.hosts[0].clone(), mongo).build().unwrap();
        pool.ready();
        assert!(ping(&pool));
    }
    // A resolver that is at a loss, and one that loses its question.
    let lost = Mongo::new(&address).unwrap().with_resolver(drop);
    let refused = Mongo::new(&address).unwrap().with_resolver(|lookup| {
        assert_eq!(lookup.host(), "db.invalid");
        lookup.answer(Err(io::ErrorKind::NotFound.into()));
    });
    for mongo in [lost, refused] {
        let pool = Builder::new(address.hosts[0].clone(), mongo).build().unwrap();
        pool.ready();
        assert_eq!(refusal(&pool).stage(), Stage::Dns);
    }
}

/// Whoever resolves names may take its time: nobody else waits.
#[test]
fn a_name_that_takes_its_time_holds_up_nobody() {
    let endpoint = plain();
    let uri = endpoint.uri().replace("127.0.0.1", "db.invalid");
    let address = ConnectionString::parse(&uri).unwrap();
    let (sender, questions) = std::sync::mpsc::channel();
    let mongo = Mongo::new(&address).unwrap().with_resolver(move |lookup| {
        sender.send(lookup).expect("somebody listens");
    });
    let pool = Builder::new(address.hosts[0].clone(), mongo).build().unwrap();
    pool.ready();
    thread::scope(|scope| {
        let [first, second] = [(); 2].map(|()| scope.spawn(|| ping(&pool)));
        let [one, other] = [(); 2].map(|()| questions.recv().unwrap());
        let here = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), other.port());
        other.answer(Ok(vec![here]));
        // One of them is through, while the other has no address yet.
        while pool.snapshot().total - pool.snapshot().pending == 0 {
            thread::yield_now();
        }
        one.answer(Ok(vec![here]));
        assert!(first.join().unwrap() && second.join().unwrap());
    });
}

/// One pool, one loop: 300 connections that will take minutes, and one that goes through.
#[test]
fn hundreds_of_handshakes_byte_by_byte_do_not_hold_up_others() {
    const SLOW: u32 = 300;
    let (slow, quick) = (tls(Settings::default()), tls(Settings::default()));
    slow.set_tls_fault(Some(TlsFault::Drip { every: Duration::from_millis(100) }));
    let options =
        "tls=true&tlsInsecure=true&connectTimeoutMS=0&maxConnecting=1000&maxPoolSize=1000";
    let uri = ConnectionString::parse(&format!("mongodb://db.invalid/?{options}")).unwrap();
    let [to_slow, to_quick] = [&slow, &quick].map(|endpoint| {
        let port = endpoint.address().port().expect("TCP");
        SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)
    });
    let asked = AtomicU32::new(0);
    let mongo = Mongo::new(&uri).unwrap().with_resolver(move |lookup| {
        let is_slow = asked.fetch_add(1, Ordering::Relaxed) < SLOW;
        lookup.answer(Ok(vec![if is_slow { to_slow } else { to_quick }]));
    });
    let pool = Builder::new(uri.hosts[0].clone(), mongo).options(uri.pool.clone()).build().unwrap();
    pool.ready();
    let threads: Vec<_> = (0..SLOW)
        .map(|_| {
            let pool = pool.clone();
            thread::spawn(move || pool.check_out().map(drop).unwrap_err().name())
        })
        .collect();
    while pool.snapshot().pending < SLOW {
        thread::yield_now();
    }
    assert!(ping(&pool));
    assert_eq!(pool.snapshot().pending, SLOW, "they are still at it");
    pool.close();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), "PoolClosedError");
    }
}
