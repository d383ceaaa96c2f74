//! MongoDB's Connection Monitoring and Pooling (CMAP) as a deterministic state machine: inputs in,
//! actions out, without a clock, a socket or a thread inside.
//!
//! A shell feeds inputs and performs the actions that come back. This one is complete, but for
//! sockets:
//!
//! ```
//! use cenote_core::pool::*;
//! use std::{collections::VecDeque, time::Duration};
//!
//! enum Text {} // The payloads: sockets, waiters and errors.
//! impl PoolTypes for Text {
//!     type Conn = String;
//!     type Waiter = &'static str;
//!     type Cause = String;
//! }
//!
//! let (mut now, mut actions) = (Instant::ORIGIN, VecDeque::new()); // Time is an argument.
//! let options = PoolOptions::default().with_max_pool_size(1);
//! let mut pool = PoolState::<Text>::new(now, options, &mut actions)?;
//! let (id, waiter, purpose) = (WaiterId(1), "alice", Purpose::Other);
//! let request = Input::CheckOutRequested { id, waiter, deadline: None, purpose };
//! let mut inputs = VecDeque::from([Input::Ready, request]);
//! while let Some(input) = inputs.pop_front() {
//!     now = now + Duration::from_millis(1);
//!     pool.handle(now, input, &mut actions)?;
//!     while let Some(action) = actions.pop_front() {
//!         match action {
//!             // Connect, say hello, authenticate; then answer.
//!             Action::StartEstablish { id, .. } => inputs.push_back(
//!                 Input::EstablishSucceeded { id, conn: format!("socket of {id}") }),
//!             // Wake the waiter; this one returns its connection at once.
//!             Action::Deliver { outcome: Ok((id, conn)), .. } => inputs.push_back(
//!                 Input::CheckedIn { id, conn, health: Health::Healthy }),
//!             Action::CloseSocket { conn, .. } => drop(conn),
//!             Action::EmitEvent(event) => println!("{now} {}", event.name()),
//!             _ => {} // Failures, interrupts, leak reports.
//!         }
//!     }
//! }
//! assert_eq!(pool.snapshot().available, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A shell also feeds [`Input::Timer`](pool::Input::Timer) when
//! [`PoolState::next_deadline`](pool::PoolState::next_deadline) is due. `examples/blocking.rs` in
//! this crate is a shell with threads and TCP sockets. The pools of `cenote-tokio` and `cenote-mio`
//! are ready to use; `cenote-shell` is for other runtimes.
//!
//! | module | what it has |
//! |---|---|
//! | [`pool`] | The pool, on `core` and `alloc` alone. |
//! | [`connect`] | Handshake and authentication of a connection, step by step. |
//! | [`monitor`], [`client`], [`sdam`] | Server monitors, server selection, what errors mean for a pool. |
//! | [`wire`] | Messages and their compression. |
//! | [`uri`], [`error`], [`log`] | Connection strings, errors, log records. |
//! | [`trace`] | Recording and replay of a pool. |
//!
//! Everything but [`pool`] and [`address`] needs the feature `std`, which is on by default.

#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

extern crate alloc;

pub mod address;
pub mod pool;
mod printable;

#[cfg(feature = "std")]
pub mod client;
#[cfg(feature = "std")]
pub mod connect;
#[cfg(feature = "std")]
pub mod error;
#[cfg(feature = "std")]
pub mod log;
#[cfg(feature = "std")]
pub mod monitor;
#[cfg(feature = "std")]
mod number;
#[cfg(feature = "std")]
mod one_line;
#[cfg(feature = "std")]
pub mod sdam;
#[cfg(feature = "std")]
pub mod trace;
#[cfg(feature = "std")]
pub mod uri;
#[cfg(feature = "std")]
pub mod wire;
