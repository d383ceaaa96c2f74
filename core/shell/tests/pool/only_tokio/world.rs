//! Pools on the test's own runtime, whose clock is paused.

use cenote_core::pool::PoolOptions;
use cenote_tokio::{Builder, Pool};

pub(super) use crate::pool::world::{Gate, Log, at_most, checked, failure, unobserved};

pub(super) fn builder(gate: &Gate, options: PoolOptions) -> Builder<Gate> {
    checked(unobserved(gate, options))
}

/// A ready pool, and its events.
pub(super) fn ready(gate: &Gate, options: PoolOptions) -> (Pool<Gate>, Log) {
    let log = Log::default();
    let heard = log.clone();
    let pool = builder(gate, options).on_event(move |event| heard.push(event)).build();
    let pool = pool.expect("good options");
    pool.ready();
    (pool, log)
}

/// Lets every task run until it waits.
pub(super) async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}
