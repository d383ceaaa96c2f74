//! The decisions of a client with several servers, on any runtime: which servers there are, which
//! of them is selected, and what happens to callers that wait for one.
//!
//! ```text
//!   all of it         ──▶ machine          topology, monitors, selection and SRV records as one state machine
//!   connection string ──▶ ClientSettings   how long is waited
//!   what is wanted    ──▶ Selector         by the last known type of a server
//!   a topology        ──▶ select           one of the servers that fit, or whether to wait
//!                         suitable, in_latency_window, choose_of_two
//!                         SelectionError   why there is none, with every server in it
//!   an overload       ──▶ OverloadRetries  whether to try again, when, and where not
//!   time that is left ──▶ with_max_time    how much of it the server gets
//!   SRV records       ──▶ SrvPolling       routers to add and to remove, and when to look again
//! ```
//!
//! Nothing here has a lock, a socket or a clock. The shells' `Client` drives the [`machine`]; the rest is what that is made of.

mod error;
mod event;
pub mod machine;
mod max_time;
mod overload_retries;
mod polling;
mod read_preference;
mod selection;
mod selector;
mod settings;
mod status;
mod suitable;

pub use error::{ClientError, SelectionError, TimeLimit};
pub use event::{HeartbeatEvent, TopologyEvent};
pub use max_time::with_max_time;
pub use overload_retries::OverloadRetries;
pub use polling::{SrvChanges, SrvPolling};
pub use read_preference::{InvalidReadPreference, ReadPreference};
pub use selection::{Selection, select};
pub use selector::Selector;
pub use settings::ClientSettings;
pub(crate) use status::all_seen;
pub use status::{ClientStatus, ServerStatus, seen};
pub(crate) use suitable::two_of;
pub use suitable::{Described, choose_of_two, in_latency_window, suitable};
