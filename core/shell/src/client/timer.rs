use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use cenote_core::client::machine::Input;

use super::driver::ClientDriver;
use crate::runtime::{Network, timeout_at};

/// Feeds [`Input::Timer`] at the machine's deadlines, until the task is aborted.
pub(super) async fn run<R: Network>(driver: Arc<ClientDriver<R>>) {
    let Timer(driver) = &Timer(driver);
    loop {
        let armed = driver.lock().arm_timer();
        let rearmed = poll_fn(|cx| driver.lock().poll_rearmed(armed, cx));
        match armed.and_then(|armed| driver.time_of(armed)) {
            None => rearmed.await,
            Some(at) => {
                if timeout_at(&driver.runtime, at, pin!(rearmed)).await.is_none() {
                    driver.feed_apart(Input::Timer);
                }
            }
        }
    }
}

struct Timer<R: Network>(Arc<ClientDriver<R>>);

impl<R: Network> Drop for Timer<R> {
    /// Dropped before the client is closed, the timer's runtime has shut down.
    fn drop(&mut self) {
        self.0.runtime_ended();
    }
}
