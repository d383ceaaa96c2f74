//! The signals that end a command.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT (Ctrl-C) and SIGTERM, which no longer end the process by themselves.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From now on they are heard. Needs a runtime with I/O.
    pub(super) fn expect() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { interrupt, terminate })
    }

    /// Until one of them comes.
    pub(super) async fn come(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
