//! How long operations on a pool may take: `timeoutMS`, and the timeout or deadline of one call.

use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::error::{ConnectionError, OperationError, ReplyPart, Stage};
use cenote_core::pool::CheckOutError;
use cenote_core::wire::Flags;
use cenote_endpoint::{Endpoint, Fault, Settings, User};
use cenote_shell::connection::operation::OperationOptions;

use crate::raw::message;
use crate::shell::{AnyConnection, AnyPool, Shell, on_all_runtimes, pool_with_resolver};
use crate::world::{at, block_ping, closed, ping, plain, pool, refusal, set, tls, with};

on_all_runtimes!(
    a_silent_server_ends_a_command_in_time,
    a_reply_that_drips_ends_in_time,
    messages_of_a_driver_end_in_time,
    the_timeout_of_a_call_is_before_that_of_the_connection_string,
    a_command_without_time_is_not_sent,
    a_command_needs_a_round_trip,
    the_server_gets_the_rest_of_the_time,
    the_servers_own_timeout_is_one,
    a_wait_for_a_connection_ends_in_time,
    a_handshake_ends_in_time,
    handshakes_that_take_longer_than_a_caller_waits,
    a_silent_resolver_and_proxy_end_in_time,
    background_connections_have_the_timeout_for_each_command,
);

const MS: fn(u64) -> Duration = Duration::from_millis;

fn a_ping() -> RawDocumentBuf {
    rawdoc! { "ping": 1 }
}

fn ping_with(
    connection: &mut Box<dyn AnyConnection>,
    options: OperationOptions,
) -> Result<RawDocumentBuf, ConnectionError> {
    connection.command_with("admin", &a_ping(), options).map_err(|error| {
        let OperationError::Connection(error) = error else { panic!("{error}") };
        error
    })
}

/// The result, and whether it took at least that time. Not much more: no machine is that slow.
// CS-21: nothing promises an exact time.
fn took_at_least<T>(least: Duration, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = work();
    let taken = begin.elapsed();
    assert!(taken >= least && taken < least + Duration::from_secs(10), "{taken:?} for {least:?}");
    result
}

fn pings(endpoint: &Endpoint) -> u64 {
    let statistics = endpoint.with(|server, _| server.statistics());
    statistics.commands.get("ping").copied().unwrap_or_default()
}

/// Those of the pool that are open, and that the server has accepted for it.
fn accounted(pool: &Arc<dyn AnyPool>) -> (u32, u64) {
    let snapshot = pool.snapshot();
    (snapshot.total, snapshot.connections_created)
}

// CS-12, CS-13, CS-17: the connection is closed and accounted for, and the pool goes on.
fn a_silent_server_ends_a_command_in_time(shell: Shell) {
    for endpoint in [plain(), tls(Settings::default())] {
        let (pool, events) = pool(shell, &with(&endpoint.uri(), "timeoutMS=1500"));
        assert!(ping(&pool));
        set(&endpoint, at(Fault::Stall, "ping"));
        let mut connection = pool.check_out().expect("a connection");
        let error = took_at_least(MS(1_500), || {
            connection.command("admin", &a_ping()).expect_err("the server is silent")
        });
        assert!(error.is_timeout(), "{error}");
        assert_eq!(error.to_string(), "operation: timed out after 1.5s");
        drop(connection);
        assert_eq!(closed(&events, 1), ["error"], "its reply was never read");
        set(&endpoint, at(Fault::Twice, "never"));
        assert!(ping(&pool));
        assert_eq!(accounted(&pool), (1, 2));
        // A timeout of an operation says nothing about the server.
        assert_eq!(pool.snapshot().generation, 0);
    }
}

// CS-13: the limit is for all reads together.
fn a_reply_that_drips_ends_in_time(shell: Shell) {
    let endpoint = plain();
    let (pool, _) = pool(shell, &with(&endpoint.uri(), "timeoutMS=1000&socketTimeoutMS=60000"));
    let mut connection = pool.check_out().expect("a connection");
    set(&endpoint, at(Fault::Drip { bytes: 1, every: MS(200) }, "ping"));
    let error = took_at_least(MS(1_000), || connection.command("admin", &a_ping()));
    assert!(error.expect_err("it drips").is_timeout());
}

// CS-13: for the message and its reply together.
fn messages_of_a_driver_end_in_time(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &with(&endpoint.uri(), "timeoutMS=1000"));
    let mut connection = pool.check_out().expect("a connection");
    set(&endpoint, at(Fault::Stall, "ping"));
    let (_, message) = message(&mut *connection, Flags::NONE, &a_ping(), &[]);
    let error = took_at_least(MS(1_000), || {
        connection.send(&message).expect("it is small");
        connection.receive().expect_err("the server is silent")
    });
    assert!(error.is_timeout(), "{error}");
    drop(connection);
    assert_eq!(closed(&events, 1), ["error"]);
}

// CS-01: zero is without limit.
fn the_timeout_of_a_call_is_before_that_of_the_connection_string(shell: Shell) {
    let endpoint = plain();
    let (short, _) = pool(shell, &with(&endpoint.uri(), "timeoutMS=1000"));
    let (long, _) = pool(shell, &with(&endpoint.uri(), "timeoutMS=60000"));
    let options = OperationOptions::new();

    let mut connection = long.check_out().expect("a connection");
    set(&endpoint, at(Fault::Stall, "ping"));
    let after = options.with_timeout(MS(100));
    let error = took_at_least(MS(100), || ping_with(&mut connection, after));
    assert!(error.expect_err("it is silent").is_timeout());

    set(&endpoint, at(Fault::Twice, "never"));
    for longer in [options.with_timeout(MS(0)), options.with_timeout(MS(60_000))] {
        let mut connection = short.check_out().expect("a connection");
        block_ping(&endpoint, 1_500);
        took_at_least(MS(1_500), || ping_with(&mut connection, longer)).expect("enough time");
    }

    // One deadline for check-out and command.
    let deadline = Instant::now() + MS(200);
    let mut connection = long.check_out_before(deadline).expect("a connection");
    set(&endpoint, at(Fault::Stall, "ping"));
    let error = ping_with(&mut connection, options.with_deadline(deadline));
    assert!(error.expect_err("it is silent").is_timeout() && Instant::now() >= deadline);
}

// CS-11: nothing was sent, nothing failed, and the connection is as it was.
// Reports JAVA-5715: a timeout before the request is sent costs the connection.
fn a_command_without_time_is_not_sent(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri());
    let mut connection = pool.check_out().expect("a connection");
    for _ in 0..3 {
        let options = OperationOptions::new().with_deadline(Instant::now());
        let error = ping_with(&mut connection, options).expect_err("there is no time");
        assert!(error.is_timeout() && connection.is_reusable(), "{error}");
        assert_eq!(error.reason(), "timed out after 0ns, before the request was sent");
    }
    drop(connection);
    assert!(ping(&pool));
    assert_eq!((accounted(&pool), pings(&endpoint)), ((1, 1), 1));
    assert!(closed(&events, 0).is_empty());
}

// CS-11, CS-14: with less time than a round trip takes, a command would fail and cost its connection.
fn a_command_needs_a_round_trip(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &with(&endpoint.uri(), "timeoutMS=20000"));
    pool.set_min_round_trip(MS(20_000));
    let mut connection = pool.check_out().expect("a connection");
    let error = connection.command("admin", &a_ping()).expect_err("too little time");
    assert!(error.is_timeout() && connection.is_reusable(), "{error}");
    let more = OperationOptions::new().with_timeout(MS(30_000));
    ping_with(&mut connection, more).expect("enough time");
    drop(connection);
    assert_eq!((accounted(&pool), pings(&endpoint)), ((1, 1), 1));
    assert!(closed(&events, 0).is_empty());
}

// CS-14: less the least time of a round trip; none where no timeout applies.
fn the_server_gets_the_rest_of_the_time(shell: Shell) {
    let endpoint = plain();
    let seen = || endpoint.with(|server, _| server.statistics()).last_max_time;
    let (limited, _) = pool(shell, &with(&endpoint.uri(), "timeoutMS=60000"));
    let mut connection = limited.check_out().expect("a connection");
    let ms_of = |command: &RawDocumentBuf, connection: &mut Box<dyn AnyConnection>| {
        let reply = connection.command("zoo", command);
        drop(reply);
        seen()
    };
    let ping = a_ping();
    assert!(ms_of(&ping, &mut connection).is_some_and(|ms| (50_000..=60_000).contains(&ms)));
    limited.set_min_round_trip(MS(30_000));
    assert!(ms_of(&ping, &mut connection).is_some_and(|ms| (20_000..=30_000).contains(&ms)));
    let insert = rawdoc! { "insert": "birds", "documents": [{}], "writeConcern": { "w": 0 } };
    connection.command_unacknowledged("zoo", &insert).expect("it is sent");
    assert!(ms_of(&ping, &mut connection).is_some());
    // Servers refuse it there.
    let more = rawdoc! { "getMore": 7_i64, "collection": "birds" };
    assert_eq!(ms_of(&more, &mut connection), None);
    drop(connection);

    let none = OperationOptions::new().with_timeout(MS(0));
    let mut connection = limited.check_out().expect("a connection");
    ping_with(&mut connection, none).expect("a reply");
    assert_eq!(seen(), None);
    for options in ["timeoutMS=0", "socketTimeoutMS=60000"] {
        let (unlimited, _) = pool(shell, &with(&endpoint.uri(), options));
        let mut connection = unlimited.check_out().expect("a connection");
        assert_eq!(ms_of(&ping, &mut connection), None, "{options}");
    }
}

// CS-15: the code alone counts, at the top, in a write concern error, and of one write.
fn the_servers_own_timeout_is_one(shell: Shell) {
    let endpoint = plain();
    let (pool, _) = pool(shell, &with(&endpoint.uri(), "timeoutMS=60000"));
    let insert = rawdoc! { "insert": "birds", "documents": [{}] };
    for (data, part) in [
        (rawdoc! { "failCommands": ["insert"], "errorCode": 50 }, ReplyPart::Command),
        (
            rawdoc! { "failCommands": ["insert"], "writeConcernError": { "code": 50, "errmsg": "?" } },
            ReplyPart::WriteConcern,
        ),
    ] {
        let fail =
            rawdoc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": data };
        endpoint.with(|server, _| server.set_fail_point(&fail)).expect("a fail point");
        let mut connection = pool.check_out().expect("a connection");
        let error = connection.command("zoo", &insert).expect_err("it is out of time");
        assert!(error.is_timeout() && connection.is_reusable(), "{error}");
        let OperationError::Connection(error) = error else { panic!("{error}") };
        assert_eq!(error.command_error().map(|error| error.part), Some(part), "{error}");
    }
    // The endpoint fails by itself a command that takes longer than it may.
    block_ping(&endpoint, 100);
    let mut connection = pool.check_out().expect("a connection");
    let short = rawdoc! { "ping": 1, "maxTimeMS": 50 };
    let zero = OperationOptions::new().with_timeout(MS(0));
    let error = took_at_least(MS(100), || connection.command_with("admin", &short, zero));
    assert!(error.expect_err("it is out of time").is_timeout());
    drop(connection);
    assert_eq!(accounted(&pool), (1, 1));
}

// CS-18, CS-19: the pool is not cleared, and the error is one of time.
fn a_wait_for_a_connection_ends_in_time(shell: Shell) {
    let endpoint = plain();
    let (pool, _) = pool(shell, &with(&endpoint.uri(), "maxPoolSize=1&timeoutMS=1500"));
    let held = pool.check_out().expect("a connection");
    let Err(error) = took_at_least(MS(1_500), || pool.check_out()) else { panic!("it is held") };
    assert!(error.is_timeout(), "{error}");
    assert!(matches!(error.error(), CheckOutError::WaitQueueTimeout { .. }));
    assert!(error.to_string().contains("deadline after 1"), "{error}");
    let at = Instant::now() + MS(300);
    let Err(error) = took_at_least(MS(290), || pool.check_out_before(at)) else { panic!("held") };
    assert!(error.is_timeout(), "{error}");
    drop(held);
    assert!(ping(&pool));
    assert_eq!((accounted(&pool), pool.snapshot().generation), ((1, 1), 0));
}

/// A server that takes its time for this command.
fn slow(endpoint: &Endpoint, command: &str, milliseconds: i32) {
    let data = rawdoc! {
        "failCommands": [command], "blockConnection": true, "blockTimeMS": milliseconds,
    };
    let block = rawdoc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data };
    endpoint.with(|server, _| server.set_fail_point(&block)).expect("a fail point");
}

fn with_user() -> Endpoint {
    tls(Settings { users: vec![User::new("app", "pencil")], ..Settings::default() })
}

// CS-03, CS-05, CS-10, SI-18: whatever hangs, the operation's time ends the wait, and connectTimeoutMS the connection.
fn a_handshake_ends_in_time(shell: Shell) {
    for (command, stage) in [("isMaster", Stage::Hello), ("saslContinue", Stage::Authentication)] {
        let endpoint = with_user();
        slow(&endpoint, command, 60_000);
        let ours = |options| pool(shell, &with(&endpoint.uri(), options)).0;
        let pool = ours("timeoutMS=60000&connectTimeoutMS=1000");
        let error = took_at_least(MS(990), || refusal(&pool));
        assert!(error.is_timeout() && error.stage() == stage, "{error}");
        assert_eq!(pool.snapshot().total, 0);
        let pool = ours("timeoutMS=1000&connectTimeoutMS=60000");
        let Err(error) = took_at_least(MS(990), || pool.check_out()) else { panic!("it hangs") };
        assert!(error.is_timeout(), "{error}");
        assert_eq!(pool.snapshot().pending, 1);
        pool.close();
    }
}

/// No caller waits for as long as a handshake takes: the connection serves a later one.
// SI-11, SI-18
// Reports go-redis#3497, GODRIVER-2038 (mended): a handshake that takes longer than callers wait is begun anew for ever.
fn handshakes_that_take_longer_than_a_caller_waits(shell: Shell) {
    let endpoint = with_user();
    let delay =
        rawdoc! { "failCommands": ["isMaster"], "blockConnection": true, "blockTimeMS": 1000 };
    let always = rawdoc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": delay };
    endpoint.with(|server, _| server.set_fail_point(&always)).expect("a fail point");
    let (pool, _) = pool(shell, &with(&endpoint.uri(), "maxPoolSize=1&timeoutMS=400"));
    let begin = Instant::now();
    let mut given_up = 0;
    while pool.check_out().is_err() {
        given_up += 1;
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", pool.snapshot());
    }
    let seen = pool.snapshot();
    assert!(given_up > 0, "the first cannot wait for it");
    assert_eq!((seen.connections_created, seen.generation), (1, 0));
}

// CS-04: no OCSP responder is asked; names are resolved and proxies are spoken to.
fn a_silent_resolver_and_proxy_end_in_time(shell: Shell) {
    let limits = "timeoutMS=200&connectTimeoutMS=60000";
    let uri = format!("mongodb://db.example.com/?{limits}");
    let pool = pool_with_resolver(shell, &uri, |lookup| {
        // It never answers, and is not dropped either.
        std::mem::forget(lookup);
    });
    let Err(error) = took_at_least(MS(190), || pool.check_out()) else {
        panic!("there is no address")
    };
    assert!(error.is_timeout(), "{error}");

    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("bound").port();
    let uri = format!("mongodb://db.example.com/?{limits}&proxyHost=127.0.0.1&proxyPort={port}");
    let (pool, _) = crate::world::pool(shell, &uri);
    let Err(error) = took_at_least(MS(190), || pool.check_out()) else { panic!("it is silent") };
    assert!(error.is_timeout(), "{error}");
    let uri = uri.replace(limits, "connectTimeoutMS=200");
    let (pool, _) = crate::world::pool(shell, &uri);
    let error = took_at_least(MS(190), || refusal(&pool));
    assert!(error.is_timeout() && error.stage() == Stage::Proxy, "{error}");
}

// CS-08, CS-09: it is refreshed for each command, and connectTimeoutMS is for all of them.
fn background_connections_have_the_timeout_for_each_command(shell: Shell) {
    let endpoint = with_user();
    for (options, delayed, is_made) in [
        ("timeoutMS=150", 300, false),
        // Hello and saslContinue take longer together than one of them may.
        ("timeoutMS=3000", 2000, true),
        ("timeoutMS=60000&connectTimeoutMS=150", 300, false),
        ("socketTimeoutMS=150", 300, false),
    ] {
        let data = rawdoc! {
            "failCommands": ["isMaster", "saslContinue"],
            "blockConnection": true,
            "blockTimeMS": delayed,
        };
        let block =
            rawdoc! { "configureFailPoint": "failCommand", "mode": { "times": 2 }, "data": data };
        endpoint.with(|server, _| server.set_fail_point(&block)).expect("a fail point");
        let uri = with(&endpoint.uri(), &format!("minPoolSize=1&{options}"));
        let (pool, events) = pool(shell, &uri);
        if is_made {
            while pool.snapshot().available == 0 {
                thread::sleep(MS(5));
            }
            assert!(closed(&events, 0).is_empty(), "{options}");
        } else {
            assert_eq!(closed(&events, 1)[0], "error", "{options}");
        }
        pool.close();
    }
}

// CS-11: in an application's own loop, which may come to it late.
#[test]
fn a_command_that_is_advanced_too_late_is_not_sent() {
    let endpoint = plain();
    let pool = cenote_mio::Pool::builder(&endpoint.uri()).expect("a connection string");
    let pool = pool.build().expect("good options");
    pool.ready();
    let mut connection = pool.check_out().expect("a connection");
    let id = connection.id();
    let options = OperationOptions::new().with_timeout(MS(20));
    connection.begin_with("admin", &a_ping(), options).expect("there is time");
    thread::sleep(MS(30));
    let Poll::Ready(Err(error)) = connection.advance() else { panic!("it is too late") };
    assert!(error.is_timeout() && connection.is_reusable(), "{error}");
    assert!(error.to_string().ends_with("before the request was sent"), "{error}");
    drop(connection);
    // In time, and the reply is looked at late.
    let data = rawdoc! { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 100 };
    let block =
        rawdoc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": data };
    endpoint.with(|server, _| server.set_fail_point(&block)).expect("a fail point");
    let mut connection = pool.check_out().expect("a connection");
    assert_eq!(connection.id(), id);
    let options = OperationOptions::new().with_timeout(MS(2_000));
    connection.begin_with("admin", &a_ping(), options).expect("there is time");
    assert!(connection.advance().is_pending());
    thread::sleep(MS(2_010));
    let Poll::Ready(Ok(_)) = connection.advance() else { panic!("it has come in time") };
    drop(connection);
    assert_eq!((pings(&endpoint), pool.snapshot().total), (1, 1));
    pool.close();
}
