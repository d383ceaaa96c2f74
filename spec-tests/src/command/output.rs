//! Where what a command has to say goes: standard output, and files that it was told.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cenote_core::error::OneLine;
use thiserror::Error;

/// Prints. A [closed pipe](has_seen_enough) is no error.
///
/// # Errors
///
/// When it cannot be written, as on a full disk.
pub(super) fn print(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if !has_seen_enough(&error) => {
            Err(io::Error::new(error.kind(), format!("cannot print: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes a line to standard error, without what could affect a terminal. Errors of that are
/// ignored.
pub(super) fn tell(line: impl Display) {
    let line = line.to_string();
    let _ = writeln!(io::stderr(), "{}", printable(&line));
}

/// A text that may be from a file, a server or a command line, as a line for a terminal.
pub(super) const fn printable(text: &str) -> OneLine<'_> {
    OneLine::with_limit(text, LINE_MAX)
}

/// Longer than any path.
const LINE_MAX: usize = 5000;

/// A path for a terminal.
pub(super) fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy()).to_string()
}

/// The reader closed the pipe, as in `… | head`.
pub(super) fn has_seen_enough(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Two files that a command was told of are one.
#[derive(Debug, Error)]
#[error("{first} and {second} are one file, {}: name two", path.display())]
pub struct SameFile {
    first: &'static str,
    second: &'static str,
    path: PathBuf,
}

/// What is written to one of these files destroys no other; each has the name of its option.
///
/// # Errors
///
/// The first two that are the same.
pub(super) fn expect_different(files: &[(&'static str, Option<&Path>)]) -> Result<(), SameFile> {
    let places: Vec<_> =
        files.iter().filter_map(|&(name, path)| Some((name, place(path?)?))).collect();
    for (index, (second, path)) in places.iter().enumerate() {
        if let Some((first, _)) = places[..index].iter().find(|(_, other)| other == path) {
            return Err(SameFile { first, second, path: path.clone() });
        }
    }
    Ok(())
}

/// Where it is, or will be; `None` if it is no file, such as standard input or a device.
fn place(path: &Path) -> Option<PathBuf> {
    if path == Path::new("-") {
        return None;
    }
    if let Ok(there) = fs::canonicalize(path) {
        return there.is_file().then_some(there);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
    Some(folder.join(path.file_name()?))
}

/// A word for a shell: in quotes if it has to be.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+:@%,=".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_many_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        fs::write(&old, "").expect("a file");
        let around = folder.path().join("../").join(folder.path().file_name().expect("a name"));
        let check = |first: &Path, second: &Path| {
            let files = [("--a", Some(first)), ("--b", None), ("--c", Some(second))];
            expect_different(&files).map_err(|same| same.to_string())
        };
        assert_eq!(check(&old, &new), Ok(()));
        for (first, second) in [(&old, around.join("old")), (&new, around.join("new"))] {
            let said = check(first, &second).expect_err("they are the same");
            assert!(said.starts_with("--a and --c are one file, "), "{said}");
        }
        for many in ["-", "/dev/null"] {
            assert_eq!(check(Path::new(many), Path::new(many)), Ok(()));
        }
    }

    #[test]
    fn a_shell_reads_the_word_as_it_is() {
        assert_eq!(quoted("/tmp/events.jsonl"), "/tmp/events.jsonl");
        assert_eq!(quoted("it's mine"), r"'it'\''s mine'");
        assert_eq!(quoted(""), "''");
    }
}
