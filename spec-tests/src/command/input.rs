//! Files that a command reads, and what is said of those that it cannot read or write.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cenote_core::trace::FORMAT_BYTES;

use super::Failure;

pub(super) type Source = Box<dyn Read + Send>;

/// A file, or standard input for `-`.
pub(super) fn open(path: &Path) -> Result<Source, Failure> {
    if let Some(source) = looked_at().remove(path) {
        return Ok(source);
    }
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(File::open(path).map_err(at(path))?))
}

/// The first bytes, as many as tell the format of a trace, if there are so many. [`open`] reads them again.
pub(super) fn beginning(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut source = open(path)?;
    let mut bytes = Vec::new();
    source.by_ref().take(FORMAT_BYTES as u64).read_to_end(&mut bytes).map_err(at(path))?;
    if path == Path::new("-") || !path.is_file() {
        let whole = Cursor::new(bytes.clone()).chain(source);
        looked_at().insert(path.to_owned(), Box::new(whole));
    }
    Ok(bytes)
}

/// Whether it is a trace, and not the events or the log of a pool. A trace is BSON: the fourth byte of its length is 0.
pub(super) fn is_trace(path: &Path) -> Result<bool, Failure> {
    Ok(beginning(path)?.iter().take(4).any(|byte| *byte == 0))
}

/// Standard input and pipes, of which the beginning was read: they can be read only once.
fn looked_at() -> MutexGuard<'static, BTreeMap<PathBuf, Source>> {
    static LOOKED_AT: Mutex<BTreeMap<PathBuf, Source>> = Mutex::new(BTreeMap::new());
    LOOKED_AT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first line of a file, or of standard input for `-`: for passwords, because other users see the arguments of a
/// process.
pub(super) fn first_line(path: &Path) -> Result<String, Failure> {
    let first = BufReader::new(open(path)?).lines().next();
    Ok(first.transpose().map_err(at(path))?.unwrap_or_default())
}

/// Refuses the first of these options that is given; each has its name, and whether it is.
pub(super) fn expect_none(options: &[(&str, bool)], why: &str) -> Result<(), Failure> {
    let given = options.iter().find(|(_, is_given)| *is_given);
    given.map_or(Ok(()), |(option, _)| Err(format!("{option} {why}").into()))
}

/// An error with the file that it is about.
pub(super) fn at<E: Display>(path: &Path) -> impl Fn(E) -> Failure {
    move |error| format!("{}: {error}", path.display()).into()
}
