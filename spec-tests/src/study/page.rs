//! The pages of studies: prose by people, tables and pictures by the program.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::findings::{Findings, Table};

/// Between these lines a page has tables of ours, one after the other.
const BEGIN: &str = "<!-- table -->";
const END: &str = "<!-- end -->";

/// A page and its pictures, as the program would have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Each file and what it has to say.
    pub files: Vec<(PathBuf, String)>,
}

/// Why there is no page.
#[derive(Debug, Error)]
pub enum NotAPage {
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The places for tables are not as many as the tables.
    #[error("{}: {tables} tables for {places} places, each between a line {BEGIN} and a line {END}", path.display())]
    Places {
        /// The page.
        path: PathBuf,
        /// As many as there are.
        places: usize,
        /// As many as there are.
        tables: usize,
    },
    /// It cannot be drawn.
    #[error("{}: {reason}", path.display())]
    Picture {
        /// Where it should be.
        path: PathBuf,
        /// What the drawing library says.
        reason: String,
    },
}

impl Page {
    /// What the page of a study in a folder has to be, its prose as it is there.
    ///
    /// # Errors
    ///
    /// There is no such page, or it has not as many places as there are tables.
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

    /// Which of the files is not as it has to be.
    ///
    /// # Errors
    ///
    /// A file that is there and cannot be read.
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

    /// Writes them. What was there stays until all that takes its place is on the disk.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn write(&self) -> Result<(), NotAPage> {
        for (path, text) in &self.files {
            let written = replace(path, text);
            written.map_err(|source| NotAPage::File { path: path.clone(), source })?;
        }
        Ok(())
    }
}

/// In one step, and not at all if there is no room for it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    let replaced = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    replaced.inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// The text with the tables in their places; otherwise how many places there are.
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
