//! A MongoDB server as a machine without I/O: enough of one for real clients to connect and not
//! to notice, with fail points, and with faults that no real server can be told to have.
//!
//! [`Server`] is the whole server: users, collections, fail points, topology, and all connections.
//! Bytes that came go in, an ordered list of [`Output`]s comes out, time is an argument. Whoever
//! has sockets puts it under one lock. The same seed and the same inputs give the same outputs.
//!
//! # A conversation
//!
//! ```
//! use std::time::Duration;
//!
//! use bson::rawdoc;
//! use cenote::endpoint::{Output, Peer, Server, Settings};
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

pub(crate) mod auth;
mod bombs;
mod brain;
mod commands;
mod connection;
mod data;
mod entropy;
mod fail_point;
mod fault;
mod faults;
mod hello;
mod listen;
mod mangle;
mod output;
mod refusal;
mod replies;
mod request;
mod session;
mod settings;
mod slow;
mod statistics;
mod topology;
mod user;
mod world;

pub use brain::Server;
pub use fault::{Ending, Fault, FaultId, Moment, ScramFault, Script};
pub use listen::{
    CertificateError, Certificates, Endpoint, ListenOptions, Place, ServerCertificate, StartError,
    TlsFault, TlsOptions,
};
pub use output::{ConnectionId, Output, Peer};
pub use refusal::Refusal;
pub use settings::{Limits, ScramSettings, Settings, SettingsError};
pub use statistics::Statistics;
pub use topology::{LoadBalanced, ReplicaSet, Role, Topology};
pub use user::{Mechanism, User};

/// The examples of the book's page compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/endpoint.md")]
struct Page;
