//! The events whose records the page shows.

use std::sync::Arc;
use std::time::Duration;

use cenote_core::pool::{
    CheckOutError, CloseReason, Event, Instant, NoPayload, PendingResponseFailure, PoolOptions,
    PoolState, ServiceId, Snapshot, WaiterId,
};

/// Those of one type stand together.
pub(super) fn events() -> Vec<Event<&'static str>> {
    [pool_events(), connection_events(), check_out_events(), pending_response_events()].concat()
}

fn pool_events() -> Vec<Event<&'static str>> {
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
        created(all),
        created(PoolOptions::default()),
        created(no_part_of_cmap),
        created(PoolOptions::default().with_max_pool_size(0).with_max_connecting(1)),
        created(PoolOptions::default().with_wait_queue_timeout(Duration::from_micros(500))),
        Event::ConnectionPoolReady,
        cleared(None),
        cleared(Some(ServiceId([10; 12]))),
        Event::ConnectionPoolClosed,
    ]
}

fn connection_events() -> Vec<Event<&'static str>> {
    let closed = |reason, error| Event::ConnectionClosed { connection_id: 7, reason, error };
    let duration = Duration::from_micros(12_340);
    vec![
        Event::ConnectionCreated { connection_id: 7 },
        Event::ConnectionReady { connection_id: 7, duration },
        closed(CloseReason::Stale, None),
        closed(CloseReason::Idle, None),
        closed(CloseReason::PoolClosed, None),
        closed(CloseReason::Error, Some("end of stream")),
    ]
}

fn check_out_events() -> Vec<Event<&'static str>> {
    let (request, elapsed) = (WaiterId(4711), Duration::from_millis(3).into());
    let failed = |error| Event::ConnectionCheckOutFailed { request, error, duration: elapsed };
    vec![
        Event::ConnectionCheckOutStarted { request },
        failed(CheckOutError::PoolClosed),
        failed(CheckOutError::WaitQueueTimeout { snapshot: snapshot() }),
        failed(CheckOutError::PoolCleared { cause: Some("no primary") }),
        failed(CheckOutError::EstablishFailed { cause: "refused" }),
        failed(CheckOutError::WaitQueueFull { max: 500 }),
        failed(CheckOutError::Cancelled),
        Event::ConnectionCheckedOut { connection_id: 7, request, duration: elapsed },
        Event::ConnectionCheckedIn { connection_id: 7 },
    ]
}

/// Those of the draft of DRIVERS-2884.
// LR-09
fn pending_response_events() -> Vec<Event<&'static str>> {
    let (connection_id, request_id, duration) = (7, -9, Duration::from_millis(3).into());
    let failed = |reason| Event::ConnectionPendingResponseFailed {
        connection_id,
        request_id,
        duration,
        reason,
    };
    vec![
        Event::ConnectionPendingResponseStarted { connection_id, request_id },
        Event::ConnectionPendingResponseSucceeded { connection_id, request_id, duration },
        failed(PendingResponseFailure::Timeout),
        failed(PendingResponseFailure::Error),
    ]
}

fn snapshot() -> Arc<Snapshot> {
    let options = PoolOptions::default();
    let pool = PoolState::<NoPayload>::new(Instant::ORIGIN, options, &mut Vec::new());
    Arc::new(pool.expect("valid options").snapshot())
}
