//! Test files in a folder.

use std::path::{Path, PathBuf};

use crate::document::is_yaml;
use crate::error::Unreadable;

/// The file itself, or all files in the folder and the folders below it that are JSON, or YAML
/// without a JSON file of the same name, in the order of their names.
///
/// # Errors
///
/// If a folder cannot be read.
pub fn test_files(path: &Path) -> Result<Vec<PathBuf>, Unreadable> {
    let unreadable = |source| Unreadable::Io { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = std::fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .map_err(unreadable)?;
    entries.retain(|entry| entry.is_dir() || is_test(entry));
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        files.extend(test_files(&entry)?);
    }
    Ok(files)
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
