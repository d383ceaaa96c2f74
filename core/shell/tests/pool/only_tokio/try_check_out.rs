//! `try_check_out`, the queue and time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote_core::pool::Event;

use super::world::{Gate, at_most, builder, ready};

// CO-10.
#[tokio::test(start_paused = true)]
async fn a_perished_connection_is_not_returned() {
    let gate = Gate::open();
    let options = at_most(1).with_max_idle_time(Duration::from_secs(1));
    let (pool, _) = ready(&gate, options);
    drop(pool.check_out().await.unwrap());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(pool.try_check_out().unwrap().is_none());
    assert_eq!(gate.alive(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn none_is_reported_as_a_timeout_without_a_wait() {
    let gate = Gate::open();
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let pool = builder(&gate, at_most(1))
        .on_event(move |event| {
            if let Event::ConnectionCheckOutFailed { error, duration, .. } = &event.event {
                heard.lock().unwrap().push((error.reason().as_str(), duration.get()));
            }
        })
        .build()
        .unwrap();
    pool.ready();
    tokio::time::advance(Duration::from_millis(5)).await;
    assert!(pool.try_check_out().unwrap().is_none());
    assert_eq!(*told.lock().unwrap(), [("timeout", Duration::ZERO)]);
}
