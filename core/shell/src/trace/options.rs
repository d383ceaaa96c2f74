//! What a builder is told about traces.

use std::fs;
use std::path::PathBuf;
use std::sync::Weak;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::pool::Instant;
use cenote_core::trace::{Disclosure, TraceInfo};

use super::episode::{Aftermath, Episodes};
use super::error::RecordingError;
use super::journaled::DumpedBeside;
use super::recordable::Recordable;
use super::recorded::Recorded;
use super::recording::Recording;
use super::signal::Signal;
use super::traces::Traces;
use super::writer_handle::TraceWriterHandle;
use super::writer_thread::TraceWriterThread;
use crate::runtime::origin::Origin;

/// What is recorded of a pool or of a topology, what becomes of it, and when it is dumped. By default nothing is.
#[derive(Debug, Default)]
pub struct TraceOptions {
    /// Everything is recorded, there.
    pub recording: Option<Recording>,
    /// The last inputs are kept in so many bytes; a mebibyte by default where there is a `folder`.
    pub flight_recorder: Option<usize>,
    /// What the flight recorder holds is dumped there at the first panic, and with each episode of timeouts.
    pub folder: Option<PathBuf>,
    /// Timeouts between which less time passes are one episode; half a minute by default.
    pub episode_pause: Option<Duration>,
    /// It is dumped there, too, whenever the process gets this signal.
    pub signal: Option<i32>,
    /// What traces say of the texts of errors.
    pub texts: Disclosure,
    /// What traces say of addresses.
    pub addresses: Disclosure,
    /// What is dumped with an episode, too.
    pub(crate) beside: Option<Weak<dyn DumpedBeside>>,
}

/// Where there is a folder and nothing else was said.
const FLIGHT_RECORDER: usize = 1 << 20;
const EPISODE_PAUSE: Duration = Duration::from_secs(30);
/// Each episode copies what the flight recorder holds.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

impl TraceOptions {
    /// The same for one of several pools: but for the recording, which goes to one place.
    #[must_use]
    pub fn of_one(&self) -> Self {
        let Self {
            recording: _,
            flight_recorder,
            folder,
            episode_pause,
            signal,
            texts,
            addresses,
            beside,
        } = self;
        Self {
            recording: None,
            flight_recorder: *flight_recorder,
            folder: folder.clone(),
            episode_pause: *episode_pause,
            signal: *signal,
            texts: *texts,
            addresses: *addresses,
            beside: beside.clone(),
        }
    }

    /// Makes what has to be there: file, folder, memory, thread. `program` is whose traces these are, with its version;
    /// `address` that of the pool's server, `None` for a topology.
    ///
    /// # Errors
    ///
    /// What cannot be made.
    pub fn begin<K: Recordable>(
        self,
        mut recorder: K,
        address: Option<&ServerAddress>,
        program: &str,
        (now, origin): (Instant, Origin),
    ) -> Result<(Recorded<K>, Traces), RecordingError> {
        let Self {
            recording,
            flight_recorder,
            folder,
            episode_pause,
            signal,
            texts,
            addresses,
            beside,
        } = self;
        let info = TraceInfo::new(address.map(ToString::to_string).unwrap_or_default())
            .with_program(program)
            .with_origin(origin.unix_ms)
            .with_texts(texts)
            .with_addresses(addresses);
        let signal = match (signal, &folder) {
            (Some(_), None) => return Err(RecordingError::NoFolder),
            (Some(number), Some(_)) => Some(Signal::listen(number)?),
            (None, _) => None,
        };
        if let Some(folder) = &folder {
            fs::create_dir_all(folder).map_err(|error| RecordingError::file(folder, error))?;
        }
        if let Some(bytes) = flight_recorder.or(folder.as_ref().map(|_| FLIGHT_RECORDER)) {
            recorder = recorder.with_flight_recorder(now, bytes);
        }
        if let Some(recording) = &recording {
            recorder = recorder.with_journal(now, recording.journal);
        }
        let is_watched = recording.is_some() || folder.is_some();
        let sink = recording.map(Recording::open).transpose()?;
        let pause = episode_pause.unwrap_or(EPISODE_PAUSE).max(LEAST_PAUSE);
        let (episodes, aftermath) =
            folder.as_ref().map(|_| (Episodes::new(pause), Aftermath::new(pause, beside))).unzip();
        let thread = TraceWriterThread::new(sink, info.clone(), signal, aftermath);
        let writer = is_watched.then(|| TraceWriterHandle::new(thread, episodes)).transpose()?;
        Ok((Recorded::new(recorder, writer), Traces::new(info, folder)))
    }
}
