//! Plays scenario files on any connection pool: the official `cmap-format` files of MongoDB's
//! [Connection Monitoring and Pooling](https://github.com/mongodb/specifications/blob/master/source/connection-monitoring-and-pooling/tests/cmap-format/README.md)
//! specification, and Cenote's own, which have more operations.
//!
#![cfg_attr(docsrs, doc = concat!("[Guide](", env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/endpoint.md#test-your-own-shell)"))]
//!
//! Implement [`Pool`] for your pool and [`Target`] for what opens one, and give a [`Runner`] a folder of
//! files. It executes the operations of each file, records the events, and compares them with those
//! that the file expects. Besides, it checks every event with [`cenote_check`], and that nothing is left
//! open in the end.
//!
//! [`Simulation`] is a target that is already there: `cenote-core`'s state machine under virtual time.
//!
//! ```no_run
//! use cenote_conform::{Runner, Simulation};
//!
//! let folder = "specifications/source/connection-monitoring-and-pooling/tests/cmap-format";
//! let report = Runner::new(&Simulation).run(folder.as_ref())?;
//! println!("{report}");
//! assert_eq!(report.failed(), 0);
//! # Ok::<(), cenote_conform::Unreadable>(())
//! ```
//!
//! # What a pool needs
//!
//! A pool can be async, blocking, or under virtual time: [`Pool::check_out`] only starts a check-out,
//! whose outcome goes to a [`Reply`] later. Five methods are enough for the official files.
//!
//! Pools with real sockets need a server that supports fail points. With the feature `endpoint`,
//! `EndpointServers` starts a mock server for each scenario; for others, implement [`Servers`].

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod counts;
pub mod document;
#[cfg(feature = "endpoint")]
mod endpoint;
mod error;
mod expected;
mod files;
mod matching;
pub mod parallel;
mod player;
mod recorder;
mod report;
mod request;
mod runner;
mod scenario;
mod server;
mod simulation;
mod target;

pub use self::counts::Counts;
pub use self::document::Document;
#[cfg(feature = "endpoint")]
pub use self::endpoint::EndpointServers;
pub use self::error::{OperationError, Unreadable};
pub use self::files::{some_test_files, test_files};
pub use self::recorder::{Progress, Recorder, Reply};
pub use self::report::{Outcome, Report, Verdict};
pub use self::request::CheckOutRequest;
pub use self::runner::Runner;
pub use self::scenario::{FailPoint, Log, LogMessage, NotOn, Scenario, Version, parse_version};
pub use self::server::{Server, Servers};
pub use self::simulation::{
    Answer, SimulatedConnection, SimulatedPool, SimulatedServer, Simulation,
};
pub use self::target::{Pool, Setup, Target};

/// The README's examples, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
