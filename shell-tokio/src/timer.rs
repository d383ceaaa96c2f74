//! One timer for the whole pool.

use std::sync::Arc;

use cenote_core::pool::Input;

use crate::connector::Connector;
use crate::shared::Shared;
use crate::sync::Notify;

/// Feeds `Timer` whenever the machine asked for it, until it is stopped.
pub(crate) async fn run<K: Connector>(watch: Watch<K>) {
    let Watch { shared, alarm } = &watch;
    loop {
        let armed = shared.lock().armed;
        let rescheduled = alarm.notified();
        // What is out of tokio's reach is never.
        let Some(due) = armed.and_then(|armed| shared.time_of(armed)) else {
            rescheduled.await;
            continue;
        };
        // Biased, so that nothing is left to chance.
        tokio::select! {
            biased;
            () = rescheduled => {}
            () = tokio::time::sleep_until(due) => {
                // What is due after this is set anew by the input itself.
                shared.lock().armed = None;
                shared.feed(Input::Timer);
            }
        }
    }
}

/// Goes with the timer, and the timer with its runtime.
pub(crate) struct Watch<K: Connector> {
    pub(crate) shared: Arc<Shared<K>>,
    pub(crate) alarm: Arc<Notify>,
}

impl<K: Connector> Drop for Watch<K> {
    fn drop(&mut self) {
        // Not if it is the timer of another process, from which the pool was forked.
        let is_ours = Arc::ptr_eq(&self.shared.lock().alarm, &self.alarm);
        if is_ours {
            self.shared.runtime_ended();
        }
    }
}
