//! The trace of a run, and the page that shows it.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::TempDir;

use super::Trouble;
use super::arguments::Plan;
use crate::command::replay::{Unplayable, page};

/// Where a run is recorded.
pub(super) struct Record {
    trace: PathBuf,
    page: Option<PathBuf>,
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
    pub(super) fn begin(plan: &Plan) -> Result<Option<Self>, Trouble> {
        let page = plan.html.clone();
        if let Some(path) = &page {
            File::create(path).map_err(|source| Unplayable::File { path: path.clone(), source })?;
        }
        match (&plan.trace, &page) {
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
    pub(super) fn finish(self) -> Result<Recorded, Trouble> {
        let Self { trace, page: html, folder } = self;
        let steps = html.as_deref().map(|html| page(&trace, html)).transpose()?;
        let trace = folder.is_none().then_some(trace);
        Ok(Recorded { trace, page: html, steps })
    }
}
