use std::future::poll_fn;
use std::sync::Arc;

use cenote_core::monitor::Input;

use super::MonitorDriver;
use crate::runtime::{Network, timeout_at};

/// Feeds [`Input::Timer`] at the machine's deadlines, until the task is aborted.
pub(super) async fn run<R: Network>(monitor: Arc<MonitorDriver<R>>) {
    let timer = Timer { monitor };
    let monitor = &timer.monitor;
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

struct Timer<R: Network> {
    monitor: Arc<MonitorDriver<R>>,
}

impl<R: Network> Drop for Timer<R> {
    /// Dropped before the monitor is closed, the timer's runtime has shut down: no check follows, and callers
    /// that wait for a server hear of it. There may be no socket whose task reports that.
    fn drop(&mut self) {
        let Self { monitor } = self;
        if monitor.is_inherited() || monitor.lock().is_closed() {
            return;
        }
        monitor.pool.close();
        monitor.shared.news.notify_all();
    }
}
