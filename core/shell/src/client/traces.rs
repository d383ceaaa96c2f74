//! Settings for traces.

use std::path::PathBuf;
use std::time::Duration;

use cenote_core::trace::Disclosure;

use super::{BuiltClient, ClientBuilder};

impl<C: BuiltClient> ClientBuilder<C> {
    /// Records every input of each pool, as [`Builder::record`](crate::builder::Builder::record) does, in a
    /// file of this folder that is named by the server's address: `db.example.com-27017.bson`; the second pool
    /// of a server that went and came back in `db.example.com-27017.2.bson`. What the servers said, which
    /// there were, and which requests for a server had to wait, is recorded in `topology.bson`, on the same
    /// clock. Creates the folder if necessary, and overwrites existing traces. `Client::end_recording` waits
    /// until they are complete.
    #[must_use]
    pub fn record_into(mut self, folder: impl Into<PathBuf>) -> Self {
        self.0.tracing.recordings = Some(folder.into());
        self
    }

    /// Keeps the last inputs of each pool, and those of the topology, in this many bytes of memory each:
    /// [`Builder::flight_recorder`](crate::builder::Builder::flight_recorder).
    #[must_use]
    pub fn flight_recorder(mut self, bytes: usize) -> Self {
        self.0.tracing.each.flight_recorder = Some(bytes);
        self
    }

    /// Writes the flight recorder of a pool into a file of this folder when something goes wrong in it:
    /// [`Builder::dump_traces_into`](crate::builder::Builder::dump_traces_into). At the first panic that of the
    /// topology is written, too.
    #[must_use]
    pub fn dump_traces_into(mut self, folder: impl Into<PathBuf>) -> Self {
        self.0.tracing.each.folder = Some(folder.into());
        self
    }

    /// What is an episode of timeouts:
    /// [`Builder::episode_pause`](crate::builder::Builder::episode_pause).
    #[must_use]
    pub fn episode_pause(mut self, pause: Duration) -> Self {
        self.0.tracing.each.episode_pause = Some(pause);
        self
    }

    /// Does so for every pool and for the topology, too, whenever the process receives this signal:
    /// [`Builder::dump_on_signal`](crate::builder::Builder::dump_on_signal).
    #[must_use]
    pub fn dump_on_signal(mut self, signal: i32) -> Self {
        self.0.tracing.each.signal = Some(signal);
        self
    }

    /// What traces contain of the texts of errors and of servers' addresses:
    /// [`Builder::trace_disclosure`](crate::builder::Builder::trace_disclosure). The names of files from
    /// [`record_into`](Self::record_into) contain the address all the same. Names of replica sets and tags are told
    /// as they are.
    #[must_use]
    pub fn trace_disclosure(mut self, texts: Disclosure, addresses: Disclosure) -> Self {
        self.0.tracing.each.texts = texts;
        self.0.tracing.each.addresses = addresses;
        self
    }
}
