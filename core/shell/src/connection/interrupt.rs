//! Interrupts a connection that is in use.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::runtime::signal::{Listener, Signal};

/// Interrupts an operation that blocks on a connection, from another thread:
/// [`Connector::interrupter`](crate::connection::Connector::interrupter).
pub type Interrupter = Box<dyn Fn() + Send + Sync>;

/// The pool's way to the user of a connection: stop using it.
#[derive(Default)]
pub struct Interrupt {
    has_happened: AtomicBool,
    signal: Signal,
    interrupter: Option<Interrupter>,
}

impl Interrupt {
    pub(crate) fn new(interrupter: Option<Interrupter>) -> Self {
        Self { interrupter, ..Self::default() }
    }

    /// Stops what is being done with the connection, and everything later.
    pub(crate) fn interrupt(&self) {
        self.renounce();
        self.signal.notify_all();
        self.interrupter.iter().for_each(|interrupt| interrupt());
    }

    /// Marks the connection as unusable without touching its socket, which belongs to another process.
    pub(crate) fn renounce(&self) {
        self.has_happened.store(true, Ordering::Release);
    }

    /// Whether the connection was interrupted.
    #[must_use]
    pub fn has_happened(&self) -> bool {
        self.has_happened.load(Ordering::Acquire)
    }

    /// Listens from this moment on.
    #[must_use]
    pub fn listen(&self) -> Listener<'_> {
        self.signal.listen()
    }

    /// Waits until the connection is interrupted. Does not allocate after the first wait.
    pub async fn happens(&self) {
        let interrupted = self.signal.listen();
        // After listening, so that no notification is missed in between.
        if !self.has_happened() {
            interrupted.await;
        }
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt")
            .field("has_happened", &self.has_happened)
            .finish_non_exhaustive()
    }
}
