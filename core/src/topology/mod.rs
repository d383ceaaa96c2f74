//! Discovery, without I/O: which servers a deployment has, and what each of them is.
//!
//! ```text
//!   inputs: Described (a check has ended, or a connection has failed), Hosts, Close
//!       │
//!   ┌───▼────────────────────┐
//!   │ Topology               │  one TopologyDescription, which changes as SDAM says
//!   └───┬────────────────────┘
//!       ▼
//!   actions: AddServer, RemoveServer, EmitEvent
//! ```
//!
//! [`Topology`] begins with the hosts of a connection string, and learns the others from what members of a replica set
//! say. For each server that it adds, the embedder makes a [pool](crate::pool) and starts a
//! [`Monitor`](crate::monitor::Monitor); for each that it removes, it closes the monitor and then the pool. The monitor
//! marks the pool ready and clears it; so does [`sdam::verdict`](crate::sdam::verdict()) when a connection of the
//! application fails. Both also change the description of the server, and that is the input of this machine:
//!
//! ```
//! use std::sync::Arc;
//!
//! use bson::rawdoc;
//! use cenote_core::connect::{
//!     ClientMetadata, ConnectionDescription, Environment, EstablishOptions,
//! };
//! use cenote_core::monitor::ServerDescription;
//! use cenote_core::pool::Instant;
//! use cenote_core::topology::{
//!     Action, Input, ServerId, Topology, TopologyKind, TopologyOptions,
//! };
//! use cenote_core::uri::ConnectionString;
//!
//! let uri = ConnectionString::parse("mongodb://a.example.com/?replicaSet=rs0")?;
//! let mut actions = Vec::new();
//! let mut topology = Topology::new(TopologyOptions::new(&uri), &mut actions);
//!
//! // The reply to the first hello of the monitor of a.example.com.
//! let reply = rawdoc! {
//!     "ok": 1, "isWritablePrimary": true, "setName": "rs0", "maxWireVersion": 25,
//!     "hosts": ["a.example.com:27017", "b.example.com:27017"],
//! };
//! let client = ClientMetadata::new(None, &Environment::default())?;
//! let options = EstablishOptions::for_client(&client).for_monitor();
//! let hello = Arc::new(ConnectionDescription::from_reply(&reply, &options)?);
//! let description = Arc::new(ServerDescription::known(hello, None, Instant::ORIGIN));
//! // It is the first server that was added.
//! topology.handle(Input::Described { id: ServerId(1), description }, &mut actions);
//!
//! assert_eq!(topology.description().kind, TopologyKind::ReplicaSetWithPrimary);
//! let added: Vec<_> = actions
//!     .iter()
//!     .filter_map(|action| match action {
//!         // Make its pool, and start its monitor.
//!         Action::AddServer { address, .. } => Some(address.to_string()),
//!         // Close its monitor, then its pool.
//!         Action::RemoveServer { .. } => None,
//!         // Call the event subscribers.
//!         Action::EmitEvent(_) => None,
//!     })
//!     .collect();
//! assert_eq!(added, ["a.example.com:27017", "b.example.com:27017"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Under one lock
//!
//! The description of the topology and the pool of a server change together: feed [`Input::Described`] before the pool
//! is marked ready or cleared, and before another thread selects a server. After a check that succeeded
//! ([`MarkReady`](crate::monitor::Action::MarkReady)) the pool is marked ready if the server
//! [`is_usable`](TopologyDescription::is_usable).

mod action;
mod described;
mod description;
mod event;
mod input;
mod machine;
mod options;
mod removal;
mod replica_set;

pub use action::{Action, ActionSink, ServerId};
pub use description::{TopologyDescription, TopologyKind};
pub use event::Event;
pub use input::Input;
pub use machine::Topology;
pub use options::TopologyOptions;
