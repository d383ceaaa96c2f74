//! The trace of a run, and the page that shows it.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::TempDir;

use super::arguments::Plan;
use super::timeline::Timeline;
use crate::command::Failure;
use crate::command::input::at;
use crate::command::replay::page;

/// Where a run is recorded.
pub(super) struct Record {
    trace: PathBuf,
    page: Option<Page>,
    /// Of a trace that is only for the page, and goes with it.
    folder: Option<TempDir>,
}

/// What there is of it in the end.
#[derive(Debug, Serialize)]
pub(super) struct Recorded {
    /// The trace, if it was asked for.
    pub(super) trace: Option<PathBuf>,
    /// The page that shows it, if one was asked for.
    pub(super) page: Option<PathBuf>,
    /// How many steps the page shows: each was done again, and went as it did.
    pub(super) steps: Option<u64>,
}

impl Record {
    /// If there is to be one. A page that cannot be written is refused before the work begins.
    pub(super) fn begin(plan: &Plan<'_>) -> Result<Option<Self>, Failure> {
        let page = plan.arguments.html.as_deref().map(Page::begin).transpose()?;
        match (&plan.arguments.trace, &page) {
            (None, None) => Ok(None),
            (Some(trace), _) => Ok(Some(Self { trace: trace.clone(), page, folder: None })),
            (None, Some(_)) => {
                let folder = TempDir::with_prefix("cenote-")?;
                let trace = folder.path().join("trace.bson");
                Ok(Some(Self { trace, page, folder: Some(folder) }))
            }
        }
    }

    /// For the pool.
    pub(super) fn trace(&self) -> &Path {
        &self.trace
    }

    /// Draws the trace, once it is whole.
    pub(super) fn finish(self, timeline: &Timeline) -> Result<Recorded, Failure> {
        let Self { trace, page: drawn, folder } = self;
        let (html, steps) = match drawn {
            Some(drawn) => {
                let steps = page(&trace, &drawn.path, timeline.faults())?;
                (Some(drawn.done()), Some(steps))
            }
            None => (None, None),
        };
        let trace = folder.is_none().then_some(trace);
        Ok(Recorded { trace, page: html, steps })
    }
}

/// Where a page is to be. Dropped before it is [done](Self::done), it leaves no empty file behind.
struct Page {
    path: PathBuf,
    /// There was none.
    is_new: bool,
}

impl Page {
    /// What is there already stays as it is until there is something to be drawn.
    fn begin(path: &Path) -> Result<Self, Failure> {
        let mut file = OpenOptions::new();
        let is_new = match file.write(true).create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                file.create_new(false).open(path).map(|_| false)
            }
            opened => opened.map(|_| true),
        };
        Ok(Self { path: path.to_owned(), is_new: is_new.map_err(at(path))? })
    }

    fn done(mut self) -> PathBuf {
        self.is_new = false;
        std::mem::take(&mut self.path)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if self.is_new {
            // It may have been removed already.
            let _ = fs::remove_file(&self.path);
        }
    }
}
