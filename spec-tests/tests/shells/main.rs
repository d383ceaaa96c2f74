//! Pools on real sockets, against the mock endpoint. Each test runs on tokio, mio and smol, with calls that
//! block; `only_tokio` and `only_mio` have the tests for what one runtime alone can do.

mod accepts;
mod appended_metadata;
mod crossed_replies;
mod durations;
mod failures;
mod fault_proxy;
mod first_messages;
mod idle;
mod inputs;
mod late_replies;
mod metadata;
mod only_mio;
mod only_tokio;
mod operations;
mod own_errors;
mod own_mechanism;
mod prose_scram;
mod raw;
mod resolver;
#[cfg(target_os = "linux")]
mod secrecy;
mod self_signed;
mod shell;
mod timeouts;
mod transports;
mod world;
