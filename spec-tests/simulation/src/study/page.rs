//! The pages of studies: the prose is written by hand, the tables and pictures by the program.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::findings::{Findings, Table};

/// The tables of a page are between these lines, one after the other.
const BEGIN: &str = "<!-- table -->";
const END: &str = "<!-- end -->";

/// A page and its pictures with the program's results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The files and their contents.
    pub files: Vec<(PathBuf, String)>,
}

/// Why a page cannot be created.
#[derive(Debug, Error)]
pub enum NotAPage {
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The page has another number of places for tables than the study has tables.
    #[error("{}: {tables} tables for {places} places, each between a line {BEGIN} and a line {END}", path.display())]
    Places {
        /// The page.
        path: PathBuf,
        /// The number.
        places: usize,
        /// The number.
        tables: usize,
    },
    /// A plot cannot be drawn.
    #[error("{}: {reason}", path.display())]
    Picture {
        /// The path.
        path: PathBuf,
        /// The drawing library's error.
        reason: String,
    },
}

impl Page {
    /// The page of a study in a folder: the present prose with the program's results.
    ///
    /// # Errors
    ///
    /// If the page does not exist, or has another number of places for tables.
    pub fn new(folder: &Path, name: &str, findings: &Findings) -> Result<Self, NotAPage> {
        let path = folder.join(name).with_extension("md");
        let text = fs::read_to_string(&path)
            .map_err(|source| NotAPage::File { path: path.clone(), source })?;
        let filled = fill(&text, &findings.tables).map_err(|places| NotAPage::Places {
            path: path.clone(),
            places,
            tables: findings.tables.len(),
        })?;
        let mut files = vec![(path, filled)];
        for plot in &findings.plots {
            let path = folder.join(&plot.name).with_extension("svg");
            let svg = plot.svg().map_err(|error| NotAPage::Picture {
                path: path.clone(),
                reason: error.to_string(),
            })?;
            files.push((path, svg));
        }
        Ok(Self { files })
    }

    /// The files that differ from the program's results.
    ///
    /// # Errors
    ///
    /// If an existing file cannot be read.
    pub fn outdated(&self) -> Result<Vec<&Path>, NotAPage> {
        let mut outdated = Vec::new();
        for (path, text) in &self.files {
            match fs::read_to_string(path) {
                Ok(found) if found == *text => {}
                Ok(_) => outdated.push(path.as_path()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    outdated.push(path.as_path());
                }
                Err(source) => return Err(NotAPage::File { path: path.clone(), source }),
            }
        }
        Ok(outdated)
    }

    /// Writes the files. Each is replaced only once the new contents are on disk.
    ///
    /// # Errors
    ///
    /// If a file cannot be written.
    pub fn write(&self) -> Result<(), NotAPage> {
        for (path, text) in &self.files {
            let written = replace(path, text);
            written.map_err(|source| NotAPage::File { path: path.clone(), source })?;
        }
        Ok(())
    }
}

/// Replaces a file atomically, and not at all if the disk is full.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    let replaced = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    replaced.inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// Puts the tables into their places. Returns the number of places if that is not the number of
/// tables.
fn fill(text: &str, tables: &[Table]) -> Result<String, usize> {
    let mut filled = String::with_capacity(text.len());
    let mut tables_left = tables.iter();
    let (mut places, mut is_inside) = (0, false);
    for line in text.lines() {
        if line == END {
            is_inside = false;
        }
        if !is_inside {
            filled.push_str(line);
            filled.push('\n');
        }
        if line == BEGIN {
            is_inside = true;
            places += 1;
            if let Some(table) = tables_left.next() {
                let _ = write!(filled, "\n{table}\n");
            }
        }
    }
    if places == tables.len() && !is_inside { Ok(filled) } else { Err(places) }
}
