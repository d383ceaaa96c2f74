//! Who is told of servers.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::client::ServerEvent;
use cenote_core::monitor::Event;

use crate::log::topology as log;

/// Somebody who is told everything of servers.
pub type ServerSubscriber = Box<dyn Fn(&ServerEvent) + Send + Sync>;

/// All of them, for all servers of a client.
pub struct ServerSubscribers(Vec<ServerSubscriber>);

impl ServerSubscribers {
    /// These, and `tracing`.
    #[must_use]
    pub const fn new(subscribers: Vec<ServerSubscriber>) -> Self {
        Self(subscribers)
    }

    /// Tells an event, to be called without a lock: whoever is told may take his time, or panic.
    pub fn tell(&self, address: &Arc<ServerAddress>, event: Event) {
        if log::is_wanted() {
            // What collects them may panic, too.
            let _ = catch_unwind(AssertUnwindSafe(|| log::event(address, &event)));
        }
        if self.0.is_empty() {
            return;
        }
        let event = ServerEvent { address: Arc::clone(address), event };
        for subscriber in &self.0 {
            // One that panics has said so; the others, and what comes next, are not to suffer.
            let _ = catch_unwind(AssertUnwindSafe(|| subscriber(&event)));
        }
    }
}

impl fmt::Debug for ServerSubscribers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerSubscribers").field(&self.0.len()).finish()
    }
}
