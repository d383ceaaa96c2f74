use std::collections::VecDeque;
use std::fmt;
#[cfg(unix)]
use std::path::PathBuf;
use std::time::{Duration, Instant as StdInstant};

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::log::LogSettings;
use cenote_core::pool::{Action, PoolOptions, PoolState, PoolTypes};
use cenote_core::trace::Recorder;

use super::{BuildError, DEFAULT_EVENT_QUEUE};
use crate::event::Subscriber;
use crate::failure::FailureHandler;
#[cfg(feature = "metrics")]
use crate::metrics::Metrics;
use crate::pool::leak::{LeakCallback, with_default_threshold};
use crate::runtime::origin::Origin;
use crate::runtime::platform;
use crate::trace::{RecordedPool, TraceOptions, Traces};

/// What a [`Builder`](super::Builder) was told, for a shell to build a pool from.
pub struct PoolPlan<K> {
    /// The server that the pool is for.
    pub address: ServerAddress,
    /// Makes its connections.
    pub connector: K,
    /// The pool's options.
    pub options: PoolOptions,
    /// `timeoutMS`, for check-outs without a deadline; `None` and zero are none.
    pub timeout: Option<Duration>,
    /// Callbacks for events.
    pub subscribers: Vec<Subscriber>,
    /// How many events may wait for the subscribers.
    pub event_queue: usize,
    /// How log messages are made; `None` means as the environment variables say.
    pub log: Option<LogSettings>,
    /// The callback for failures.
    pub failure_handler: Option<FailureHandler>,
    /// The callback for suspected leaks.
    pub leak_callback: Option<LeakCallback>,
    /// What is recorded.
    pub tracing: TraceOptions,
    /// The zero of its time; `None` is the moment at which it is made.
    pub origin: Option<Origin>,
    /// Where the socket for inspection is.
    #[cfg(unix)]
    pub inspect: Option<PathBuf>,
    /// Where metrics go.
    #[cfg(feature = "metrics")]
    pub metrics: Vec<Metrics>,
}

/// The machine of a new pool, and what is known of its traces.
pub type Begun<S> = (RecordedPool<S>, VecDeque<Action<S>>, Traces);

impl<K> PoolPlan<K> {
    pub(super) fn new(address: ServerAddress, connector: K) -> Self {
        Self {
            address,
            connector,
            options: PoolOptions::default(),
            timeout: None,
            subscribers: Vec::new(),
            event_queue: DEFAULT_EVENT_QUEUE,
            log: None,
            failure_handler: None,
            leak_callback: None,
            tracing: TraceOptions::default(),
            origin: None,
            #[cfg(unix)]
            inspect: None,
            #[cfg(feature = "metrics")]
            metrics: Vec::new(),
        }
    }

    /// Makes the machine, with its recorder, and returns its first actions. `program` is what traces say has
    /// recorded them: name and version; `now` is the runtime's time, and `origin` its zero.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; a file or folder for traces that cannot be made.
    pub fn begin<S: PoolTypes<Cause = ConnectionError>>(
        &mut self,
        program: &str,
        origin: Origin,
        now: StdInstant,
    ) -> Result<Begun<S>, BuildError> {
        let mut first = VecDeque::new();
        let options = platform::with_jitter_seed_from_os(std::mem::take(&mut self.options));
        let options = with_default_threshold(options, self.leak_callback.as_ref());
        let now = origin.instant(now);
        let state = Recorder::new(PoolState::new(now, options, &mut first)?);
        let tracing = std::mem::take(&mut self.tracing);
        let (state, traces) = tracing.begin(state, Some(&self.address), program, (now, origin))?;
        Ok((state, first, traces))
    }
}

impl<K> fmt::Debug for PoolPlan<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolPlan")
            .field("address", &self.address)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
