//! What an application sees when a check-out fails: names, texts, labels, and what may be tried
//! again.

#![cfg(feature = "std")]

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::{
    CommandError, ConnectionError, InterruptedError, PoolError, RetryWrites, Stage, Wait, WaitLimit,
};
use cenote_core::pool::{
    Action, CheckOutError, ConnId, Input, Instant, NoPayload, PoolOptions, PoolState, Purpose,
    ServiceId, StandingDelay, WaiterId,
};

fn error(error: CheckOutError<ConnectionError>) -> PoolError {
    PoolError::new(address(), error)
}

fn address() -> Arc<ServerAddress> {
    Arc::new("db1.example.com".parse().expect("an address"))
}

fn cleared(cause: ConnectionError) -> PoolError {
    error(CheckOutError::PoolCleared { cause: Some(cause) })
}

fn not_connected(cause: ConnectionError) -> PoolError {
    error(CheckOutError::EstablishFailed { cause })
}

fn reset() -> ConnectionError {
    ConnectionError::network(Stage::Tcp, "connection reset")
}

fn refused(code: i32) -> ConnectionError {
    ConnectionError::command(Stage::Hello, CommandError::new(code, "no"))
}

/// The one connection of a pool is in use by a cursor; a second request waits in vain.
fn timed_out(load_balanced: bool) -> PoolError {
    let options = PoolOptions::default()
        .with_max_pool_size(1)
        .with_load_balanced(load_balanced)
        .with_wait_queue_timeout(Duration::from_millis(20));
    let (start, mut actions) = (Instant::ORIGIN, Vec::<Action<NoPayload>>::new());
    let mut pool = PoolState::new(start, options, &mut actions).expect("valid options");
    let id = ConnId::from_parts(1, 0);
    let service = load_balanced.then_some(ServiceId([1; 12]));
    let inputs = [
        (start, Input::Ready),
        (start, request(1, Purpose::Cursor)),
        (start, Input::Handshaken { id, service, clears_at_hello: None }),
        (start, Input::EstablishSucceeded { id, conn: () }),
        (start, request(2, Purpose::Other)),
        (start + Duration::from_millis(20), Input::Timer),
    ];
    for (at, input) in inputs {
        pool.handle(at, input, &mut actions).expect("no misuse");
    }
    let outcome = actions.into_iter().find_map(|action| match action {
        Action::Deliver { outcome: Err(CheckOutError::WaitQueueTimeout { snapshot }), .. } => {
            Some(CheckOutError::WaitQueueTimeout { snapshot })
        }
        Action::Deliver { .. }
        | Action::StartEstablish { .. }
        | Action::AbortEstablish { .. }
        | Action::StartDrain { .. }
        | Action::AbortDrain { .. }
        | Action::CloseSocket { .. }
        | Action::Interrupt { .. }
        | Action::ReportLeak { .. }
        | Action::ReportUnanswered { .. }
        | Action::EmitEvent(_) => None,
    });
    error(outcome.expect("a timeout"))
}

fn request(id: u64, purpose: Purpose) -> Input<NoPayload> {
    Input::CheckOutRequested { id: WaiterId(id), waiter: (), deadline: None, purpose }
}

fn shed() -> PoolError {
    let delay = StandingDelay::new(Duration::from_millis(5), Duration::from_millis(100));
    error(CheckOutError::Shed { delay })
}

#[test]
fn what_was_shed_shows_the_limits_and_the_wait() {
    let error = shed().with_wait(Wait { waited: Duration::from_millis(108), limit: None });
    assert_eq!(error.name(), "CheckOutShedError");
    assert_eq!(
        error.to_string(),
        "Shed while checking out a connection from connection pool: for 100ms the longest wait was \
         never below 5ms [db1.example.com:27017 | waited 108ms]"
    );
}

// OUT-17, ER-01, ER-05, ER-08
#[test]
fn each_has_the_name_and_the_message_of_the_specification() {
    let table = [
        (
            error(CheckOutError::PoolClosed),
            // ER-02
            "PoolClosedError",
            "Attempted to check out a connection from closed connection pool",
            " [db1.example.com:27017]",
        ),
        (
            cleared(refused(91)),
            // ER-03
            "PoolClearedError",
            "Connection pool for db1.example.com:27017 was cleared because another operation \
             failed with: hello: no (code 91)",
            "",
        ),
        (
            error(CheckOutError::PoolCleared { cause: None }),
            "PoolClearedError",
            "Connection pool for db1.example.com:27017 has not been marked ready yet",
            "",
        ),
        (
            error(CheckOutError::Cancelled),
            "CheckOutCancelledError",
            "The check-out was given up by its caller",
            " [db1.example.com:27017]",
        ),
        (
            error(CheckOutError::WaitQueueFull { max: 500 }),
            "WaitQueueFullError",
            "Too many requests wait for a connection from connection pool: max_wait_queue_size is 500",
            " [db1.example.com:27017]",
        ),
    ];
    for (error, name, message, server) in table {
        assert_eq!(error.name(), name);
        assert_eq!(error.message().to_string(), message);
        assert_eq!(error.to_string(), format!("{message}{server}"), "each names the server once");
        assert_eq!(error.address(), &*address());
    }
}

#[test]
fn a_connection_that_could_not_be_made_shows_to_whom() {
    let error = not_connected(reset());
    assert_eq!(error.name(), "ConnectionError");
    assert_eq!(error.message().to_string(), "connect: connection reset");
    assert_eq!(error.to_string(), "connect: connection reset [db1.example.com:27017]");
}

// ER-04
#[test]
fn a_timeout_shows_the_pool_that_it_happened_in() {
    let error = timed_out(false);
    let message = "Timed out while checking out a connection from connection pool";
    assert_eq!(error.name(), "WaitQueueTimeoutError");
    assert_eq!(error.message().to_string(), message);
    assert_eq!(
        error.to_string(),
        format!(
            "{message} [db1.example.com:27017 | ready  gen 0 | total 1/1 min 0 | idle 0 | in use 1 | pending 0/2 | \
             waiting 1]"
        )
    );
}

#[test]
fn each_shows_how_long_it_waited_and_what_limited_that() {
    let queue = Some(WaitLimit::WaitQueueTimeout(Duration::from_millis(200)));
    let deadline = Some(WaitLimit::Deadline(Duration::from_micros(1500)));
    let waited = Duration::from_micros(203_456);
    let at_once = Wait::default();
    let closed = || error(CheckOutError::PoolClosed);
    let server = "db1.example.com:27017";
    let table = [
        (closed(), at_once, format!("[{server} | at once]")),
        (closed(), Wait { waited, limit: None }, format!("[{server} | waited 203ms]")),
        (
            closed(),
            Wait { waited, limit: queue },
            format!("[{server} | waited 203ms, waitQueueTimeoutMS=200]"),
        ),
        (
            closed(),
            Wait { waited: Duration::from_nanos(1_501_999), limit: deadline },
            format!("[{server} | waited 1.5ms, deadline after 1.5ms]"),
        ),
        (
            cleared(reset()),
            Wait { waited, limit: queue },
            "[waited 203ms, waitQueueTimeoutMS=200]".to_owned(),
        ),
        // Which does not limit the establishment.
        (
            not_connected(reset()),
            Wait { waited, limit: queue },
            format!("[{server} | waited 203ms]"),
        ),
        (
            not_connected(reset()),
            Wait { waited, limit: deadline },
            format!("[{server} | waited 203ms, deadline after 1.5ms]"),
        ),
        (
            timed_out(false),
            Wait { waited, limit: queue },
            format!(
                "[{server} | waited 203ms, waitQueueTimeoutMS=200 | {}]",
                "ready  gen 0 | total 1/1 min 0 | idle 0 | in use 1 | pending 0/2 | waiting 1"
            ),
        ),
    ];
    for (error, wait, shown) in table {
        assert_eq!(error.wait(), None);
        let error = error.with_wait(wait);
        assert_eq!(error.wait(), Some(wait));
        assert_eq!(error.to_string(), format!("{} {shown}", error.message()));
    }
}

#[test]
fn each_shows_its_request() {
    let timed_out = timed_out(false);
    assert_eq!(timed_out.request(), None);
    let timed_out = timed_out.with_request(WaiterId(4711));
    assert_eq!(timed_out.request(), Some(WaiterId(4711)));
    let shown = timed_out.to_string();
    assert!(shown.contains("[db1.example.com:27017 | request w4711 | ready "), "{shown}");
    let cleared = cleared(reset()).with_request(WaiterId(7)).to_string();
    assert!(cleared.ends_with(" [request w7]"), "{cleared}");
}

// ER-06, CF-49
#[test]
fn behind_a_load_balancer_a_timeout_says_what_connections_are_in_use_for() {
    let message = timed_out(true).message().to_string();
    assert_eq!(
        message,
        "Timeout waiting for connection from the connection pool. maxPoolSize: 1, connections in \
         use by cursors: 1, connections in use by transactions: 0, connections in use by other \
         operations: 0"
    );
}

// OUT-12, CLR-09, ER-10, ER-12, ER-22, CS-12, SI-18
#[test]
fn what_may_be_tried_again_and_what_is_a_timeout() {
    let slow = || ConnectionError::timeout(Stage::Hello, Duration::from_millis(250));
    let table = [
        // error, retryable, timeout
        (error(CheckOutError::PoolClosed), false, false),
        (error(CheckOutError::PoolCleared { cause: None }), true, false),
        (cleared(slow()), true, false),
        (cleared(refused(18)), true, false),
        (not_connected(reset()), true, false),
        (not_connected(slow()), true, true),
        (not_connected(refused(18)), false, false),
        (not_connected(refused(91)), true, false),
        (timed_out(false), false, true),
        (error(CheckOutError::Cancelled), false, false),
        (error(CheckOutError::WaitQueueFull { max: 1 }), true, false),
        (shed(), true, false),
    ];
    for (error, retryable, timeout) in table {
        assert_eq!(error.is_retryable(), retryable, "{error}");
        assert_eq!(error.is_timeout(), timeout, "{error}");
    }
}

// ES-03, ER-20, ER-21, ER-30, ER-37
#[test]
fn labels_are_of_the_operation_that_failed() {
    let labels = |error: &PoolError, retry_writes| -> Vec<String> {
        error.labels(retry_writes).map(str::to_owned).collect()
    };
    let cleared = cleared(reset());
    assert_eq!(labels(&cleared, RetryWrites::Enabled), ["RetryableWriteError"]);
    assert_eq!(labels(&cleared, RetryWrites::Disabled), [""; 0]);

    let refused = not_connected(reset());
    assert_eq!(
        labels(&refused, RetryWrites::Enabled),
        ["SystemOverloadedError", "RetryableError", "RetryableWriteError"]
    );
    assert_eq!(
        labels(&refused, RetryWrites::Disabled),
        ["SystemOverloadedError", "RetryableError"]
    );

    for error in [error(CheckOutError::WaitQueueFull { max: 1 }), shed()] {
        for retry_writes in [RetryWrites::Enabled, RetryWrites::Disabled] {
            assert_eq!(labels(&error, retry_writes), ["SystemOverloadedError", "RetryableError"]);
        }
    }

    for error in
        [timed_out(false), error(CheckOutError::PoolClosed), error(CheckOutError::Cancelled)]
    {
        assert_eq!(labels(&error, RetryWrites::Enabled), [""; 0], "{error}");
    }
}

/// An error of a driver's own connector, whose text has not all.
#[derive(Debug, thiserror::Error)]
#[error("the ticket is void")]
struct TicketVoid(#[source] std::fmt::Error);

#[test]
fn a_chain_of_errors_says_each_thing_once() {
    let cause = ConnectionError::network(Stage::Tcp, TicketVoid(std::fmt::Error));
    for error in [cleared(cause.clone()), not_connected(cause)] {
        let sources = std::iter::successors(error.source(), |&error| error.source());
        let texts: Vec<_> = sources.map(ToString::to_string).collect();
        assert_eq!(texts, [std::fmt::Error.to_string()]);
        assert!(error.to_string().contains("connect: the ticket is void"), "{error}");
        assert!(error.cause().expect("a cause").source_as::<TicketVoid>().is_some());
    }
}

// ER-07, INT-06, INT-07
#[test]
fn an_interrupted_operation_may_be_tried_again() {
    let error = InterruptedError::new(address());
    assert_eq!(
        error.to_string(),
        "Connection to db1.example.com:27017 interrupted due to server monitor timeout"
    );
    assert_eq!(InterruptedError::NAME, "PoolClearedError");
    assert!(error.is_retryable());
}

/// A shell with causes of its own has names and messages all the same.
#[test]
fn other_causes_will_do() {
    let error = PoolError::new(address(), CheckOutError::EstablishFailed { cause: "no route" });
    assert_eq!(
        (error.name(), error.to_string().as_str()),
        ("ConnectionError", "no route [db1.example.com:27017]")
    );
}
