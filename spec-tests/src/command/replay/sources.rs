//! Which files are to be replayed, and what each is: the trace of a pool, or that of a topology.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cenote_core::trace::{self, FORMAT_BYTES, format_of, topology};

use super::{Unplayable, open};
use crate::command::output::{shown, tell};

/// The traces of a client, or one trace.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) topology: Option<PathBuf>,
    pub(super) pools: Vec<PathBuf>,
    /// What was read of standard input to know what it is.
    pub(super) beginning: Vec<u8>,
}

impl Sources {
    /// Files, and the traces in folders.
    pub(super) fn find(paths: &[PathBuf]) -> Result<Self, Unplayable> {
        let mut sources = Self::default();
        for path in paths {
            if path.is_dir() {
                sources.add_folder(path)?;
            } else {
                let is_standard_input = path == Path::new("-");
                if is_standard_input && paths.len() > 1 {
                    return Err(Unplayable::StandardInput);
                }
                let beginning = beginning(path)?;
                let format = format_of(&beginning);
                if is_standard_input {
                    sources.beginning = beginning;
                }
                // What is neither is told when it is read.
                sources.add(path.clone(), format.unwrap_or(trace::FORMAT))?;
            }
        }
        Ok(sources)
    }

    /// A file that is named, and in a folder that is named, is one trace.
    fn add(&mut self, path: PathBuf, format: &str) -> Result<(), Unplayable> {
        if self.topology.as_ref() == Some(&path) || self.pools.contains(&path) {
            return Ok(());
        }
        if format != topology::FORMAT {
            self.pools.push(path);
            return Ok(());
        }
        match self.topology.replace(path.clone()) {
            None => Ok(()),
            Some(first) => Err(Unplayable::Topologies { first, second: path }),
        }
    }

    /// The traces of one client: others in the folder are left out.
    fn add_folder(&mut self, folder: &Path) -> Result<(), Unplayable> {
        let unreadable = |source| Unplayable::File { path: folder.to_owned(), source };
        let entries = fs::read_dir(folder).map_err(unreadable)?;
        let mut paths: Vec<_> = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()
            .map_err(unreadable)?;
        paths.retain(|path| path.extension().is_some_and(|it| it == "bson") && path.is_file());
        paths.sort();
        let before = self.pools.len();
        for path in paths {
            match format_of(&beginning(&path)?) {
                Some(format) => self.add(path, format)?,
                None => tell(format_args!("cenote: {}: no trace, left out", path.display())),
            }
        }
        if let Some(topology) = &self.topology {
            let origin =
                topology::Replay::new(open_file(topology)?).ok().map(|it| it.header().origin);
            let is_of_client = |path: &PathBuf| {
                let replay = open_file(path).ok().and_then(|file| trace::Replay::new(file).ok());
                // What cannot be read says so when it is.
                let its = replay.map(|it| it.header().origin);
                let is_other = origin.zip(its).is_some_and(|(origin, its)| origin != its);
                if is_other {
                    let client = shown(topology);
                    tell(format_args!(
                        "cenote: {}: recorded by another client than {client}, left out",
                        path.display()
                    ));
                }
                !is_other
            };
            let found = self.pools.split_off(before);
            self.pools.extend(found.into_iter().filter(is_of_client));
        }
        if self.pools.len() == before && self.topology.is_none() {
            return Err(Unplayable::NoTraces { path: folder.to_owned() });
        }
        Ok(())
    }
}

/// As many bytes as tell what it is, if there are so many.
fn beginning(path: &Path) -> Result<Vec<u8>, Unplayable> {
    let unreadable = |source| Unplayable::File { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let mut source = open(path, &[])?.take(FORMAT_BYTES as u64);
    source.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn open_file(path: &Path) -> Result<File, Unplayable> {
    File::open(path).map_err(|source| Unplayable::File { path: path.to_owned(), source })
}
