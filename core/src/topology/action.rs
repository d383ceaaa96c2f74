//! What comes out, in one ordered stream.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Event;
use crate::address::ServerAddress;

/// What the embedder has to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Make the pool of the server, and start its monitor. A load balancer has no monitor: mark its pool ready at
    /// once.
    AddServer {
        /// One that is not there.
        server: Arc<ServerAddress>,
    },
    /// Close the monitor of the server, then its pool. Exactly one for each `AddServer`, at the latest after
    /// [`Input::Close`](super::Input::Close).
    RemoveServer {
        /// One that is there. It may be added again later, and is then a new one.
        server: Arc<ServerAddress>,
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
