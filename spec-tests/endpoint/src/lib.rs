//! A mock MongoDB server for tests: real drivers connect to it, log in and run commands, and a test
//! can order fail points and faults that no real server produces.
//!
#![cfg_attr(docsrs, doc = concat!("[Guide](", env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/endpoint.md)"))]
//!
//! [`Server`] is the whole server as a state machine without I/O: users, collections, fail points,
//! topology and all connections. Received bytes go in, an ordered list of [`Output`]s comes out, time is
//! an argument; the same seed and the same inputs give the same outputs. [`Endpoint`] runs it on real
//! sockets, on a thread of its own.
//!
//! # On a real socket
//!
//! ```
//! use cenote_endpoint::{Endpoint, ListenOptions, Settings};
//!
//! let endpoint = Endpoint::start(Settings::default(), ListenOptions::with_tls())?;
//! // A connection string for any driver.
//! assert!(endpoint.uri().starts_with("mongodb://127.0.0.1:"));
//! # Ok::<(), cenote_endpoint::StartError>(())
//! ```
//!
//! # Without I/O
//!
//! ```
//! use std::time::Duration;
//!
//! use bson::rawdoc;
//! use cenote_endpoint::{Output, Peer, Server, Settings};
//! use cenote_core::wire::{Flags, Frame, Ids, Message, MessageLimit, MessageWriter};
//!
//! let mut server = Server::new(Settings::seeded(1))?;
//! let now = Duration::ZERO;
//! let id = server.accepted(now, Peer::default());
//!
//! let mut hello = Vec::new();
//! let command = rawdoc! { "hello": 1 };
//! MessageWriter::command(&mut hello, Ids::request(1), Flags::NONE, &command, "admin")?
//!     .finish(MessageLimit::DEFAULT)?;
//! server.received(now, id, &hello);
//!
//! let Some(Output::Send { id: to, bytes }) = server.poll_output() else { panic!("no reply") };
//! assert_eq!(to, id);
//! let reply = Message::parse(Frame::new(&bytes, MessageLimit::DEFAULT)?)?;
//! assert_eq!(reply.body().get_bool("isWritablePrimary").ok(), Some(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod auth;
mod commands;
mod connection;
mod data;
mod decompression_bombs;
mod entropy;
mod fail_point;
mod fault;
mod faults;
mod hello;
mod hostile_texts;
mod listen;
mod mangle;
mod name_server;
mod observer;
mod output;
mod refusal;
mod replies;
mod request;
mod server;
mod session;
mod settings;
mod slow;
mod statistics;
mod topology;
mod user;
mod world;

pub use data::Documents;
pub use fault::{Ending, Fault, FaultId, Moment, ScramFault, Script};
pub use listen::{
    CertificateError, Certificates, Endpoint, Identity, ListenAddress, ListenOptions,
    ServerCertificate, StartError, TlsFault, TlsOptions,
};
pub use name_server::{NameServer, NameServerFault};
pub use output::{ConnectionId, Output, Peer};
pub use refusal::Refusal;
pub use server::Server;
pub use settings::{Limits, ScramSettings, Settings, SettingsError};
pub use statistics::Statistics;
pub use topology::{LoadBalanced, ReplicaSet, Role, Topology};
pub use user::{AccessToken, AwsKey, Mechanism, User};

/// Compiles the examples of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/endpoint.md")]
struct Page;

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
