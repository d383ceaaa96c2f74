//! Recording what happens to a client's pools.

use std::path::Path;

use cenote_shell::trace::{RecordingError, dump_each};

use super::Client;

impl Client {
    /// Ends [the recordings](crate::ClientBuilder::record_into) of all pools and blocks until the traces are
    /// whole: [`Pool::end_recording`](crate::Pool::end_recording). Every one is ended, whatever becomes
    /// of the others.
    ///
    /// # Errors
    ///
    /// What kept the first of those that are not whole from being written.
    pub fn end_recording(&self) -> Result<(), RecordingError> {
        let mut outcome = Ok(());
        for server in self.inner.servers.iter() {
            outcome = outcome.and(server.pool.end_recording());
        }
        outcome
    }

    /// Writes what the [flight recorders](crate::ClientBuilder::flight_recorder) hold into files of this
    /// folder, with the servers' addresses for names, over what was there. The folder is made if need
    /// be. Blocks as [`Pool::dump_trace`](crate::Pool::dump_trace) does.
    ///
    /// # Errors
    ///
    /// When there are no flight recorders, or the first file or folder that cannot be written.
    pub fn dump_traces(&self, folder: impl AsRef<Path>) -> Result<(), RecordingError> {
        let servers = self.inner.servers.iter();
        let pools = servers.map(|server| (server.pool.address(), &**server.pool.shared()));
        dump_each(pools, folder.as_ref())
    }
}
