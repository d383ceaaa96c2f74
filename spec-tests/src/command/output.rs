//! Where what a command has to say goes: standard output, and files that it was told.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cenote_core::error::OneLine;
use cenote_replay::text::{self, span};
use terminal_size::{Width, terminal_size_of};

use super::Failure;

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

/// A number of milliseconds with three digits, in the unit that fits.
pub(super) fn milliseconds(milliseconds: f64) -> String {
    span(Duration::from_secs_f64(milliseconds.max(0.0) / 1e3))
}

/// The reader closed the pipe, as in `… | head`.
pub(super) fn has_seen_enough(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// What is written to one of these files destroys no other; each has the name of its option.
///
/// # Errors
///
/// The first two that are the same.
pub(super) fn expect_different(files: &[(&'static str, Option<&Path>)]) -> Result<(), Failure> {
    let places: Vec<_> =
        files.iter().filter_map(|&(name, path)| Some((name, place(path?)?))).collect();
    for (index, (second, path)) in places.iter().enumerate() {
        if let Some((first, _)) = places[..index].iter().find(|(_, other)| other == path) {
            let path = path.display();
            return Err(format!("{first} and {second} are one file, {path}: name two").into());
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

/// A text of paragraphs, as wide as the terminal.
pub(super) fn wrapped(text: &str) -> String {
    text::wrapped(text, width().unwrap_or(text::PAGE))
}

/// The columns of the terminal, if standard output is one.
fn width() -> Option<usize> {
    let (Width(width), _) = terminal_size_of(io::stdout())?;
    Some(usize::from(width).max(40))
}

/// Rows as lines, below a heading whose columns are separated by `|`: texts begin and numbers end below each other. The last
/// columns go where the terminal has no room for them.
pub(super) fn table(
    head: &str,
    rows: impl IntoIterator<Item = Vec<String>>,
    is_text: impl Fn(&str) -> bool,
) -> String {
    let names: Vec<_> = head.split('|').collect();
    let head = names.iter().map(|name| (*name).to_owned()).collect();
    let rows: Vec<Vec<String>> = [head].into_iter().chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let mut widths: Vec<_> = (0..names.len()).map(width).collect();
    let room = self::width().unwrap_or(usize::MAX);
    while widths.len() > 1 && widths.iter().sum::<usize>() + 2 * (widths.len() - 1) > room {
        widths.pop();
    }
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).zip(&names).map(|((cell, width), name)| {
            if is_text(name) { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", printable(line.trim_end()))
    };
    rows.iter().map(line).collect()
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
