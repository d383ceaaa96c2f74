//! The stages of an establishment, for metrics, spans and traces.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cenote_core::error::{ConnectionError, Kind, Stage};

use crate::builder::Measured;
use crate::spans::{EstablishSpan, StageSpan};

/// Why an establishment ended that the pool, or the end of the runtime, interrupted: an `error.type`.
pub(crate) const ABORTED: &str = "aborted";

/// Follows one connection through the stages of its establishment. Clones follow the same one; the default follows
/// none.
#[derive(Clone, Default)]
pub(crate) struct Stages(Option<Arc<Followed>>);

struct Followed {
    clock: fn() -> Instant,
    measured: Measured,
    span: EstablishSpan,
    record: Option<RecordStage>,
    current: Mutex<Option<CurrentStage>>,
}

/// Puts a stage into the trace of the pool.
pub(crate) type RecordStage = Box<dyn Fn(Stage) + Send + Sync>;

struct CurrentStage {
    name: &'static str,
    since: Instant,
    span: StageSpan,
}

impl Stages {
    /// Follows nothing if nothing is measured or recorded, and there is no span.
    pub(crate) fn begin(
        measured: &Measured,
        span: EstablishSpan,
        record: Option<RecordStage>,
        clock: fn() -> Instant,
    ) -> Self {
        if measured.is_empty() && !span.is_some() && record.is_none() {
            return Self::default();
        }
        let (measured, current) = (measured.clone(), Mutex::default());
        Self(Some(Arc::new(Followed { clock, measured, span, record, current })))
    }

    /// Ends the stage before it. Does nothing in that stage.
    pub(crate) fn enter(&self, stage: Stage) {
        let Some(followed) = &self.0 else { return };
        let name = name(stage);
        let mut current = followed.current();
        if current.as_ref().is_some_and(|current| current.name == name) {
            return;
        }
        let now = (followed.clock)();
        followed.end(current.take(), now, None);
        *current = Some(CurrentStage { name, since: now, span: followed.span.stage(stage) });
        drop(current);
        if let Some(record) = &followed.record {
            record(stage);
        }
    }

    /// The establishment has ended, and its last stage with it.
    pub(crate) fn end(&self, outcome: Result<(), &ConnectionError>) {
        let Some(followed) = &self.0 else { return };
        let last = followed.current().take();
        followed.end(last, (followed.clock)(), outcome.err().map(error_type));
        followed.span.end(outcome);
    }

    /// The establishment was interrupted, unless it has ended.
    pub(crate) fn abort(&self) {
        let Some(followed) = &self.0 else { return };
        let last = followed.current().take();
        followed.end(last, (followed.clock)(), Some(ABORTED));
        followed.span.abort();
    }
}

impl Followed {
    fn current(&self) -> MutexGuard<'_, Option<CurrentStage>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, stage: Option<CurrentStage>, now: Instant, error: Option<&'static str>) {
        if let Some(CurrentStage { name, since, span }) = stage {
            span.end(error);
            self.measured.stage(name, now.saturating_duration_since(since), error);
        }
    }
}

/// As attributes of metrics have it.
const fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Dns => "dns",
        Stage::Tcp => "tcp",
        Stage::Proxy => "proxy",
        Stage::TlsIo | Stage::TlsCertificate => "tls",
        Stage::Hello => "hello",
        Stage::Authentication => "authentication",
        Stage::Operation | _ => "operation",
    }
}

/// The `error.type` of a connection that could not be established.
pub(crate) fn error_type(error: &ConnectionError) -> &'static str {
    match error.kind() {
        Kind::Network => "network",
        Kind::NetworkTimeout { .. } | Kind::NotSent { .. } => "timeout",
        Kind::Command(_) => "command",
        Kind::Protocol => "protocol",
        Kind::Configuration => "configuration",
        Kind::Local => "local",
        _ => "other",
    }
}

impl fmt::Debug for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stages").field(&self.0.is_some()).finish()
    }
}
