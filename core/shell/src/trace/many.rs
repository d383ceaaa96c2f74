//! What a client is told about the traces of its pools.

use std::fs;
use std::path::{Path, PathBuf};

use cenote_core::address::ServerAddress;

use super::dump::dump;
use super::error::RecordingError;
use super::name::file_name;
use super::options::TraceOptions;
use super::pool::TracedPool;

/// What is recorded of each of several pools. By default nothing is.
#[derive(Debug, Default)]
pub struct ClientTraceOptions {
    /// Everything is recorded, in a file of this folder for each pool: [`file_name`].
    pub recordings: Option<PathBuf>,
    /// The rest, which is the same for all. A recording in it is of no pool.
    pub each: TraceOptions,
}

impl ClientTraceOptions {
    /// For the pool of the server at `address`. Makes the folder if need be.
    ///
    /// # Errors
    ///
    /// A folder that cannot be made.
    pub fn of_one(&self, address: &ServerAddress) -> Result<TraceOptions, RecordingError> {
        let Self { recordings, each } = self;
        let mut options = each.of_one();
        if let Some(folder) = recordings {
            fs::create_dir_all(folder).map_err(|error| RecordingError::file(folder, error))?;
            options.recording = Some(folder.join(file_name(address)).into());
        }
        Ok(options)
    }
}

/// [Dumps](dump) each of several pools into a file of this folder: [`file_name`]. Makes the folder if
/// need be.
///
/// # Errors
///
/// When there are no flight recorders, or the first file or folder that cannot be written.
pub fn dump_each<'p, P: TracedPool>(
    pools: impl IntoIterator<Item = (&'p ServerAddress, &'p P)>,
    folder: &Path,
) -> Result<(), RecordingError> {
    fs::create_dir_all(folder).map_err(|error| RecordingError::file(folder, error))?;
    pools.into_iter().try_for_each(|(address, pool)| dump(pool, &folder.join(file_name(address))))
}
