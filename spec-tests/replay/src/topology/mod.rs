//! Traces of topologies: what became of the servers of a client.

mod change;
mod history;
mod json;
pub mod record;
mod server;
mod shrink;
mod step_reader;
mod summary;

pub use change::{Change, Effect, line, unchanged};
pub use history::{History, Span, shifted};
pub use json::step as step_json;
pub use server::{Reason, ServerHistory};
pub use shrink::{Shrunk, shrink};
pub use step_reader::{StepReader, View};
pub use summary::{summary, verdict};

/// The names of inputs.
pub const INPUTS: [&str; 4] = ["Described", "Hosts", "Close", "Selection"];
/// The names of events.
pub const EVENTS: [&str; 6] = [
    "TopologyOpening",
    "TopologyDescriptionChanged",
    "TopologyClosed",
    "ServerOpening",
    "ServerDescriptionChanged",
    "ServerClosed",
];
/// The names of actions other than events.
pub const ACTIONS: [&str; 2] = ["AddServer", "RemoveServer"];
