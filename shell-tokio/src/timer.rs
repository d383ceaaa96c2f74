//! One timer for the whole pool.

use std::sync::Arc;

use cenote_core::pool::Input;

use crate::connector::Connector;
use crate::shared::Shared;

/// Feeds `Timer` whenever the machine asked for it, until it is aborted.
pub(crate) async fn run<K: Connector>(shared: Arc<Shared<K>>) {
    loop {
        let armed = shared.lock().armed;
        let rescheduled = shared.rescheduled.notified();
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
