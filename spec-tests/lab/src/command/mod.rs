//! The commands of `cenote-lab`.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;
use signal_hook::flag;

pub mod explore;
pub mod simulate;

/// What the exit status of a program says that Ctrl-C has ended.
const ENDED: i32 = 130;

/// From now on Ctrl-C ends the work and not the process: it raises this flag. A second one ends the process.
fn interrupts() -> io::Result<Arc<AtomicBool>> {
    // First of all: from here on the signal no longer ends the process, and one that comes between two of these
    // lines must not be lost.
    let is_raised = Arc::new(AtomicBool::new(false));
    flag::register(SIGINT, Arc::clone(&is_raised))?;
    // A flag of its own, since one handler runs after the other and the first signal must not end the process.
    let is_second = Arc::new(AtomicBool::new(false));
    flag::register_conditional_shutdown(SIGINT, ENDED, Arc::clone(&is_second))?;
    flag::register(SIGINT, is_second)?;
    Ok(is_raised)
}

fn print(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{text}")?;
    out.flush()
}
