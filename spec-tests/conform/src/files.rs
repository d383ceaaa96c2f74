//! Test files in a folder.

use std::path::{Path, PathBuf};

use crate::document::is_yaml;
use crate::error::Unreadable;

/// The file itself, or all files in the folder and the folders below it that are JSON, or YAML
/// without a JSON file of the same name, in the order of their names. Symbolic links to folders are not
/// followed.
///
/// # Errors
///
/// If a folder cannot be read.
pub fn test_files(path: &Path) -> Result<Vec<PathBuf>, Unreadable> {
    let unreadable = |reason| Unreadable::Io { path: path.to_owned(), reason };
    if !std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    collect(path, &mut files)?;
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Unreadable> {
    let entries = std::fs::read_dir(folder).and_then(|entries| {
        let typed =
            entries.map(|entry| entry.and_then(|it| Ok((it.path(), it.file_type()?.is_dir()))));
        typed.collect::<Result<Vec<_>, _>>()
    });
    let mut entries =
        entries.map_err(|reason| Unreadable::Io { path: folder.to_owned(), reason })?;
    entries.sort();
    for (path, is_folder) in entries {
        if is_folder {
            collect(&path, files)?;
        } else if is_test(&path) && !path.is_dir() {
            files.push(path);
        }
    }
    Ok(())
}

/// As [`test_files`], but there must be one.
///
/// # Errors
///
/// If a folder cannot be read, or there is no test file in it.
pub fn some_test_files(path: &Path) -> Result<Vec<PathBuf>, Unreadable> {
    let files = test_files(path)?;
    if files.is_empty() {
        let reason = "there is no test file in it, JSON or YAML".to_owned();
        return Err(Unreadable::Format { path: path.to_owned(), line: None, reason });
    }
    Ok(files)
}

fn is_test(file: &Path) -> bool {
    let is_json = |file: &Path| file.extension().is_some_and(|end| end == "json");
    is_json(file) || (is_yaml(file) && !file.with_extension("json").is_file())
}
