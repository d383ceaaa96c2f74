//! Files that the library names itself. Each is created anew, for its owner alone and never through a link, so that what
//! others put into the folder is not written to.

use std::fs::{self, File, OpenOptions};
use std::io;
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

use super::error::RecordingError;
use super::reason::Reason;
use crate::runtime::origin::milliseconds_since_1970;

/// One that is named by the time at which it is created.
#[derive(Debug)]
pub(super) struct NewFile {
    folder: PathBuf,
    process: u32,
    /// What it is of.
    name: String,
    reason: Reason,
}

impl NewFile {
    pub(super) fn new(folder: &Path, name: &str, reason: Reason) -> Self {
        Self { folder: folder.to_owned(), process: process::id(), name: name.to_owned(), reason }
    }

    pub(super) fn create(&self) -> Result<(File, PathBuf), RecordingError> {
        self.create_at(milliseconds_since_1970())
    }

    /// Where there is something of that name, it gets that of the next millisecond.
    fn create_at(&self, milliseconds: i64) -> Result<(File, PathBuf), RecordingError> {
        let Self { folder, process, name, reason } = self;
        let mut paths = (milliseconds..).map(|time| {
            folder.join(format!("cenote-{}-{process}-{name}-{}.bson", utc(time), reason.as_str()))
        });
        let created = paths.find_map(|path| match create(&path) {
            Ok(file) => Some(Ok((file, path))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            Err(error) => Some(Err(RecordingError::file(&path, error))),
        });
        created.unwrap_or_else(|| unreachable!("there are always later times"))
    }
}

/// Removes what has this name first, if it is there.
pub(super) fn replace(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => create(path),
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(0o600);
    options.open(path)
}

/// `20260101T030712.286Z`: a time of the wall clock in a file name that sorts by it.
fn utc(milliseconds: i64) -> String {
    let text = bson::DateTime::from_millis(milliseconds).try_to_rfc3339_string();
    let text = text.unwrap_or_else(|_| milliseconds.to_string()).replace(['-', ':'], "");
    // bson omits a fraction of zero, and zeros at its end.
    let (seconds, fraction) = text.trim_end_matches('Z').split_once('.').unwrap_or((&text, ""));
    format!("{}.{fraction:0<3}Z", seconds.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_have_the_time_of_the_wall_clock() {
        for (milliseconds, name) in [
            (1_767_236_832_286, "20260101T030712.286Z"),
            (1_767_236_832_280, "20260101T030712.280Z"),
            (1_767_236_832_000, "20260101T030712.000Z"),
            (0, "19700101T000000.000Z"),
        ] {
            assert_eq!(utc(milliseconds), name);
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_others_have_put_there_is_left_alone() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = tempfile::tempdir().expect("a folder");
        let new = NewFile::new(folder.path(), "1", Reason::Request);
        let (_, first) = new.create_at(0).expect("a file");
        let path =
            |time: &str| PathBuf::from(first.to_str().expect("UTF-8").replace(".000Z", time));
        let target = folder.path().join("elsewhere");
        symlink(&target, path(".001Z")).expect("a link");
        let (file, second) = new.create_at(0).expect("a file");
        assert_eq!(second, path(".002Z"));
        let mode = file.metadata().expect("a file").permissions().mode();
        assert_eq!((mode & 0o777, target.exists()), (0o600, false));
        // Of a name that is always the same, the link goes and not what it leads to.
        fs::write(&target, "precious").expect("a file");
        replace(&path(".001Z")).expect("a file");
        assert_eq!(fs::read_to_string(&target).expect("a file"), "precious");
        assert!(!path(".001Z").is_symlink());
    }
}
