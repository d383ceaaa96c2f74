//! What is written on, and how it is read.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use cenote_core::trace::{Replay, Step};

/// Memory that can be read while it is written.
#[derive(Clone, Default)]
pub(crate) struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl SharedBuffer {
    pub(crate) fn read(&self) -> Vec<u8> {
        self.0.lock().expect("no panic").clone()
    }
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Fails, or panics, as soon as it is used.
pub(crate) struct Broken {
    pub(crate) panics: bool,
}

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        if self.panics {
            // Quietly: a panic with a payload and no message.
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        Err(io::Error::other("no space left"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Does not come back before it is let go.
pub(crate) struct Slow(pub(crate) Receiver<()>, pub(crate) SharedBuffer);

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// All steps of a trace, which must replay to its end as it was recorded.
pub(crate) fn steps(trace: &[u8]) -> Vec<Step> {
    let mut replay = Replay::new(trace).expect("a trace");
    let mut steps = Vec::new();
    while let Some(step) = replay.step(&mut |_| {}).expect("it goes the way it went") {
        steps.push(step);
    }
    steps
}

/// The inputs, without what only some pools are told.
pub(crate) fn life(trace: &[u8]) -> Vec<&'static str> {
    let names = steps(trace).into_iter().map(|step| step.input.name());
    names.filter(|name| !matches!(*name, "Timer" | "Handshaken")).collect()
}

/// The same of a trace that is still being written.
pub(crate) fn begun_life(trace: &[u8]) -> Vec<&'static str> {
    let Ok(mut replay) = Replay::new(trace) else { return Vec::new() };
    let mut step = || replay.step(&mut |_| {}).ok().flatten();
    let names = std::iter::from_fn(|| step().map(|step| step.input.name()));
    names.filter(|name| !matches!(*name, "Timer" | "Handshaken")).collect()
}

/// The dumps of a folder whose name ends so.
pub(crate) fn dumps(folder: &Path, reason: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let ends = |path: &PathBuf| path.to_str().is_some_and(|name| name.ends_with(reason));
    files.filter(ends).collect()
}
