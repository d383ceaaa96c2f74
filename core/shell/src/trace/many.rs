//! What a client is told about the traces of its pools.

use std::fs;
use std::path::PathBuf;

use cenote_core::address::ServerAddress;

use super::error::RecordingError;
use super::name::file_name;
use super::options::TraceOptions;

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
