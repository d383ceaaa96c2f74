//! What a builder is told about traces.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use cenote_core::address::ServerAddress;
use cenote_core::pool::PoolState;
use cenote_core::trace::{Disclosure, Recorder, TraceInfo};

use super::clerk::Clerk;
use super::error::RecordingError;
use super::recording::Recording;
use super::traces::Traces;
use crate::builder::Builder;
use crate::connector::Connector;
use crate::desk::Tokio;

/// See the module.
#[derive(Default)]
pub(crate) struct Tracing {
    recording: Option<Recording>,
    flight_recorder: Option<usize>,
    folder: Option<PathBuf>,
    texts: Disclosure,
    addresses: Disclosure,
}

/// For [`Builder::dump_traces_into`] when nothing else was said.
const FLIGHT_RECORDER: usize = 1 << 20;

impl<K: Connector> Builder<K> {
    /// Records everything that goes into the pool's machine, from the first input on: a path, or a
    /// [`Recording`]. `cenote replay` and [`cenote_core::trace::Replay`] play it again.
    ///
    /// It never holds credentials or payloads; what becomes of the address and of the texts of
    /// errors, [`trace_disclosure`](Self::trace_disclosure) says. The clock is read for each input.
    /// Whoever uses the pool copies some bytes under its lock and never waits for the disk: a thread
    /// of its own writes. If that does not keep up, memory stays
    /// [bounded](cenote_core::trace::JournalOptions::backlog), and the trace tells of the gap. When
    /// writing fails, the recording ends, with a warning through `tracing`, and the pool goes on.
    ///
    /// The trace is whole when [`Pool::end_recording`](crate::Pool::end_recording) says so, or when
    /// the last handle, the last connection and the runtime are gone; that waits for the disk, for
    /// five seconds at most. Until then a reader finds all but the last second of it. In a child
    /// process that was [forked](crate::Pool::reset_after_fork) nothing is recorded.
    #[must_use]
    pub fn record(mut self, recording: impl Into<Recording>) -> Self {
        self.tracing.recording = Some(recording.into());
        self
    }

    /// Keeps the last inputs in so many bytes of memory, for
    /// [`Pool::dump_trace`](crate::Pool::dump_trace). A warm check-out and check-in take 18 bytes,
    /// half of the memory is looked back on at least, and an eighth more is used for texts. Nothing
    /// allocates in doing so.
    ///
    /// Times are those that the pool was given: where nothing depends on them (no idle time, no limit
    /// for waiting, no subscriber), a check-out that is served at once and a check-in have the time of
    /// what was before, for to read the clock would cost more than all the rest. Whatever else happens
    /// has its own.
    #[must_use]
    pub fn flight_recorder(mut self, bytes: usize) -> Self {
        self.tracing.flight_recorder = Some(bytes);
        self
    }

    /// Writes what the flight recorder holds into a file of this folder, by itself, when something
    /// goes wrong: the first time that somebody waits in vain for a connection
    /// (`waitQueueTimeoutMS` or a deadline of his own; [`Pool::try_check_out`](crate::Pool::try_check_out)
    /// does not wait), and at the first panic, of whatever thread of the process.
    ///
    /// The folder is made if need be. Files are called `cenote-TIME-PROCESS-POOL-wait-queue-timeout.bson`
    /// and `cenote-TIME-PROCESS-POOL-panic.bson`, with milliseconds since 1970, the number of the process
    /// and that of the pool in it. Without a [flight recorder](Self::flight_recorder) there is one of
    /// 1 MiB.
    ///
    /// For panics this sets a hook, once for the process, which calls the one that was there first.
    /// The panicking thread writes. If it has the pool's lock, it does so when it gives that back by
    /// unwinding: not with `panic = "abort"`.
    #[must_use]
    pub fn dump_traces_into(mut self, folder: impl Into<PathBuf>) -> Self {
        self.tracing.folder = Some(folder.into());
        self
    }

    /// What traces of this pool, recorded or dumped, say of the texts of errors and of the server's
    /// address; by default both as they are. Names of files do not hold the address.
    #[must_use]
    pub fn trace_disclosure(mut self, texts: Disclosure, addresses: Disclosure) -> Self {
        self.tracing.texts = texts;
        self.tracing.addresses = addresses;
        self
    }
}

/// The machine with its recorder, whoever writes, and what is known of traces outside of the lock.
type Begun<K> = (Recorder<Tokio<K>>, Option<Clerk>, Traces);

impl Tracing {
    /// Makes what has to be there: file, folder, memory, thread.
    pub(crate) fn begin<K: Connector>(
        self,
        state: PoolState<Tokio<K>>,
        address: &ServerAddress,
    ) -> Result<Begun<K>, RecordingError> {
        let Self { recording, flight_recorder, folder, texts, addresses } = self;
        let info = TraceInfo::new(address.to_string())
            .with_program(concat!("cenote-tokio ", env!("CARGO_PKG_VERSION")))
            .with_origin(milliseconds_since_1970())
            .with_texts(texts)
            .with_addresses(addresses);
        if let Some(folder) = &folder {
            fs::create_dir_all(folder).map_err(|error| RecordingError::file(folder, error))?;
        }
        let flight_recorder = flight_recorder.or(folder.as_ref().map(|_| FLIGHT_RECORDER));
        let mut recorder = Recorder::new(state);
        if let Some(bytes) = flight_recorder {
            recorder = recorder.with_flight_recorder(bytes);
        }
        if let Some(recording) = &recording {
            recorder = recorder.with_journal(recording.journal);
        }
        let is_watched = recording.is_some() || folder.is_some();
        let sink = recording.map(Recording::open).transpose()?;
        let clerk = is_watched.then(|| Clerk::new(sink, info.clone(), folder.is_some()));
        Ok((recorder, clerk.transpose()?, Traces::new(info, folder)))
    }
}

pub(super) fn milliseconds_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
