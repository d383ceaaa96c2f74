//! Files that a command reads, and what is said of those that it cannot read or write.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::Failure;

/// A file, or standard input for `-`.
pub(super) fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(File::open(path).map_err(at(path))?))
}

/// The first line of a file, or of standard input for `-`: for passwords, because other users see the arguments of a
/// process.
pub(super) fn first_line(path: &Path) -> Result<String, Failure> {
    let first = BufReader::new(open(path)?).lines().next();
    Ok(first.transpose().map_err(at(path))?.unwrap_or_default())
}

/// An error with the file that it is about.
pub(super) fn at<E: Display>(path: &Path) -> impl Fn(E) -> Failure {
    move |error| format!("{}: {error}", path.display()).into()
}
