//! What comes out, in one ordered stream.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Event;
use crate::address::ServerAddress;

/// One server of a topology: 1, 2, 3, … as they are added. None is used twice, so that a check of a server that was
/// removed says nothing of one that was added later at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u64);

/// What the embedder has to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Make the pool of the server, and start its monitor. A load balancer has no monitor: mark its pool ready at
    /// once.
    AddServer {
        /// A new one.
        id: ServerId,
        /// Where no other server of the topology is.
        address: Arc<ServerAddress>,
    },
    /// Close the monitor of the server, then its pool. Exactly one for each `AddServer`, at the latest after
    /// [`Input::Close`](super::Input::Close).
    RemoveServer {
        /// Not to be heard of again.
        id: ServerId,
        /// As it was added. A server may be added there again, which is another one.
        address: Arc<ServerAddress>,
    },
    /// Call the event subscribers, in this place of the order.
    EmitEvent(Event),
}

/// Where actions go: `Vec`, `VecDeque`, closures, or a type of the embedder.
pub trait ActionSink {
    /// Takes the next action of the stream.
    fn act(&mut self, action: Action);
}

impl ActionSink for Vec<Action> {
    fn act(&mut self, action: Action) {
        self.push(action);
    }
}

impl ActionSink for VecDeque<Action> {
    fn act(&mut self, action: Action) {
        self.push_back(action);
    }
}

impl<F: FnMut(Action)> ActionSink for F {
    fn act(&mut self, action: Action) {
        self(action);
    }
}
