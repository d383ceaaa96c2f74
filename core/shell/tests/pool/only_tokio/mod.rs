//! What needs tokio's paused clock, its budget, its runtimes, or futures that are dropped.

mod cancellation;
mod clear;
mod close;
mod handshake;
mod idle;
mod leaks;
mod metrics;
mod recording;
mod runtimes;
mod try_check_out;
mod waiting;
mod wakers;
mod warm_up;
mod world;
