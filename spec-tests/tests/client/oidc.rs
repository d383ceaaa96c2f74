//! MONGODB-OIDC with a callback for access tokens: the specification's prose tests for machines, and what may go wrong.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bson::{Document, RawDocumentBuf, rawdoc};
use cenote_core::client::{ClientError, Selector};
use cenote_core::error::BoxError;
use cenote_core::uri::srv::SrvRecord;
use cenote_endpoint::{AccessToken as Accepted, Endpoint, ListenOptions, NameServer, Settings};
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::oidc::TokenRequest;
use cenote_test_runtimes::alone_with;
use cenote_tokio::AccessToken;

use crate::shells::{AnyClient, ClientSetup, Shell, client_with_tokens, on_all_runtimes};

on_all_runtimes!(
    the_callback_is_called_once_for_many_connections,
    the_callback_knows_the_user_and_the_time,
    callbacks_that_fail,
    a_callback_that_blocks_for_too_long,
    what_does_not_go_with_a_callback,
    a_token_of_the_cache_that_has_expired_is_replaced,
    tokens_that_are_never_accepted,
    a_token_that_expires_during_the_handshake,
    a_callback_that_is_too_slow_to_authenticate_again,
    another_refusal_keeps_the_token,
    a_command_after_code_391_authenticates_again,
    a_command_fails_if_authenticating_again_fails,
    a_session_goes_on_after_code_391,
    many_connections_share_the_new_token,
    a_server_that_asks_for_ever,
    a_driver_authenticates_again_itself,
    scram_authenticates_again_too,
    calls_are_apart,
);

const GOOD: &str = "hunter2good";
const NEWER: &str = "hunter2newer";

struct World {
    endpoint: Endpoint,
    client: Box<dyn AnyClient>,
    calls: Arc<AtomicUsize>,
}

fn accepted(texts: &[&str]) -> Vec<Accepted> {
    texts.iter().map(|text| Accepted::new(text, "robot")).collect()
}

fn endpoint() -> Endpoint {
    let settings = Settings { auth: true, access_tokens: accepted(&[GOOD]), ..Settings::default() };
    Endpoint::start(settings, ListenOptions::default()).expect("it starts")
}

fn uri(endpoint: &Endpoint) -> String {
    let options = "authMechanism=MONGODB-OIDC&heartbeatFrequencyMS=500";
    format!("mongodb://{}/?{options}", endpoint.address())
}

/// A client whose callback returns these tokens, and then the last one again and again.
fn world(shell: Shell, tokens: &'static [&'static str]) -> World {
    let (endpoint, calls) = (endpoint(), Arc::new(AtomicUsize::new(0)));
    let called = Arc::clone(&calls);
    let callback = move |_: &TokenRequest| {
        let call = called.fetch_add(1, Ordering::SeqCst);
        Ok(AccessToken::new(tokens[call.min(tokens.len() - 1)]))
    };
    let client = client_with_tokens(shell, &uri(&endpoint), callback).expect("good options");
    World { endpoint, client, calls }
}

impl World {
    fn count(&self) -> Result<RawDocumentBuf, ClientError> {
        self.client.command("zoo", &rawdoc! { "count": "birds" })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn fail(&self, command: &str, code: i32, times: i32) {
        let fail_point = rawdoc! {
            "configureFailPoint": "failCommand",
            "mode": { "times": times },
            "data": { "failCommands": [command], "errorCode": code },
        };
        self.endpoint.with(|server, _| server.set_fail_point(&fail_point)).expect("it is known");
    }

    fn accept(&self, texts: &[&str]) {
        self.endpoint.with(|server, _| server.set_access_tokens(accepted(texts)));
    }

    fn commands(&self, name: &str) -> u64 {
        let count = self.endpoint.with(|server, _| server.statistics().commands.get(name).copied());
        count.unwrap_or(0)
    }
}

// AU-55, OI-06, OI-09
// Prose tests 1.1 and 1.2.
fn the_callback_is_called_once_for_many_connections(shell: Shell) {
    let world = world(shell, &[GOOD]);
    world.count().expect("it is logged in");
    assert_eq!(world.calls(), 1);
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| (0..100).for_each(|_| drop(world.count().expect("it is logged in"))));
        }
    });
    assert_eq!(world.calls(), 1);
    // Later connections need no command of their own for it.
    assert_eq!(world.commands("saslStart"), 1);
    let reply = world.client.command("admin", &rawdoc! { "connectionStatus": 1 }).expect("a reply");
    let reply = Document::try_from(&reply).expect("BSON");
    assert!(reply.to_string().contains("robot"), "{reply}");
    world.client.close();
}

// OI-02, OI-03, OI-04
// Prose test 2.1.
fn the_callback_knows_the_user_and_the_time(shell: Shell) {
    for (options, least, most) in [
        ("connectTimeoutMS=7000", 30, 60),
        ("connectTimeoutMS=7000&timeoutMS=30000", 1, 7),
        ("connectTimeoutMS=30000&timeoutMS=7000", 1, 7),
    ] {
        let (endpoint, requests) = (endpoint(), Arc::new(Mutex::new(Vec::new())));
        let told = Arc::clone(&requests);
        let callback = move |request: &TokenRequest| {
            told.lock().expect("no panic").push(request.clone());
            Ok(AccessToken::new(GOOD))
        };
        let address = endpoint.address();
        let uri = format!("mongodb://robot@{address}/?authMechanism=MONGODB-OIDC&{options}");
        let client = client_with_tokens(shell, &uri, callback).expect("good options");
        client.command("zoo", &rawdoc! { "count": "birds" }).expect("it is logged in");
        client.close();
        let requests = requests.lock().expect("no panic");
        assert_eq!(requests.len(), 1);
        assert_eq!((requests[0].username.as_deref(), requests[0].version), (Some("robot"), 1));
        let range = Duration::from_secs(least)..=Duration::from_secs(most);
        assert!(range.contains(&requests[0].timeout), "{options}: {:?}", requests[0].timeout);
    }
}

// OI-02
// Prose tests 2.2 and 2.3.
fn callbacks_that_fail(shell: Shell) {
    type Callback = fn(&TokenRequest) -> Result<AccessToken, BoxError>;
    let cases: [(Callback, &str); 3] = [
        (|_| Err("no network".into()), "the callback for access tokens failed: no network"),
        (|_| Ok(AccessToken::new("")), "the callback for access tokens returned an empty token"),
        (|_| panic!("on purpose"), "the callback for access tokens panicked"),
    ];
    for (callback, expected) in cases {
        let endpoint = endpoint();
        let client = client_with_tokens(shell, &uri(&endpoint), callback).expect("good options");
        let error = client.command("zoo", &rawdoc! { "count": "birds" }).expect_err("it fails");
        assert!(error.to_string().contains(expected), "{error}");
        client.close();
    }
}

/// Longer than the operation may take; without `timeoutMS` there is a minute, and the rest of the handshake has its time.
// OI-03
fn a_callback_that_blocks_for_too_long(shell: Shell) {
    let (endpoint, calls) = (endpoint(), Arc::new(AtomicUsize::new(0)));
    let ended = Arc::clone(&calls);
    let callback = move |_: &TokenRequest| {
        thread::sleep(Duration::from_millis(3000));
        ended.fetch_add(1, Ordering::SeqCst);
        Ok(AccessToken::new(GOOD))
    };
    let count = rawdoc! { "count": "birds" };
    let limited = format!("{}&timeoutMS=1500", uri(&endpoint));
    let client = client_with_tokens(shell, &limited, callback.clone()).expect("good options");
    let error = client.command("zoo", &count).expect_err("it takes too long");
    assert!(error.is_timeout(), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 0, "the callback goes on");
    // Its token is there for later connections.
    let end = Instant::now() + Duration::from_secs(20);
    while client.command("zoo", &count).is_err() {
        assert!(Instant::now() < end, "the token is of use");
        thread::sleep(Duration::from_millis(50));
    }
    client.close();

    let limited = format!("{}&connectTimeoutMS=2000", uri(&endpoint));
    let client = client_with_tokens(shell, &limited, callback).expect("good options");
    client.command("zoo", &count).expect("a minute is enough");
    client.close();
}

// OI-01
// Prose tests 2.4 and 2.5.
fn what_does_not_go_with_a_callback(shell: Shell) {
    let callback = |_: &TokenRequest| Ok(AccessToken::new(GOOD));
    let host = "mongodb://127.0.0.1:1/?authMechanism=MONGODB-OIDC";
    for (uri, expected) in [
        (
            &*format!("{host}&authMechanismProperties=ENVIRONMENT:test"),
            "takes its access tokens from ENVIRONMENT or from a callback: leave one of them out",
        ),
        (
            &*format!("{host}&authMechanismProperties=ENVIRONMENT:azure,ALLOWED_HOSTS:%5B%5D"),
            "is none of its properties (ENVIRONMENT, TOKEN_RESOURCE)",
        ),
        ("mongodb://127.0.0.1:1", "a callback for access tokens is for MONGODB-OIDC"),
        ("mongodb://a:b@127.0.0.1:1", "a callback for access tokens is for MONGODB-OIDC"),
    ] {
        let error = client_with_tokens(shell, uri, callback).err().expect("it is refused");
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(client_with_tokens(shell, host, callback).is_ok());
    let refused = shell.build_client(host, ClientSetup::default());
    let error = refused.err().expect("it is refused").to_string();
    assert!(error.contains("MONGODB-OIDC needs a callback that returns access tokens"), "{error}");
}

// AU-55, OI-10
// Prose test 3.1: with a new connection.
fn a_token_of_the_cache_that_has_expired_is_replaced(shell: Shell) {
    let world = world(shell, &[GOOD, NEWER]);
    let held = world.client.check_out(&Selector::Primary).expect("it is logged in");
    world.accept(&[NEWER]);
    world.count().expect("with the new token");
    assert_eq!(world.calls(), 2);
    drop(held);
    world.client.close();
}

fn says_that_the_token_is_refused(error: &ClientError) -> bool {
    let text = error.to_string();
    let expected = "authentication: the access token is refused: it has expired, or is not for this server or user: \
                    check how long it is valid, and its issuer and audience: ";
    text.starts_with(expected) && text.contains("code 18")
}

// OI-10
// Prose test 3.2.
fn tokens_that_are_never_accepted(shell: Shell) {
    let world = world(shell, &["hunter2bad"]);
    let error = world.count().expect_err("the server refuses it");
    assert!(says_that_the_token_is_refused(&error), "{error}");
    assert!(!format!("{error} {error:?}").contains("hunter2"));
    assert_eq!(world.calls(), 1);
    world.client.close();
}

/// The command fails, and the next one gets a new token.
fn a_token_that_expires_during_the_handshake(shell: Shell) {
    let (endpoint, calls) = (Arc::new(endpoint()), Arc::new(AtomicUsize::new(0)));
    let (server, called) = (Arc::clone(&endpoint), Arc::clone(&calls));
    let callback = move |_: &TokenRequest| {
        server.with(|server, _| server.set_access_tokens(accepted(&[NEWER])));
        Ok(AccessToken::new([GOOD, NEWER][called.fetch_add(1, Ordering::SeqCst).min(1)]))
    };
    let client = client_with_tokens(shell, &uri(&endpoint), callback).expect("good options");
    let error = client.command("zoo", &rawdoc! { "count": "birds" }).expect_err("it has expired");
    assert!(says_that_the_token_is_refused(&error), "{error}");
    let end = Instant::now() + Duration::from_secs(20);
    while client.command("zoo", &rawdoc! { "count": "birds" }).is_err() {
        assert!(Instant::now() < end, "there is a new token");
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    client.close();
}

/// Where callers block, the callback has its way; then there is no time left for the rest.
fn a_callback_that_is_too_slow_to_authenticate_again(shell: Shell) {
    let (endpoint, calls) = (endpoint(), AtomicUsize::new(0));
    let callback = move |request: &TokenRequest| {
        if calls.fetch_add(1, Ordering::SeqCst) == 1 {
            assert!(request.timeout <= Duration::from_millis(300), "{:?}", request.timeout);
            thread::sleep(Duration::from_secs(1));
        }
        Ok(AccessToken::new(GOOD))
    };
    let client = client_with_tokens(shell, &uri(&endpoint), callback).expect("good options");
    let count = rawdoc! { "count": "birds" };
    client.command("zoo", &count).expect("it is logged in");
    let fail_point = rawdoc! {
        "configureFailPoint": "failCommand",
        "mode": { "times": 1 },
        "data": { "failCommands": ["count"], "errorCode": 391 },
    };
    endpoint.with(|server, _| server.set_fail_point(&fail_point)).expect("it is known");
    let options = OperationOptions::new().with_timeout(Duration::from_millis(300));
    let error = client.command_with("zoo", &count, options).expect_err("it takes too long");
    assert!(error.is_timeout(), "{error}");
    let end = Instant::now() + Duration::from_secs(20);
    while client.command("zoo", &count).is_err() {
        assert!(Instant::now() < end, "another connection is there");
        thread::sleep(Duration::from_millis(10));
    }
    client.close();
}

// OI-08
// Prose test 3.3.
fn another_refusal_keeps_the_token(shell: Shell) {
    let world = world(shell, &[GOOD]);
    world.fail("saslStart", 20, 1);
    world.count().expect_err("the fail point");
    assert_eq!(world.calls(), 1);
    let end = Instant::now() + Duration::from_secs(20);
    while world.count().is_err() {
        assert!(Instant::now() < end, "the pool is ready again");
    }
    assert_eq!(world.calls(), 1);
    world.client.close();
}

/// A read and a write.
fn commands() -> [(&'static str, RawDocumentBuf); 2] {
    let insert = rawdoc! { "insert": "birds", "documents": [{ "_id": 1 }] };
    [("count", rawdoc! { "count": "birds" }), ("insert", insert)]
}

// OI-11
// AU-09, prose tests 4.1 and 4.4: retryable or not.
fn a_command_after_code_391_authenticates_again(shell: Shell) {
    let world = world(shell, &[GOOD]);
    world.count().expect("it is logged in");
    for (name, command) in commands() {
        let (sent, calls) = (world.commands(name), world.calls());
        let starts = world.commands("saslStart");
        world.fail(name, 391, 1);
        world.client.command("zoo", &command).expect("it is sent again");
        assert_eq!((world.commands(name), world.calls()), (sent + 2, calls + 1));
        // Hello is not sent again, so that nothing is speculated.
        assert_eq!(world.commands("saslStart"), starts + 1);
    }
    assert_eq!(world.endpoint.with(|server, _| server.statistics().failed_logins), 0);
    world.client.close();
}

// Prose tests 4.2 and 4.3.
fn a_command_fails_if_authenticating_again_fails(shell: Shell) {
    for (name, command) in commands() {
        let world = world(shell, &[GOOD, "hunter2bad"]);
        world.client.command("zoo", &command).expect("it is logged in");
        world.fail(name, 391, 1);
        let error = world.client.command("zoo", &command).expect_err("the token is bad");
        let text = error.to_string();
        assert!(text.contains("re-authentication failed") && text.contains("code 18"), "{text}");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        assert_eq!(world.calls(), 2);
        // The server is well, so that no pool is cleared.
        world.count().expect("the connection is as it was");
        world.client.close();
    }
}

// Prose test 4.5.
fn a_session_goes_on_after_code_391(shell: Shell) {
    let world = world(shell, &[GOOD]);
    world.count().expect("it is logged in");
    world.fail("find", 391, 1);
    let id = bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: vec![7; 16] };
    let find = rawdoc! { "find": "birds", "lsid": { "id": id } };
    world.client.command("zoo", &find).expect("it is sent again");
    assert_eq!((world.calls(), world.commands("find")), (2, 2));
    world.client.close();
}

/// A real expiry: each open connection is told, and the callback is called once. The connection that it was called for
/// comes last.
// OI-07
// Reports NODE-6801: a connection does not know its token of the cache, so that one that has expired is not replaced.
fn many_connections_share_the_new_token(shell: Shell) {
    let world = world(shell, &[GOOD, NEWER]);
    let mut held: Vec<_> = (0..5)
        .map(|_| world.client.check_out(&Selector::Primary).expect("it is logged in"))
        .collect();
    world.accept(&[NEWER]);
    for connection in held.iter_mut().rev() {
        connection.command("zoo", &rawdoc! { "count": "birds" }).expect("it authenticates again");
    }
    assert_eq!(
        (world.calls(), world.endpoint.with(|server, _| server.statistics().accepted) > 5),
        (2, true)
    );
    drop(held);
    world.count().expect("all is well");
    assert_eq!(world.calls(), 2);
    world.client.close();
}

// AU-09: one attempt.
fn a_server_that_asks_for_ever(shell: Shell) {
    let world = world(shell, &[GOOD]);
    world.count().expect("it is logged in");
    world.fail("find", 391, 1000);
    let (begin, starts) = (Instant::now(), world.commands("saslStart"));
    let error = world.client.command("zoo", &rawdoc! { "find": "birds" }).expect_err("it gives up");
    let text = error.to_string();
    let expected = "operation: still refused after re-authenticating once: check how long the server accepts access tokens: ";
    assert!(text.contains(expected) && text.contains("code 391"), "{text}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert_eq!((world.commands("find"), world.commands("saslStart")), (2, starts + 1));
    // The connection is as good as before.
    world.count().expect("it is logged in");
    world.client.close();
}

fn a_driver_authenticates_again_itself(shell: Shell) {
    let world = world(shell, &[GOOD, NEWER]);
    let mut connection = world.client.check_out(&Selector::Primary).expect("it is logged in");
    world.accept(&[NEWER]);
    connection.reauthenticate().expect("there is a new token");
    assert_eq!(world.calls(), 2);
    connection.command("zoo", &rawdoc! { "count": "birds" }).expect("it is logged in");
    assert_eq!((world.calls(), world.commands("count")), (2, 1));
    drop(connection);
    world.client.close();

    let settings = Settings::default();
    let open = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let client = crate::world::World::of(shell, &[&open], "");
    let mut connection = client.check_out(&Selector::Primary);
    let error = connection.reauthenticate().expect_err("it never did");
    assert!(error.to_string().contains("the connection was not authenticated"), "{error}");
    connection.command("admin", &rawdoc! { "ping": 1 }).expect("it is as it was");
}

// AU-09: nothing but the code counts.
fn scram_authenticates_again_too(shell: Shell) {
    let users = vec![cenote_endpoint::User::new("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let client =
        crate::world::World::new(shell, &format!("mongodb://app:pencil@{}", endpoint.address()));
    client.ping();
    let fail_point = rawdoc! {
        "configureFailPoint": "failCommand",
        "mode": { "times": 1 },
        "data": { "failCommands": ["count"], "errorCode": 391 },
    };
    endpoint.with(|server, _| server.set_fail_point(&fail_point)).expect("it is known");
    client.command(&rawdoc! { "count": "birds" }).expect("it is sent again");
    let commands = endpoint.with(|server, _| server.statistics().commands);
    assert_eq!((commands.get("count"), commands.get("saslStart")), (Some(&2), Some(&1)));
}

// OI-07
fn calls_are_apart(shell: Shell) {
    let world = world(shell, &[GOOD]);
    let begin = Instant::now();
    world.count().expect("it is logged in");
    for _ in 0..4 {
        world.fail("count", 391, 1);
        world.count().expect("it is sent again");
    }
    assert_eq!(world.calls(), 5);
    assert!(begin.elapsed() >= Duration::from_millis(400), "{:?}", begin.elapsed());
    world.client.close();
}

/// The file is read for each token that is needed.
// OI-05
#[test]
fn tokens_of_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    // Its own process sees the one that the first has made.
    let file = std::env::var("OIDC_TOKEN_FILE").unwrap_or(file.display().to_string());
    let variables = [("OIDC_TOKEN_FILE", &*file), ("AZURE_FEDERATED_TOKEN_FILE", &*file)];
    alone_with(&variables, || {
        for (shell, environment) in
            Shell::ALL.into_iter().flat_map(|shell| ["test", "k8s"].map(|it| (shell, it)))
        {
            let endpoint = endpoint();
            let uri =
                format!("{}&authMechanismProperties=ENVIRONMENT:{environment}", uri(&endpoint));
            let client = shell.build_client(&uri, ClientSetup::default()).expect("good options");
            let count = || client.command("zoo", &rawdoc! { "count": "birds" });
            let error = count().expect_err("there is no file").to_string();
            assert!(error.contains("TOKEN_FILE: ") && !error.contains(&file), "{error}");
            fs::write(&file, GOOD).expect("a file");
            crate::world::until_so(|| count().map(drop).map_err(|error| error.to_string()));
            client.close();
            fs::remove_file(&file).expect("a file");
        }
    });
}

/// Also if the servers are looked up before.
#[test]
fn with_servers_of_srv_records() {
    let (endpoint, names) = (endpoint(), NameServer::start().expect("a port"));
    let port = endpoint.address().port().expect("a port");
    names.set_srv("_mongodb._tcp.cluster.0.0.1", &[SrvRecord::new("127.0.0.1.", port)]);
    let uri = "mongodb+srv://cluster.0.0.1/?tls=false&authMechanism=MONGODB-OIDC";
    let callback = |_: &TokenRequest| Ok(AccessToken::new(GOOD));
    let count = rawdoc! { "count": "birds" };

    let builder = cenote_mio::Client::builder(uri).expect("a connection string");
    let client = builder.name_servers([names.address()]).oidc_callback(callback).build();
    client.expect("it is found").command("zoo", &count).expect("it is logged in");

    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let builder = cenote_tokio::Client::builder(uri).expect("a connection string");
        let builder = builder.oidc_callback(callback).name_servers([names.address()]);
        let client = builder.resolve().await.expect("it is found").build().expect("good options");
        client.command("zoo", &count).await.expect("it is logged in");
    });
}
