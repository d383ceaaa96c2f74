//! Recording what happens to a client's pools.

use std::fs;
use std::path::{Path, PathBuf};

use cenote_core::trace::Disclosure;
use cenote_shell::trace::{RecordingError, file_name};

use super::{Client, ClientBuilder};

impl ClientBuilder {
    /// Records everything that goes into each pool, as [`Builder::record`](crate::Builder::record)
    /// does, in a file of this folder with the server's address for a name:
    /// `db.example.com-27017.bson`. The folder is made if need be; traces that were there are
    /// overwritten. [`Client::end_recording`] waits until they are whole.
    #[must_use]
    pub fn record_into(mut self, folder: impl Into<PathBuf>) -> Self {
        self.tracing.recordings = Some(folder.into());
        self
    }

    /// Keeps the last inputs of each pool in so many bytes of memory:
    /// [`Builder::flight_recorder`](crate::Builder::flight_recorder).
    #[must_use]
    pub fn flight_recorder(mut self, bytes: usize) -> Self {
        self.tracing.each.flight_recorder = Some(bytes);
        self
    }

    /// Writes what the flight recorder of a pool holds into a file of this folder, when something goes
    /// wrong in it: [`Builder::dump_traces_into`](crate::Builder::dump_traces_into).
    #[must_use]
    pub fn dump_traces_into(mut self, folder: impl Into<PathBuf>) -> Self {
        self.tracing.each.folder = Some(folder.into());
        self
    }

    /// Does so for every pool, too, whenever the process gets this signal:
    /// [`Builder::dump_on_signal`](crate::Builder::dump_on_signal).
    #[must_use]
    pub fn dump_on_signal(mut self, signal: i32) -> Self {
        self.tracing.each.signal = Some(signal);
        self
    }

    /// What traces say of the texts of errors and of servers' addresses:
    /// [`Builder::trace_disclosure`](crate::Builder::trace_disclosure). The names of files that
    /// [`record_into`](Self::record_into) makes hold the address all the same.
    #[must_use]
    pub fn trace_disclosure(mut self, texts: Disclosure, addresses: Disclosure) -> Self {
        self.tracing.each.texts = texts;
        self.tracing.each.addresses = addresses;
        self
    }
}

impl Client {
    /// Ends [the recordings](ClientBuilder::record_into) of all pools and blocks until the traces are
    /// whole: [`Pool::end_recording`](crate::Pool::end_recording). Every one is ended, whatever becomes
    /// of the others.
    ///
    /// # Errors
    ///
    /// What kept the first of those that are not whole from being written.
    pub fn end_recording(&self) -> Result<(), RecordingError> {
        let mut outcome = Ok(());
        for server in &self.inner.servers {
            outcome = outcome.and(server.pool.end_recording());
        }
        outcome
    }

    /// Writes what the [flight recorders](ClientBuilder::flight_recorder) hold into files of this
    /// folder, with the servers' addresses for names, over what was there. The folder is made if need
    /// be. Blocks as [`Pool::dump_trace`](crate::Pool::dump_trace) does.
    ///
    /// # Errors
    ///
    /// When there are no flight recorders, or the first file or folder that cannot be written.
    pub fn dump_traces(&self, folder: impl AsRef<Path>) -> Result<(), RecordingError> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder).map_err(|error| RecordingError::file(folder, error))?;
        for server in &self.inner.servers {
            server.pool.dump_trace(folder.join(file_name(server.pool.address())))?;
        }
        Ok(())
    }
}
