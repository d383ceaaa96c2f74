use std::future::poll_fn;
use std::sync::Arc;

use cenote_core::monitor::Input;

use super::MonitorDriver;
use crate::runtime::{Network, timeout_at};

/// Feeds [`Input::Timer`] at the machine's deadlines, until the task is aborted.
pub(super) async fn run<R: Network>(monitor: Arc<MonitorDriver<R>>) {
    let shared = &monitor.shared;
    loop {
        let armed = monitor.lock().arm_timer();
        let rearmed = poll_fn(|cx| monitor.lock().poll_rearmed(armed, cx));
        match armed.and_then(|armed| shared.time_of(armed)) {
            None => rearmed.await,
            Some(at) => {
                if timeout_at(&shared.runtime, at, rearmed).await.is_none() {
                    monitor.feed(Input::Timer);
                }
            }
        }
    }
}
