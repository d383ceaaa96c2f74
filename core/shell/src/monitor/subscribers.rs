use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::client::ServerEvent;
use cenote_core::monitor::Event;

/// A callback for events of servers.
pub type ServerSubscriber = Box<dyn Fn(&ServerEvent) + Send + Sync>;

/// The subscribers of a client.
#[derive(Default)]
pub(crate) struct ServerSubscribers(pub(crate) Vec<ServerSubscriber>);

impl ServerSubscribers {
    /// To be called without a lock: subscribers may take long, and may panic.
    pub(super) fn notify(&self, address: &Arc<ServerAddress>, event: Event) {
        if self.0.is_empty() {
            return;
        }
        let event = ServerEvent { address: Arc::clone(address), event };
        for subscriber in &self.0 {
            // The panic hook has reported it; the other subscribers, and later events, are not affected.
            let _ = catch_unwind(AssertUnwindSafe(|| subscriber(&event)));
        }
    }
}
