//! A signal of the operating system that asks for a dump.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::FORBIDDEN;
use signal_hook::{SigId, flag, low_level};

use super::error::RecordingError;

/// Whether the signal came. Other handlers of the signal run as before.
pub(super) struct Signal {
    has_come: Arc<AtomicBool>,
    id: SigId,
}

impl Signal {
    pub(super) fn listen(number: i32) -> Result<Self, RecordingError> {
        let unusable = |error| RecordingError::Signal { number, error: Arc::new(error) };
        // To ask for one of these is a panic there.
        if FORBIDDEN.contains(&number) {
            let reason = "it cannot be caught, or not be survived";
            return Err(unusable(io::Error::new(io::ErrorKind::InvalidInput, reason)));
        }
        let has_come = Arc::new(AtomicBool::new(false));
        let id = flag::register(number, Arc::clone(&has_come)).map_err(unusable)?;
        Ok(Self { has_come, id })
    }

    /// Since it [was heard](Self::is_heard) last.
    pub(super) fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Relaxed)
    }

    /// What comes from now on is another one.
    pub(super) fn is_heard(&self) {
        self.has_come.store(false, Ordering::Relaxed);
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        low_level::unregister(self.id);
    }
}
