use std::panic::{AssertUnwindSafe, catch_unwind};

use cenote_core::client::{HeartbeatEvent, TopologyEvent};

type Subscriber<T> = Box<dyn Fn(&T) + Send + Sync>;

/// The subscribers of a client.
#[derive(Default)]
pub(crate) struct SdamSubscribers {
    pub(crate) heartbeats: Vec<Subscriber<HeartbeatEvent>>,
    pub(crate) topology: Vec<Subscriber<TopologyEvent>>,
}

/// To be called without a lock: subscribers may take long, and may panic.
pub(super) fn call_each<T>(subscribers: &[Subscriber<T>], event: &T) {
    for subscriber in subscribers {
        // The panic hook has reported it; the other subscribers, and later events, are not affected.
        let _ = catch_unwind(AssertUnwindSafe(|| subscriber(event)));
    }
}
