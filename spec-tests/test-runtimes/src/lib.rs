//! One interface, whose calls block, to the pools and clients of all runtimes: for tests and conformance runners that
//! tell one story on each of them.
//!
//! ```no_run
//! use bson::rawdoc;
//! use cenote_test_runtimes::{ClientSetup, Shell};
//!
//! for shell in Shell::ALL {
//!     let client = shell.build_client("mongodb://localhost", ClientSetup::default()).expect("good options");
//!     client.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
//!     client.close();
//! }
//! ```
//!
//! ```text
//! shell         which runtime
//! ├ setup, tls  what pools and clients are built with
//! ├ names       where names are looked up
//! ├ pool        pools and their connections
//! ├ client      clients
//! └ runtime     how calls of asynchronous ones block
//! alone         a test in a process of its own
//! ```

mod alone;
mod client;
mod names;
mod pool;
mod runtime;
mod setup;
mod shell;
mod tls;

pub use self::alone::{alone, alone_with};
pub use self::client::{AnyClient, AnyPin};
pub use self::names::NameService;
pub use self::pool::{AnyConnection, AnyPool, Cancel, Done};
pub use self::runtime::AsyncRuntime;
pub use self::setup::{
    ClientSetup, OnEvent, OnFailure, PoolSetup, PoolUri, Recordings, Subscribers, Tokens,
};
pub use self::shell::Shell;
pub use self::tls::TlsSetup;
