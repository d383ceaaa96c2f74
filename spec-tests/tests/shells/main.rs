//! Pools of both shells on real sockets, against the endpoint: the same stories, of which every call
//! blocks. What only one of them can do is in `tokio_shell` and `mio_shell`.

mod failures;
mod operations;
mod raw;
mod shell;
mod transports;
mod world;
