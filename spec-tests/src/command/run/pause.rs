use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Stops the client as a container that is paused does: its tasks, and the threads that emit events, sleep
/// until the same time.
#[derive(Default)]
pub(super) struct Pause(Mutex<Option<Instant>>);

impl Pause {
    /// Begins a pause of this duration.
    pub(super) fn begin(&self, time: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + time);
    }

    /// Blocks until the end of the pause, if there is one.
    pub(super) fn wait_for_end(&self) {
        let end = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = end.and_then(|end| end.checked_duration_since(Instant::now())) {
            thread::sleep(left);
        }
    }
}
