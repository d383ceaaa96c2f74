//! The stages of an establishment, for metrics.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use cenote_core::error::{ConnectionError, Kind, Stage};

use crate::builder::Measured;

/// Why a stage ended that the pool, or the end of the runtime, interrupted: an `error.type`.
pub(crate) const ABORTED: &str = "aborted";

/// Follows one connection through the stages of its establishment. Clones follow the same one; the default follows
/// none.
#[derive(Clone, Default)]
pub(crate) struct Stages(Option<Arc<Followed>>);

struct Followed {
    clock: fn() -> Instant,
    measured: Measured,
    current: Mutex<Option<(Stage, Instant)>>,
}

impl Stages {
    /// Follows nothing if nothing is measured.
    pub(crate) fn begin(measured: &Measured, clock: fn() -> Instant) -> Self {
        let followed =
            || Arc::new(Followed { clock, measured: measured.clone(), current: Mutex::default() });
        Self((!measured.is_empty()).then(followed))
    }

    /// Ends the stage before it. Does nothing in that stage.
    pub(crate) fn enter(&self, stage: Stage) {
        self.change(Some(stage), None);
    }

    /// Ends the last stage: well, or with this `error.type`.
    pub(crate) fn end(&self, error: Option<&'static str>) {
        self.change(None, error);
    }

    fn change(&self, next: Option<Stage>, error: Option<&'static str>) {
        let Some(followed) = &self.0 else { return };
        let mut current = followed.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.map(|(stage, _)| name(stage)) == next.map(name) {
            return;
        }
        let now = (followed.clock)();
        let ended = std::mem::replace(&mut *current, next.map(|stage| (stage, now)));
        drop(current);
        if let Some((stage, since)) = ended {
            let duration = now.saturating_duration_since(since);
            followed.measured.stage(name(stage), duration, error);
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
