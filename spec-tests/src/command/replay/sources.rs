//! Which files are to be replayed, and what each is: the trace of a pool, or that of a topology.

use std::collections::btree_map::{BTreeMap, Entry};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cenote_core::trace::{self, format_of, topology};

use crate::command::Failure;
use crate::command::input::{at, beginning, expect_none, open};
use crate::command::output::{shown, tell};

/// The traces of a client, or one trace.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) topology: Option<PathBuf>,
    pub(super) pools: Vec<PathBuf>,
}

/// Why an option cannot be given.
pub(super) const NOT_OF_TOPOLOGY: &str =
    "does not apply to the trace of a topology: add the trace of a pool";

impl Sources {
    /// Refuses options that mean something for one pool alone, if there is none or there are several.
    pub(super) fn expect_none(&self, options: &[(&str, bool)]) -> Result<(), Failure> {
        match self.pools.len() {
            0 => expect_none(options, NOT_OF_TOPOLOGY),
            1 => Ok(()),
            _ => expect_none(options, "is for one pool: name its trace, and that of the topology"),
        }
    }

    /// Files, and the traces in folders.
    pub(super) fn find(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut sources = Self::default();
        for path in paths {
            if path.is_dir() {
                sources.add_folder(path)?;
            } else {
                if path == Path::new("-") && paths.len() > 1 {
                    return Err("- is one trace: name files, or a folder".into());
                }
                let format = format_of(&beginning(path)?);
                // What is neither is told when it is read.
                sources.add(path.clone(), format.unwrap_or(trace::FORMAT))?;
            }
        }
        Ok(sources)
    }

    /// A file that is named, and in a folder that is named, is one trace.
    fn add(&mut self, path: PathBuf, format: &str) -> Result<(), Failure> {
        if self.topology.as_ref() == Some(&path) || self.pools.contains(&path) {
            return Ok(());
        }
        if format != topology::FORMAT {
            self.pools.push(path);
            return Ok(());
        }
        match self.topology.replace(path.clone()) {
            None => Ok(()),
            Some(first) => Err(format!(
                "{} and {} are both traces of a topology: name one of them, with the pools of its client",
                first.display(),
                path.display()
            )
            .into()),
        }
    }

    /// The traces of one client: others in the folder are left out.
    fn add_folder(&mut self, folder: &Path) -> Result<(), Failure> {
        let entries = fs::read_dir(folder).map_err(at(folder))?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut paths: Vec<_> = paths.collect::<io::Result<_>>().map_err(at(folder))?;
        paths.retain(|path| path.extension().is_some_and(|it| it == "bson") && path.is_file());
        paths.sort();
        let before = self.pools.len();
        for path in newest(paths) {
            match format_of(&beginning(&path)?) {
                Some(format) => self.add(path, format)?,
                None => tell(format_args!("cenote: {}: no trace, left out", path.display())),
            }
        }
        if let Some(topology) = &self.topology {
            let origin = topology::Replay::new(open(topology)?).ok().map(|it| it.header().origin);
            let is_of_client = |path: &PathBuf| {
                let replay = open(path).ok().and_then(|file| trace::Replay::new(file).ok());
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
            return Err(at(folder)("a folder without a trace: files whose names end in .bson"));
        }
        Ok(())
    }
}

/// Of the dumps of a pool, or of a topology, the last that is not of the time after an episode, which may not reach back to it:
/// their names are `cenote-TIME-PROCESS-NUMBER-…`.
fn newest(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut newest: BTreeMap<String, PathBuf> = BTreeMap::new();
    for path in paths {
        let name = name(&path);
        let parts: Vec<_> = name.split('-').collect();
        let of = match parts[..] {
            ["cenote", _, process, number, ..] => format!("{process}-{number}"),
            _ => name.clone(),
        };
        let is_after = name.contains("-after-timeouts");
        let left_out = match newest.entry(of) {
            Entry::Occupied(entry) if is_after => Some((path, entry.get().clone())),
            Entry::Occupied(mut entry) => Some((entry.insert(path.clone()), path)),
            Entry::Vacant(entry) => {
                entry.insert(path);
                None
            }
        };
        if let Some((left_out, kept)) = left_out {
            let (left_out, kept) = (left_out.display(), self::name(&kept));
            tell(format_args!("cenote: {left_out}: {kept} is a dump of the same; left out"));
        }
    }
    newest.into_values().collect()
}

/// Of a file, without its folder.
pub(super) fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| shown(path), |name| shown(Path::new(name)))
}
