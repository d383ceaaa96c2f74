//! The table of examples that the tests compare with and the page shows.

use std::sync::Arc;
use std::time::Duration;

use cenote_core::pool::{
    CheckOutError, CloseReason, Event, Instant, NoPayload, PendingResponseFailure, PoolOptions,
    PoolState, ServiceId, Snapshot, WaiterId,
};

/// One event and its record.
pub(super) struct Row {
    pub(super) event: Event<&'static str>,
    pub(super) message: &'static str,
    /// After those of the address; with `@` for it, where an error names it.
    pub(super) fields: &'static str,
    /// With `@` for the address.
    pub(super) line: &'static str,
}

/// Those of one type stand together.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = pool_rows();
    rows.extend(connection_rows());
    rows.extend(check_out_rows());
    rows.extend(pending_response_rows());
    rows
}

fn pool_rows() -> Vec<Row> {
    let created = |options: PoolOptions| Event::ConnectionPoolCreated { options: options.into() };
    let cleared = |service_id| Event::ConnectionPoolCleared {
        service_id,
        interrupt_in_use_connections: true,
    };
    let all = PoolOptions::default()
        // OP-11
        .with_max_pool_size(20)
        .with_min_pool_size(1)
        .with_max_idle_time(Duration::from_secs(60))
        .with_max_connecting(3)
        .with_wait_queue_timeout(Duration::from_millis(500));
    let no_part_of_cmap = PoolOptions::default()
        .with_load_balanced(true)
        .with_max_lifetime(Duration::from_secs(1))
        .with_jitter_seed(7)
        .with_leak_detection_threshold(Duration::from_secs(1))
        .with_unanswered_threshold(Duration::from_secs(1))
        .with_experimental_pending_response(true);
    vec![
        row(
            created(all),
            "Connection pool created",
            "maxIdleTimeMS=60000 minPoolSize=1 maxPoolSize=20 maxConnecting=3 waitQueueTimeoutMS=500",
            "Connection pool created for @ using options maxIdleTimeMS=60000, minPoolSize=1, \
             maxPoolSize=20, maxConnecting=3, waitQueueTimeoutMS=500",
        ),
        row(
            created(PoolOptions::default()),
            "Connection pool created",
            "",
            "Connection pool created for @",
        ),
        row(
            created(no_part_of_cmap),
            "Connection pool created",
            "",
            "Connection pool created for @",
        ),
        row(
            created(PoolOptions::default().with_max_pool_size(0).with_max_connecting(1)),
            "Connection pool created",
            "maxPoolSize=0 maxConnecting=1",
            "Connection pool created for @ using options maxPoolSize=0, maxConnecting=1",
        ),
        row(
            created(PoolOptions::default().with_wait_queue_timeout(Duration::from_micros(500))),
            "Connection pool created",
            "waitQueueTimeoutMS=0.5",
            "Connection pool created for @ using options waitQueueTimeoutMS=0.5",
        ),
        row(Event::ConnectionPoolReady, "Connection pool ready", "", "Connection pool ready for @"),
        row(cleared(None), "Connection pool cleared", "", "Connection pool for @ cleared"),
        row(
            cleared(Some(ServiceId([10; 12]))),
            "Connection pool cleared",
            r#"serviceId="0a0a0a0a0a0a0a0a0a0a0a0a""#,
            "Connection pool for @ cleared for serviceId 0a0a0a0a0a0a0a0a0a0a0a0a",
        ),
        row(
            Event::ConnectionPoolClosed,
            "Connection pool closed",
            "",
            "Connection pool closed for @",
        ),
    ]
}

fn connection_rows() -> Vec<Row> {
    let closed = |reason, error| Event::ConnectionClosed { connection_id: 7, reason, error };
    let duration = Duration::from_micros(12_340);
    vec![
        row(
            Event::ConnectionCreated { connection_id: 7 },
            "Connection created",
            "driverConnectionId=7",
            "Connection created: address=@, driver-generated ID=7",
        ),
        row(
            Event::ConnectionReady { connection_id: 7, duration },
            "Connection ready",
            "driverConnectionId=7 durationMS=12.34",
            "Connection ready: address=@, driver-generated ID=7, established in=12.34 ms",
        ),
        row(
            closed(CloseReason::Stale, None),
            "Connection closed",
            r#"driverConnectionId=7 reason="Connection became stale because the pool was cleared""#,
            "Connection closed: address=@, driver-generated ID=7. Reason: Connection became stale \
             because the pool was cleared.",
        ),
        row(
            closed(CloseReason::Idle, None),
            "Connection closed",
            r#"driverConnectionId=7 reason="Connection has been available but unused for longer than the configured max idle time""#,
            "Connection closed: address=@, driver-generated ID=7. Reason: Connection has been \
             available but unused for longer than the configured max idle time.",
        ),
        row(
            closed(CloseReason::PoolClosed, None),
            "Connection closed",
            r#"driverConnectionId=7 reason="Connection pool was closed""#,
            "Connection closed: address=@, driver-generated ID=7. Reason: Connection pool was closed.",
        ),
        row(
            closed(CloseReason::Error, Some("end of stream")),
            "Connection closed",
            r#"driverConnectionId=7 reason="An error occurred while using the connection" error="end of stream""#,
            "Connection closed: address=@, driver-generated ID=7. Reason: An error occurred while \
             using the connection. Error: end of stream",
        ),
    ]
}

fn check_out_rows() -> Vec<Row> {
    let (request, elapsed) = (WaiterId(4711), Duration::from_millis(3).into());
    let failed = |error| Event::ConnectionCheckOutFailed { request, error, duration: elapsed };
    vec![
        row(
            Event::ConnectionCheckOutStarted { request },
            "Connection checkout started",
            "request=4711",
            "Checkout started for connection to @",
        ),
        row(
            failed(CheckOutError::PoolClosed),
            "Connection checkout failed",
            r#"reason="Connection pool was closed" durationMS=3.0 request=4711"#,
            "Checkout failed for connection to @. Reason: Connection pool was closed. Duration: 3 ms",
        ),
        row(
            failed(CheckOutError::WaitQueueTimeout { snapshot: snapshot() }),
            "Connection checkout failed",
            r#"reason="Wait queue timeout elapsed without a connection becoming available" durationMS=3.0 request=4711"#,
            "Checkout failed for connection to @. Reason: Wait queue timeout elapsed without a \
             connection becoming available. Duration: 3 ms",
        ),
        row(
            failed(CheckOutError::PoolCleared { cause: Some("no primary") }),
            "Connection checkout failed",
            r#"reason="An error occurred while trying to establish a new connection" error="Connection pool for @ was cleared because another operation failed with: no primary" durationMS=3.0 request=4711"#,
            "Checkout failed for connection to @. Reason: An error occurred while trying to \
             establish a new connection. Error: Connection pool for @ was cleared because another \
             operation failed with: no primary. Duration: 3 ms",
        ),
        row(
            failed(CheckOutError::EstablishFailed { cause: "refused" }),
            "Connection checkout failed",
            r#"reason="An error occurred while trying to establish a new connection" error="refused" durationMS=3.0 request=4711"#,
            "Checkout failed for connection to @. Reason: An error occurred while trying to \
             establish a new connection. Error: refused. Duration: 3 ms",
        ),
        row(
            failed(CheckOutError::WaitQueueFull { max: 500 }),
            "Connection checkout failed",
            r#"reason="An error occurred while trying to establish a new connection" error="Too many requests wait for a connection from connection pool: max_wait_queue_size is 500" durationMS=3.0 request=4711"#,
            "Checkout failed for connection to @. Reason: An error occurred while trying to \
             establish a new connection. Error: Too many requests wait for a connection from \
             connection pool: max_wait_queue_size is 500. Duration: 3 ms",
        ),
        row(
            failed(CheckOutError::Cancelled),
            "Connection checkout failed",
            r#"reason="An error occurred while trying to establish a new connection" error="The check-out was given up by its caller" durationMS=3.0 request=4711"#,
            "Checkout failed for connection to @. Reason: An error occurred while trying to \
             establish a new connection. Error: The check-out was given up by its caller. \
             Duration: 3 ms",
        ),
        row(
            Event::ConnectionCheckedOut { connection_id: 7, request, duration: elapsed },
            "Connection checked out",
            "driverConnectionId=7 durationMS=3.0 request=4711",
            "Connection checked out: address=@, driver-generated ID=7, duration=3 ms",
        ),
        row(
            Event::ConnectionCheckedIn { connection_id: 7 },
            "Connection checked in",
            "driverConnectionId=7",
            "Connection checked in: address=@, driver-generated ID=7",
        ),
    ]
}

/// Those of the draft of DRIVERS-2884.
// LR-09
fn pending_response_rows() -> Vec<Row> {
    let (connection_id, request_id, duration) = (7, -9, Duration::from_millis(3).into());
    let failed = |reason| Event::ConnectionPendingResponseFailed {
        connection_id,
        request_id,
        duration,
        reason,
    };
    vec![
        row(
            Event::ConnectionPendingResponseStarted { connection_id, request_id },
            "Pending response started",
            "driverConnectionId=7 requestId=-9",
            "Pending response started: address=@, driver-generated ID=7, request ID=-9",
        ),
        row(
            Event::ConnectionPendingResponseSucceeded { connection_id, request_id, duration },
            "Pending response succeeded",
            "driverConnectionId=7 requestId=-9 durationMS=3.0",
            "Pending response succeeded: address=@, driver-generated ID=7, request ID=-9, \
             duration=3 ms",
        ),
        row(
            failed(PendingResponseFailure::Timeout),
            "Pending response failed",
            r#"driverConnectionId=7 requestId=-9 reason="timeout" durationMS=3.0"#,
            "Pending response failed: address=@, driver-generated ID=7, request ID=-9, \
             reason=timeout, duration=3 ms",
        ),
        row(
            failed(PendingResponseFailure::Error),
            "Pending response failed",
            r#"driverConnectionId=7 requestId=-9 reason="error" durationMS=3.0"#,
            "Pending response failed: address=@, driver-generated ID=7, request ID=-9, \
             reason=error, duration=3 ms",
        ),
    ]
}

const fn row(
    event: Event<&'static str>,
    message: &'static str,
    fields: &'static str,
    line: &'static str,
) -> Row {
    Row { event, message, fields, line }
}

fn snapshot() -> Arc<Snapshot> {
    let options = PoolOptions::default();
    let pool = PoolState::<NoPayload>::new(Instant::ORIGIN, options, &mut Vec::new());
    Arc::new(pool.expect("valid options").snapshot())
}
