//! Pools of both shells on real sockets, against the endpoint: the same stories, of which every call
//! blocks; in `only_tokio` and `only_mio` what one of them alone can do.

mod failures;
mod only_mio;
mod only_tokio;
mod operations;
mod raw;
mod shell;
mod transports;
mod world;
