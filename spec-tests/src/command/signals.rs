//! The signals that end a command.

use std::fs;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT (Ctrl-C), SIGTERM and, unless it is ignored, SIGHUP, which no longer end the process by
/// themselves.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl Signals {
    /// From now on they are heard. Needs a runtime with I/O.
    pub(super) fn expect() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        // `nohup` has it ignored, so that the command outlives its terminal.
        let hang_up = if ignores_hang_up() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { interrupt, terminate, hang_up })
    }

    /// Until one of them comes.
    pub(super) async fn come(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = come(self.hang_up.as_mut()) => {}
        }
    }
}

/// Never, if there is no such signal.
async fn come(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether the process was started with SIGHUP ignored, as `nohup` does, where the operating system says so in
/// a file. Its child processes ignore it, too.
#[must_use]
pub fn ignores_hang_up() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    ignored.is_some_and(|set| set & HANG_UP != 0)
}

/// SIGHUP in a set of signals.
const HANG_UP: u64 = 1;
