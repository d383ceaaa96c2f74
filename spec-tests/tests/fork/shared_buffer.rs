//! Traces in memory.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use cenote_core::trace::Replay;

/// A writer whose content can be read.
#[derive(Clone, Default)]
pub(crate) struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl SharedBuffer {
    pub(crate) fn inputs(&self) -> Vec<&'static str> {
        inputs(&self.0.lock().expect("no panic"))
    }
}

/// The names of the inputs of a trace, which replays as it was recorded.
pub(crate) fn inputs(trace: &[u8]) -> Vec<&'static str> {
    let mut replay = Replay::new(trace).expect("a trace");
    let next = || replay.step(&mut |_| {}).expect("it goes the way it went");
    std::iter::from_fn(next).map(|step| step.input.name()).collect()
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
