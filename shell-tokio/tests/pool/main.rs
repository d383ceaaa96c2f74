//! The shell with a connector that does what a test says, in virtual time.

mod cancellation;
mod close;
mod failures;
mod handshake;
mod held;
mod lifecycle;
mod many;
mod metrics;
mod runtimes;
mod subscribers;
mod try_check_out;
mod waiting;
mod wakers;
mod warm_up;
mod world;
