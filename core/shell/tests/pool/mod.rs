//! Pools with a connector that does what a test says. Each test runs on every runtime, with calls that
//! block; `only_tokio` (in virtual time) and `only_mio` have the tests for what one runtime alone can do.

pub(crate) mod blocking;
mod failures;
#[cfg(unix)]
mod inspection;
mod late_replies;
mod leaks;
mod lifecycle;
mod many;
mod metrics;
mod only_mio;
mod only_tokio;
mod parts;
mod subscribers;
mod try_check_out;
mod waiting;
mod warm_up;
pub(crate) mod world;
