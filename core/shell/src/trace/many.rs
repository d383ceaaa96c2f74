//! What a client is told about the traces of its pools.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cenote_core::address::ServerAddress;

use super::dump::dump_anew;
use super::error::RecordingError;
use super::name::{TOPOLOGY, file_name, file_name_of};
use super::options::TraceOptions;
use super::recording::Recording;
use super::traced::Traced;

/// What is recorded of a client: of each of its pools, and of its topology. By default nothing is.
#[derive(Debug, Default)]
pub struct ClientTraceOptions {
    /// Everything is recorded, in a file of this folder for each pool: [`file_name`], and in [`TOPOLOGY`].
    pub recordings: Option<PathBuf>,
    /// The rest, which is the same for all. A recording in it is of no pool.
    pub each: TraceOptions,
    /// How many pools of each server were recorded.
    pub(super) pools: Mutex<BTreeMap<ServerAddress, u32>>,
}

impl ClientTraceOptions {
    /// For the next pool of the server at `address`. Makes the folder if need be.
    ///
    /// # Errors
    ///
    /// A folder that cannot be made.
    pub fn of_one(&self, address: &ServerAddress) -> Result<TraceOptions, RecordingError> {
        let number = self.recordings.as_ref().map_or(1, |_| self.count(address));
        self.in_file(&file_name_of(address, number))
    }

    /// For the topology. Makes the folder if need be.
    ///
    /// # Errors
    ///
    /// A folder that cannot be made.
    pub fn of_topology(&self) -> Result<TraceOptions, RecordingError> {
        self.in_file(TOPOLOGY)
    }

    /// The number of the pool among those of this server.
    fn count(&self, address: &ServerAddress) -> u32 {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let number = pools.entry(address.clone()).or_default();
        *number += 1;
        *number
    }

    fn in_file(&self, name: &str) -> Result<TraceOptions, RecordingError> {
        let Self { recordings, each, pools: _ } = self;
        let mut options = each.of_one();
        if let Some(folder) = recordings {
            fs::create_dir_all(folder).map_err(|error| RecordingError::file(folder, error))?;
            options.recording = Some(Recording::to_new_file(folder.join(name)));
        }
        Ok(options)
    }
}

/// [Dumps](super::dump()) each of several pools, and the topology, into a file of this folder: [`file_name`] and [`TOPOLOGY`].
/// Makes the folder if need be.
///
/// # Errors
///
/// When there are no flight recorders, or the first file or folder that cannot be written.
pub fn dump_each<'p, P: Traced>(
    pools: impl IntoIterator<Item = (&'p ServerAddress, &'p P)>,
    topology: &impl Traced,
    folder: &Path,
) -> Result<(), RecordingError> {
    fs::create_dir_all(folder).map_err(|error| RecordingError::file(folder, error))?;
    let dump_pool = |(address, pool)| dump_anew(pool, &folder.join(file_name(address)));
    pools.into_iter().try_for_each(dump_pool)?;
    dump_anew(topology, &folder.join(TOPOLOGY))
}
