//! Monitoring a server, without I/O. The monitor marks the pool of the server ready and clears it.
//!
//! ```text
//!   inputs: Opened, Replied, Failed, RequestCheck, ApplicationFailed, Timer, Close
//!       │
//!   ┌───▼────────────┐  check        one hello after another: streamed or polled
//!   │ Monitor        │  measure      a second socket for round-trip times, while the first streams
//!   │  description   │  application  what the failure of a pooled connection changes
//!   └───┬────────────┘
//!       ▼
//!   actions: Open, Send, Close, MarkReady, ClearPool, EmitEvent
//! ```
//!
//! [`Monitor`] watches one server for one pool. It reads no clock and owns no socket: the shell
//! that embeds it opens two at most, which are not the pool's, passes replies in, carries actions
//! out in their order, and feeds [`Input::Timer`] when [`Monitor::next_deadline`] is due. It knows
//! no other servers; discovery and selection are the driver's.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use bson::rawdoc;
//! use cenote_core::connect::{
//!     ClientMetadata, ConnectionDescription, Environment, EstablishOptions,
//! };
//! use cenote_core::monitor::{Action, Input, Monitor, MonitorOptions};
//! use cenote_core::pool::Instant;
//! use cenote_core::wire::Flags;
//!
//! let client = ClientMetadata::new(None, &Environment::default())?;
//! let hello = Arc::new(EstablishOptions::for_client(&client).for_monitor());
//!
//! let mut now = Instant::ORIGIN; // Time is an argument.
//! let mut actions = Vec::new();
//! let mut monitor = Monitor::new(now, MonitorOptions::default(), hello, &mut actions)?;
//! while !actions.is_empty() {
//!     for action in std::mem::take(&mut actions) {
//!         match action {
//!             // Connect, TLS, and hello: `Establish` with `monitor.establish_options()`. How long
//!             // hello took is the first round-trip time.
//!             Action::Open { socket, .. } => {
//!                 now = now + Duration::from_millis(2);
//!                 let reply = rawdoc! { "ok": 1, "helloOk": true, "maxWireVersion": 25 };
//!                 let hello = ConnectionDescription::from_reply(&reply, monitor.establish_options())?;
//!                 let round_trip = Duration::from_millis(1);
//!                 let input = Input::Opened { socket, hello: Box::new(hello), round_trip };
//!                 monitor.handle(now, input, &mut actions)?;
//!             }
//!             // Write it as one message; then read replies until one has no `moreToCome`, and feed
//!             // each as `Replied`.
//!             Action::Send { command, flags, .. } => {
//!                 assert_eq!((command.name(), flags), ("hello", Flags::NONE));
//!             }
//!             Action::Close { .. } => {}
//!             // To the pool of this server, under the lock that this machine is under.
//!             Action::MarkReady => println!("the pool is ready"),
//!             Action::ClearPool { cause, interrupt } => println!("{cause} ({interrupt})"),
//!             Action::EmitEvent(event) => println!("{}", event.name()),
//!         }
//!     }
//! }
//! assert!(monitor.description().is_data_bearing());
//! // The next check is due ten seconds later.
//! let due = monitor.next_deadline().expect("there is always a next check");
//! assert_eq!(due.at, now + Duration::from_secs(10));
//! monitor.handle(due.at, Input::Timer, &mut actions)?;
//! assert!(matches!(actions[1], Action::Send { .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Under one lock
//!
//! The description and the pool change together: [`Action::MarkReady`] and [`Action::ClearPool`]
//! are fed to the pool before another thread reaches this machine. When an application's connection
//! fails, ask [`sdam::verdict`](crate::sdam::verdict()) with the present `topology_version` of the
//! server in the [topology](crate::topology), feed [`Input::ApplicationFailed`], and clear the pool
//! as the verdict says, all under that lock.

mod action;
mod application;
mod check;
mod deadline;
mod description;
mod event;
mod input;
mod machine;
mod measure;
mod misuse;
mod options;
mod round_trip;

pub use action::{Action, ActionSink, Line, SocketId};
pub use deadline::{Deadline, DeadlineReason};
pub use description::ServerDescription;
pub use event::Event;
pub use input::Input;
pub use machine::Monitor;
pub use misuse::Misuse;
pub(crate) use misuse::SocketInput;
pub use options::{InvalidMonitorOptions, MonitorOptions};
pub use round_trip::RoundTrip;
