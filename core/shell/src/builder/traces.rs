//! What is recorded, as a builder is told it.

use std::path::PathBuf;
use std::time::Duration;

use cenote_core::trace::Disclosure;

use super::{Builder, BuiltPool};
use crate::trace::Recording;

impl<P: BuiltPool> Builder<P> {
    /// Records everything that goes into the pool's machine, from the first input on: a path, or a
    /// [`Recording`]. `cenote replay` and [`cenote_core::trace::Replay`] play it again.
    ///
    /// It never holds credentials or payloads; what becomes of the address and of the texts of
    /// errors, [`trace_disclosure`](Self::trace_disclosure) says. The clock is read for each input.
    /// Users of the pool copy some bytes under its lock and never wait for the disk: a thread of its own
    /// writes. If that does not keep up, memory stays
    /// [bounded](cenote_core::trace::JournalOptions::backlog), and the trace tells of the gap. When
    /// writing fails, the recording ends, with a warning through `tracing`, and the pool goes on.
    ///
    /// The trace is whole when `Pool::end_recording` says so, or when the last handle, the last
    /// connection and what the pool lives in, a runtime or the thread of a loop, are gone; that waits
    /// for the disk, for five seconds at most. Until then a reader finds all but the last second of it.
    /// In a child process that was forked nothing is recorded.
    ///
    /// ```no_run
    /// use cenote_tokio::Pool;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::builder("mongodb://db.example.com")?.record("pool.bson").build()?;
    /// pool.close().await;
    /// pool.end_recording().await?; // `cenote replay pool.bson` reads it.
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn record(mut self, recording: impl Into<Recording>) -> Self {
        self.0.tracing.recording = Some(recording.into());
        self
    }

    /// Keeps the last inputs in so many bytes of memory, for `Pool::dump_trace`. A warm check-out and
    /// check-in take 18 bytes, half of the memory is looked back on at least, and an eighth more is
    /// used for texts. Nothing allocates in doing so.
    ///
    /// Times are those that the pool was given: where nothing depends on them (no idle time, no limit
    /// for waiting, no subscriber), a check-out that is served at once and a check-in have the time of
    /// what was before, for to read the clock would cost more than all the rest. Whatever else happens
    /// has its own.
    ///
    /// ```no_run
    /// use cenote_tokio::Pool;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::builder("mongodb://db.example.com")?
    ///     .flight_recorder(1 << 20)
    ///     .dump_traces_into("/var/log/app") // With each episode of timeouts, and at the first panic.
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn flight_recorder(mut self, bytes: usize) -> Self {
        self.0.tracing.flight_recorder = Some(bytes);
        self
    }

    /// Writes what the flight recorder holds into a file of this folder, by itself, when something
    /// goes wrong: at the first panic, of whatever thread of the process, and with each
    /// [episode](Self::episode_pause) of check-outs that time out (by `waitQueueTimeoutMS` or their own
    /// deadline; `Pool::try_check_out` does not wait): when the first does, and when they are over, unless the
    /// pool ends before. Of its files of episodes the pool keeps the last 32.
    ///
    /// The folder is made if need be. Files are called `cenote-TIME-PROCESS-POOL-wait-queue-timeout.bson`,
    /// `…-after-timeouts.bson` and `…-panic.bson`, with the time in UTC as in `20260101T030712.286Z`, the
    /// number of the process and that of the pool in it. Without a [flight recorder](Self::flight_recorder) there is one of
    /// 1 MiB.
    ///
    /// For panics this sets a hook, once for the process, which calls the one that was there first.
    /// The panicking thread writes. If it has the pool's lock, it does so when it gives that back by
    /// unwinding: not with `panic = "abort"`.
    #[must_use]
    pub fn dump_traces_into(mut self, folder: impl Into<PathBuf>) -> Self {
        self.0.tracing.folder = Some(folder.into());
        self
    }

    /// Timeouts between which less time than this passes are one episode, which is over when it has passed
    /// without one. By default 30 s, at least 1 s; less makes more files for the [folder](Self::dump_traces_into).
    #[must_use]
    pub fn episode_pause(mut self, pause: Duration) -> Self {
        self.0.tracing.episode_pause = Some(pause);
        self
    }

    /// Dumps into the [folder](Self::dump_traces_into), too, whenever the process gets this signal, such
    /// as SIGUSR1, by its number: `cenote-TIME-PROCESS-POOL-signal.bson`. A thread of the pool looks for it
    /// five times a second; of signals that come together one may be missed.
    ///
    /// Other handlers of the signal run as before, but its default action, such as ending the process, is
    /// disabled, also after the pool is gone: pick a signal that you do not use to terminate the process.
    /// Building the pool fails without a folder, and for signals that cannot be caught.
    #[must_use]
    pub fn dump_on_signal(mut self, signal: i32) -> Self {
        self.0.tracing.signal = Some(signal);
        self
    }

    /// What traces of this pool, recorded or dumped, say of the texts of errors and of the server's
    /// address; by default both as they are. Names of files do not hold the address.
    #[must_use]
    pub fn trace_disclosure(mut self, texts: Disclosure, addresses: Disclosure) -> Self {
        self.0.tracing.texts = texts;
        self.0.tracing.addresses = addresses;
        self
    }
}
