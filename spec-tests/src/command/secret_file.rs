//! Arguments that hold a password and come from a file: other users see the arguments of a process.

use std::io::{self, Read};
use std::path::Path;

/// The first line of a file, or of standard input for `-`.
pub(super) fn first_line(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    if path == Path::new("-") {
        io::stdin().read_to_string(&mut text)?;
    } else {
        text = std::fs::read_to_string(path)?;
    }
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
