//! How long operations of a client may take: selection, check-out, establishment and the command together.

use std::error::Error as _;
use std::thread;
use std::time::{Duration, Instant};

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::client::{ClientError, SelectionError, Selector, TimeLimit};
use cenote_core::error::{OperationError, RetryWrites};
use cenote_endpoint::{Endpoint, Fault, ListenOptions, Script, Settings, User};
use cenote_shell::connection::operation::OperationOptions;

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{World, standalone, tell};

on_all_runtimes!(
    selection_ends_at_the_first_of_both_timeouts,
    the_time_is_for_selection_check_out_and_command_together,
    selection_and_check_out_have_the_smaller_timeout,
    a_timeout_error_shows_what_timed_out,
    a_command_needs_the_round_trip_that_the_monitor_has_measured,
    monitors_have_no_operation_timeout,
    absurd_timeouts_are_no_limit_or_are_ignored,
    only_the_timeout_of_the_connection_string_clears,
);

const MS: fn(u64) -> Duration = Duration::from_millis;

fn a_ping() -> RawDocumentBuf {
    rawdoc! { "ping": 1 }
}

/// The result, and whether it took that time: no machine takes as much more.
// CS-21: nothing promises an exact time.
fn took<T>(time: Duration, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = work();
    let taken = begin.elapsed();
    assert!(taken >= time - MS(5) && taken < time + MS(5_000), "{taken:?} for {time:?}");
    result
}

fn slow(endpoint: &Endpoint, command: &str, milliseconds: i32) {
    let data = rawdoc! {
        "failCommands": [command], "blockConnection": true, "blockTimeMS": milliseconds,
    };
    let block = rawdoc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data };
    tell(endpoint, |server, _| server.set_fail_point(&block).expect("a fail point"));
}

fn silent(endpoint: &Endpoint, command: &str) {
    tell(endpoint, |server, now| {
        server.set_fault(now, Script::new(Fault::Stall).at_command(command, 0));
    });
}

fn limit_of(error: &ClientError) -> Option<TimeLimit> {
    let ClientError::TimedOut { limit, .. } = error else { return None };
    Some(*limit)
}

// CS-10, SS-13
// The prose tests of server selection (CS-02), with a server that nothing reaches.
fn selection_ends_at_the_first_of_both_timeouts(shell: Shell) {
    let only = standalone();
    tell(&only, |server, now| {
        server.set_fault(now, Script::new(Fault::Refuse));
    });
    let (operation, selection) =
        (TimeLimit::Operation(MS(200)), TimeLimit::ServerSelection(MS(200)));
    for (options, after, limit) in [
        ("serverSelectionTimeoutMS=200", 200, None),
        ("timeoutMS=200&serverSelectionTimeoutMS=60000", 200, Some(operation)),
        ("timeoutMS=60000&serverSelectionTimeoutMS=200", 200, Some(selection)),
        ("timeoutMS=0&serverSelectionTimeoutMS=200", 200, None),
    ] {
        let world = World::of(shell, &[&only], options);
        let error = took(MS(after), || world.command(&a_ping()).expect_err("none is there"));
        assert!(error.is_timeout(), "{options}: {error}");
        assert_eq!(limit_of(&error), limit, "{options}: {error}");
        world.client.close();
    }
    // The attempt that hangs is named.
    let hanging = standalone();
    silent(&hanging, "isMaster");
    let world = World::of(shell, &[&hanging], "serverSelectionTimeoutMS=300");
    let error = world.command(&a_ping()).expect_err("it is silent").to_string();
    assert!(error.contains("Unknown: not checked yet, connecting for "), "{error}");
    world.client.close();
}

// CS-02, CS-14: each part takes from what the others have.
fn the_time_is_for_selection_check_out_and_command_together(shell: Shell) {
    let only = standalone();
    slow(&only, "isMaster", 500);
    let world = World::of(shell, &[&only], "timeoutMS=4000");
    // 500 ms for the monitor's hello, 500 ms for that of the connection, the rest for the command.
    let begin = Instant::now();
    silent(&only, "ping");
    let error = took(MS(4_000), || world.command(&a_ping()).expect_err("it is silent"));
    assert!(begin.elapsed() >= MS(4_000) && error.is_timeout(), "{error}");
    let sent = only.with(|server, _| server.statistics()).last_max_time.expect("it was sent");
    assert!(sent > 0 && sent <= 3_000, "{sent}");
    world.client.close();
}

// CS-07, CS-02: the case that a requirement's audit has measured.
fn selection_and_check_out_have_the_smaller_timeout(shell: Shell) {
    let only = standalone();
    for (options, after, text) in [
        (
            "timeoutMS=60000&serverSelectionTimeoutMS=1500",
            1_500,
            "the 1.5s of serverSelectionTimeoutMS were over: Timed out while checking out",
        ),
        (
            "timeoutMS=1500&serverSelectionTimeoutMS=60000&waitQueueTimeoutMS=20",
            1_500,
            "the operation's 1.5s were over: Timed out while checking out",
        ),
        (
            "timeoutMS=0&serverSelectionTimeoutMS=1500&waitQueueTimeoutMS=20",
            1_500,
            "Timed out while checking out",
        ),
        (
            "serverSelectionTimeoutMS=20000&waitQueueTimeoutMS=1000",
            1_000,
            "Timed out while checking out",
        ),
    ] {
        let world = World::of(shell, &[&only], &format!("maxPoolSize=1&{options}"));
        world.until_all_known();
        let held = world.check_out(&Selector::Any);
        let Err(error) = took(MS(after), || world.client.check_out(&Selector::Any)) else {
            panic!("{options}: it is held")
        };
        assert!(error.is_timeout(), "{options}: {error}");
        assert!(error.to_string().starts_with(text), "{options}: {error}");
        drop(held);
        // CS-18.
        assert_eq!(world.count("ConnectionPoolCleared"), 0, "{options}");
        world.client.close();
    }
}

// CS-15: its text has the text of the cause, and its source is the cause.
fn a_timeout_error_shows_what_timed_out(shell: Shell) {
    let only = standalone();
    let world = World::of(shell, &[&only], "timeoutMS=1500&maxPoolSize=1");
    world.ping();
    let held = world.check_out(&Selector::Any);
    let of_check_out = world.command(&a_ping()).expect_err("it is held");
    drop(held);
    silent(&only, "ping");
    let of_command = world.command(&a_ping()).expect_err("it is silent");
    tell(&only, |server, now| {
        server.set_fault(now, Script::new(Fault::Refuse));
        server.break_connections(now, cenote_endpoint::Ending::Reset, None);
    });
    world.until("Unknown", |world| world.kinds()[0].is_none());
    let of_selection = world.command(&a_ping()).expect_err("none is there");
    for error in [&of_check_out, &of_command, &of_selection] {
        let ClientError::TimedOut { cause, .. } = error else { panic!("{error}") };
        assert!(error.to_string().starts_with("the operation's 1.5s were over: "), "{error}");
        assert!(error.to_string().contains(&cause.to_string()), "{error}");
        assert!(error.source().is_none() && !error.is_retryable());
        assert_eq!(error.labels(RetryWrites::Enabled), cause.labels(RetryWrites::Enabled));
    }
    let causes = [of_check_out, of_command, of_selection].map(|error| {
        let ClientError::TimedOut { cause, .. } = error else { panic!("{error}") };
        *cause
    });
    assert!(matches!(
        causes,
        [
            ClientError::Pool(_),
            ClientError::Operation(OperationError::Connection(_)),
            ClientError::Selection(SelectionError::TimedOut { .. }),
        ]
    ));
    world.client.close();
}

// CS-14: a server that is farther away than the time lasts gets nothing, and no connection is lost.
fn a_command_needs_the_round_trip_that_the_monitor_has_measured(shell: Shell) {
    let only = standalone();
    slow(&only, "hello", 600); // Not of the first check, which is legacy.
    let world = World::of(shell, &[&only], "heartbeatFrequencyMS=500&serverMonitoringMode=poll");
    world.ping();
    let short = OperationOptions::new().with_timeout(MS(450));
    // The minimum is known after two checks.
    let end = Instant::now() + Duration::from_secs(60);
    let error = loop {
        match world.client.command_with("admin", &a_ping(), short) {
            Err(error) => break error,
            Ok(_) => assert!(Instant::now() < end, "it is never known"),
        }
        thread::sleep(MS(50));
    };
    assert!(
        error.is_timeout() && error.to_string().contains("before the request was sent"),
        "{error}"
    );
    world.ping();
    assert_eq!((world.count("ConnectionCreated"), world.count("ConnectionClosed")), (1, 0));
    world.client.close();
}

/// The longest that the option can have, and one that it cannot have.
fn absurd_timeouts_are_no_limit_or_are_ignored(shell: Shell) {
    let only = standalone();
    slow(&only, "ping", 100);
    for options in ["timeoutMS=9223372036854775807", "timeoutMS=-5", "timeoutMS=2e3"] {
        let world = World::of(shell, &[&only], options);
        world.ping();
        let longest = OperationOptions::new().with_timeout(Duration::MAX);
        world.client.command_with("admin", &a_ping(), longest).expect("no limit");
        world.client.close();
    }
}

// CS-16: they have connectTimeoutMS.
fn monitors_have_no_operation_timeout(shell: Shell) {
    let only = standalone();
    slow(&only, "isMaster", 200);
    let world = World::of(shell, &[&only], "timeoutMS=20");
    world.until_all_known();
    assert_eq!(world.error(), None);
    world.client.close();
}

// SD-23: an authentication that takes longer than a call may says nothing about the server; one that takes longer than
// a connection may does.
fn only_the_timeout_of_the_connection_string_clears(shell: Shell) {
    let users = vec![User::new("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let only = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    for (options, call, cleared) in [
        ("", Some(MS(1_500)), 0),
        ("timeoutMS=1500", None, 0),
        ("connectTimeoutMS=1500", Some(MS(20_000)), 1),
        ("connectTimeoutMS=1500", None, 1),
    ] {
        let options = format!("mongodb://app:pencil@{}/?{options}", only.address());
        let world = World::new(shell, &options);
        world.until_all_known();
        tell(&only, |server, _| server.set_fail_point(&off()).expect("a fail point"));
        let idle = world.check_out(&Selector::Any);
        let held = world.check_out(&Selector::Any);
        drop(idle);
        let again = world.check_out(&Selector::Any);
        slow(&only, "saslContinue", 4_000);
        let ping = OperationOptions::new();
        let ping = call.map_or(ping, |time| ping.with_timeout(time));
        let error = world.client.command_with("admin", &a_ping(), ping).expect_err("it is slow");
        // The caller's time ends its wait, and not the authentication.
        let says = if cleared > 0 { "authentication" } else { "pending 1/2" };
        assert!(error.is_timeout() && error.to_string().contains(says), "{error}");
        assert_eq!(world.count("ConnectionPoolCleared"), cleared, "{options}");
        assert_eq!(world.kinds()[0].is_none(), cleared > 0, "{options}");
        drop((held, again));
        world.client.close();
    }
}

fn off() -> RawDocumentBuf {
    rawdoc! { "configureFailPoint": "failCommand", "mode": "off" }
}
