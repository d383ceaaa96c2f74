//! The signals that end a command.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{process, thread};

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

/// What shells tell of a process that Ctrl-C has ended.
const ENDED: i32 = 130;

/// From now on Ctrl-C ends the work and not the process: it raises this flag. A second one ends the
/// process, whatever it does.
pub(super) fn flag() -> io::Result<Arc<AtomicBool>> {
    let is_raised = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::expect()?
    };
    let flag = Arc::clone(&is_raised);
    thread::Builder::new().name("cenote-signals".to_owned()).spawn(move || {
        runtime.block_on(signals.come());
        flag.store(true, Ordering::Relaxed);
        runtime.block_on(signals.come());
        process::exit(ENDED);
    })?;
    Ok(is_raised)
}
