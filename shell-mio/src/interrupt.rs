use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a connection is broken off while another thread uses it:
/// [`Connector::interrupter`](crate::Connector::interrupter).
pub type Interrupter = Box<dyn Fn() + Send + Sync>;

/// The way from the pool to whoever uses a connection: this one is broken off.
#[derive(Default)]
pub(crate) struct Interrupt {
    happened: AtomicBool,
    interrupter: Option<Interrupter>,
}

impl Interrupt {
    pub(crate) fn new(interrupter: Option<Interrupter>) -> Self {
        Self { happened: AtomicBool::new(false), interrupter }
    }

    /// Breaks off what is done with the connection, now and later.
    pub(crate) fn happen(&self) {
        self.renounce();
        self.interrupter.iter().for_each(|interrupt| interrupt());
    }

    /// The connection must not be used any more, and is not touched: it is another process's.
    pub(crate) fn renounce(&self) {
        self.happened.store(true, Ordering::Release);
    }

    pub(crate) fn has_happened(&self) -> bool {
        self.happened.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt").field("happened", &self.happened).finish_non_exhaustive()
    }
}
