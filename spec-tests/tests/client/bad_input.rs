//! Servers that cannot be used: each says which one, at which stage, and stays visible.

use bson::rawdoc;
use cenote::endpoint::{Endpoint, ListenOptions, Role, Settings, User};
use cenote_tokio::{Client, ClientError, SelectionError, Selector};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::{World, member, standalone};

/// What a command is told, and what the only server shows.
async fn refused(uri: &str) -> (ClientError, String) {
    let world = World::new(uri);
    let error =
        world.client.command("admin", &rawdoc! { "ping": 1 }).await.expect_err("it must not work");
    world.until("refused", |world| world.error().is_some()).await;
    let shown = world.error().expect("it is Unknown");
    world.client.close().await;
    (error, shown)
}

fn is_hopeless(error: &ClientError) -> bool {
    matches!(error, ClientError::Selection(SelectionError::Hopeless { .. }))
}

fn with(endpoint: &Endpoint, options: &str) -> String {
    format!("mongodb://{}/?{options}", endpoint.address())
}

#[tokio::test]
async fn nobody_is_there() {
    let soon = "serverSelectionTimeoutMS=300";
    let (error, shown) = refused(&format!("mongodb://nobody.invalid/?{soon}")).await;
    assert!(shown.starts_with("name resolution"), "{shown}");
    assert!(
        error.to_string().contains("nobody.invalid:27017: Unknown: name resolution"),
        "{error}"
    );
    assert!(error.to_string().starts_with("there was no primary"), "{error}");
    let (error, shown) = refused(&format!("mongodb://127.0.0.1:1/?{soon}")).await;
    assert!(shown.contains("refused"), "{shown}");
    assert!(error.to_string().contains("127.0.0.1:1: Unknown: "), "{error}");
}

/// Without waiting for thirty seconds: what is refused on sight stays refused.
#[tokio::test]
async fn another_replica_set() {
    let only = member(Role::Primary);
    let (error, shown) = refused(&with(&only, "replicaSet=rs1")).await;
    assert!(is_hopeless(&error), "{error}");
    assert!(shown.contains("belongs to the replica set `rs0`, not to `rs1`"), "{shown}");
}

#[tokio::test]
async fn another_protocol() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let speaking = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 16];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let (error, shown) = refused(&format!("mongodb://{address}")).await;
    assert!(is_hopeless(&error), "{error}");
    assert!(shown.starts_with("hello"), "{shown}");
    speaking.abort();
}

/// TLS and none, either way; and a certificate that nobody here has signed.
#[tokio::test]
async fn tls_where_there_is_none_and_the_reverse() {
    let soon = "serverSelectionTimeoutMS=300";
    let plain = standalone();
    let insecure = format!("tls=true&tlsInsecure=true&{soon}");
    let (_, shown) = refused(&with(&plain, &insecure)).await;
    assert!(shown.starts_with("TLS"), "{shown}");
    let tls = Endpoint::start(Settings::default(), ListenOptions::with_tls()).expect("it starts");
    let (_, shown) = refused(&with(&tls, soon)).await;
    assert!(shown.starts_with("hello"), "{shown}");
    let stranger = Endpoint::start(Settings::default(), ListenOptions::with_tls());
    let stranger = stranger.expect("it starts");
    let ca = stranger.certificates().expect("with TLS").ca_file();
    let foreign = format!("tls=true&tlsCAFile={}", ca.display());
    let (error, shown) = refused(&with(&tls, &foreign)).await;
    assert!(is_hopeless(&error), "{error}");
    assert!(shown.starts_with("TLS"), "{shown}");
}

/// SD-24: monitors do not log in, so that it is the first check-out that finds out.
#[tokio::test]
async fn a_wrong_password() {
    let settings =
        Settings { auth: true, users: vec![User::new("app", "pencil")], ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let world = World::new(&format!("mongodb://app:wrong@{}", endpoint.address()));
    let error = world.client.command("admin", &rawdoc! { "ping": 1 }).await.unwrap_err();
    assert!(matches!(error, ClientError::Pool(_)), "{error}");
    assert!(error.to_string().starts_with("authentication"), "{error}");
    assert!(!error.to_string().contains("wrong"), "{error}");
    assert_eq!(world.count("ConnectionPoolCleared"), 1);
    world.client.close().await;
}

#[tokio::test]
async fn what_is_not_of_this_client() {
    let only = standalone();
    let world = World::of(&[&only], "");
    let selector = Selector::Address("elsewhere.example.com".parse().expect("an address"));
    let error = world.client.check_out(&selector).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "elsewhere.example.com:27017 is no host of this client: name it in the connection string"
    );
    world.client.close().await;
}

#[tokio::test]
async fn connection_strings_that_are_none() {
    for uri in ["", "http://db", "mongodb://", "mongodb://db/?minPoolSize=3&maxPoolSize=2"] {
        assert!(Client::new(uri).is_err(), "{uri}");
    }
    let builder = Client::builder("mongodb://db/?heartbeatFrequencyMS=10&colour=red");
    assert_eq!(builder.expect("a connection string").warnings().len(), 2);
}

/// The same host twice is one server.
#[tokio::test]
async fn a_host_that_is_named_twice() {
    let only = standalone();
    let world = World::of(&[&only, &only], "");
    world.ping().await;
    assert_eq!(world.client.servers().len(), 1);
    world.client.close().await;
}
