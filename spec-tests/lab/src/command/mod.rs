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
    let is_raised = Arc::new(AtomicBool::new(false));
    flag::register_conditional_shutdown(SIGINT, ENDED, Arc::clone(&is_raised))?;
    flag::register(SIGINT, Arc::clone(&is_raised))?;
    Ok(is_raised)
}

fn print(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{text}")?;
    out.flush()
}
