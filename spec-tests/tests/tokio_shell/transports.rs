//! Everything that a connection can travel on, and everyone who can log in.

use std::io;
use std::net::Ipv4Addr;

use bson::rawdoc;
use cenote::endpoint::{
    Certificates, Endpoint, ListenOptions, LoadBalanced, Mechanism, Place, Settings, TlsFault,
    Topology, User,
};
use cenote_core::error::Stage;
use cenote_core::uri::Compressor;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{ping, plain, pool, refusal, tls, with};

#[tokio::test]
async fn plain_tcp() {
    let endpoint = plain();
    let (pool, _) = pool(&endpoint.uri());
    for _ in 0..3 {
        assert!(ping(&pool).await);
    }
    assert_eq!(endpoint.with(|server, _| server.statistics()).accepted, 1);
    pool.close().await;
}

#[tokio::test]
async fn everyone_who_can_log_in_does() {
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
        assert!(ping(&pool).await, "{user:?}");
        let connection = pool.check_out().await.unwrap();
        assert!(connection.description().mechanism.is_some(), "{user:?}");
    }
    assert_eq!(endpoint.with(|server, _| server.statistics()).failed_logins, 0);

    let wrong = endpoint.uri_of(Some(&User::new("both", "eraser")));
    let error = refusal(&pool(&wrong).0).await;
    assert_eq!(error.stage(), Stage::Authentication);
    assert_eq!(error.command_error().and_then(|error| error.code), Some(18));
    assert!(!error.to_string().contains("eraser"));
}

#[tokio::test]
async fn each_compressor_compresses() {
    let endpoint = plain();
    for (name, compressor) in
        [("snappy", Compressor::Snappy), ("zlib", Compressor::Zlib), ("zstd", Compressor::Zstd)]
    {
        let (pool, _) = pool(&with(&endpoint.uri(), &format!("compressors={name}")));
        let mut connection = pool.check_out().await.unwrap();
        assert_eq!(connection.description().compressor, Some(compressor));
        let documents = (0..100).map(|id| rawdoc! { "_id": id, "text": "again and again" });
        let insert =
            rawdoc! { "insert": name, "documents": documents.collect::<bson::RawArrayBuf>() };
        let reply = connection.command("test", &insert).await.unwrap();
        assert_eq!(reply.get_i32("n").ok(), Some(100));
        let reply = connection.command("test", &rawdoc! { "find": name }).await.unwrap();
        assert!(reply.as_bytes().len() > 3000);
    }
}

#[tokio::test]
async fn a_unix_domain_socket() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Unix { path: folder.path().join("server.sock") };
    let options = ListenOptions { place, ..ListenOptions::default() };
    let endpoint = Endpoint::start(Settings::default(), options).unwrap();
    let (pool, _) = pool(&endpoint.uri());
    assert!(ping(&pool).await);
}

#[tokio::test]
async fn behind_a_load_balancer_each_connection_knows_its_service() {
    let topology = Topology::LoadBalanced(LoadBalanced { services: 2 });
    let endpoint = tls(Settings { topology, ..Settings::default() });
    let (pool, _) = pool(&endpoint.uri());
    let first = pool.check_out().await.unwrap();
    let second = pool.check_out().await.unwrap();
    let services = [first.service_id().unwrap(), second.service_id().unwrap()];
    assert_ne!(services[0], services[1]);
    // A clear of one leaves the other alone.
    let cause = cenote_core::error::ConnectionError::network(Stage::Operation, "reset");
    pool.clear_service(cause, services[0]);
    assert!(first.is_stale() && !second.is_stale());
    drop((first, second));
    assert_eq!(pool.snapshot().available, 1);
}

#[tokio::test]
async fn a_server_that_is_no_load_balancer_says_so() {
    let endpoint = plain();
    let (pool, _) = pool(&with(&endpoint.uri(), "loadBalanced=true"));
    let error = refusal(&pool).await;
    assert_eq!(error.stage(), Stage::Hello);
    assert!(error.to_string().contains("does not support this mode"), "{error}");
}

/// A proxy that only knows how to connect, with or without a login.
async fn proxy(login: bool) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(relay(client, login));
        }
    });
    Ok(port)
}

async fn relay(mut client: TcpStream, login: bool) -> io::Result<()> {
    let mut head = [0; 2];
    client.read_exact(&mut head).await?;
    let mut methods = vec![0; usize::from(head[1])];
    client.read_exact(&mut methods).await?;
    client.write_all(&[5, if login { 2 } else { 0 }]).await?;
    if login {
        let mut credential = [0; 2 + 4 + 1 + 6];
        client.read_exact(&mut credential).await?;
        let is_right = &credential[2..6] == b"user" && &credential[7..] == b"pencil";
        client.write_all(&[1, u8::from(!is_right)]).await?;
    }
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    assert_eq!(request[3], 1, "an IPv4 address");
    let mut address = [0; 6];
    client.read_exact(&mut address).await?;
    let port = u16::from_be_bytes([address[4], address[5]]);
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

#[tokio::test]
async fn through_a_proxy_with_tls_to_the_server() {
    let endpoint = tls(Settings::default());
    let port = proxy(false).await.unwrap();
    let uri = with(&endpoint.uri(), &format!("proxyHost=127.0.0.1&proxyPort={port}"));
    assert!(ping(&pool(&uri).0).await);

    let port = proxy(true).await.unwrap();
    let uri = with(&endpoint.uri(), &format!("proxyHost=127.0.0.1&proxyPort={port}"));
    let right = with(&uri, "proxyUsername=user&proxyPassword=pencil");
    assert!(ping(&pool(&right).0).await);
    let wrong = with(&uri, "proxyUsername=user&proxyPassword=eraser");
    let error = refusal(&pool(&wrong).0).await;
    assert_eq!(error.stage(), Stage::Proxy);
    assert!(!error.is_overload());
}

#[tokio::test]
async fn hundreds_of_handshakes_byte_by_byte_do_not_hold_up_others() {
    let slow = tls(Settings::default());
    slow.set_tls_fault(Some(TlsFault::Drip { every: Duration::from_millis(1) }));
    let uri = with(&slow.uri(), "maxConnecting=100&maxPoolSize=100&connectTimeoutMS=60000");
    let (dripping, _) = pool(&uri);
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let pool = dripping.clone();
            tokio::spawn(async move { ping(&pool).await })
        })
        .collect();
    let quick = tls(Settings::default());
    let (others, _) = pool(&quick.uri());
    while dripping.snapshot().pending < 100 {
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        assert!(ping(&others).await);
    }
    assert_eq!(dripping.snapshot().in_use, 0, "they are still at it");
    for task in tasks {
        assert!(task.await.unwrap());
    }
}
