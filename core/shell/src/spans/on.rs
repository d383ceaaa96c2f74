//! With the feature: through `tracing`, target `cenote::spans`, level INFO.
//!
//! A collector of spans is code of the application: nothing here calls it under a lock of the pool, and its panics are
//! contained.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, PoolError, Stage};
use cenote_core::pool::WaiterId;
use tracing::field::{Empty, display};
use tracing::level_filters::LevelFilter;
use tracing::span::Id;
use tracing::{Level, Span, info_span, span_enabled};

use super::Outcome;
use crate::connection::stages::{ABORTED, error_type};
use crate::runtime::contain;

const TARGET: &str = "cenote::spans";

/// Whether `tracing` collects these spans.
#[inline(always)]
pub(crate) fn are_wanted() -> bool {
    LevelFilter::current() >= Level::INFO && are_enabled()
}

#[inline(never)]
fn are_enabled() -> bool {
    contain(|| span_enabled!(target: TARGET, Level::INFO)).unwrap_or_default()
}

/// The check-outs of a pool that wait, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct CheckOutSpans {
    all: Mutex<BTreeMap<WaiterId, (CheckOutSpan, &'static str)>>,
    /// Whether there was ever one: in most programs there is none, and nothing to look for.
    is_used: AtomicBool,
}

impl CheckOutSpans {
    /// Keeps the span of a request that waits. Calls no collector.
    pub(crate) fn insert(&self, id: WaiterId, span: CheckOutSpan, waits_for: &'static str) {
        self.is_used.store(true, Ordering::Relaxed);
        self.all().insert(id, (span, waits_for));
    }

    /// The request has its answer.
    pub(crate) fn end(&self, id: WaiterId, outcome: Outcome<'_>) {
        if let Some(span) = self.remove(id) {
            span.end(outcome);
        }
    }

    /// The caller waits no more.
    pub(crate) fn cancel(&self, id: WaiterId) {
        if let Some(span) = self.remove(id) {
            span.record(|span| {
                span.record("cenote.outcome", "cancelled");
            });
        }
    }

    /// The span of an establishment: a child of the check-out that it is for, if that waits, and otherwise a root.
    pub(crate) fn establish(
        &self,
        owner: Option<WaiterId>,
        connection: u64,
        address: &ServerAddress,
    ) -> EstablishSpan {
        if !are_wanted() {
            return EstablishSpan::default();
        }
        let parent = owner.and_then(|owner| Some(self.all().get(&owner)?.0.clone()));
        EstablishSpan(Mutex::new(Some(ContainedSpan::new(|| {
            let parent = parent.as_ref().and_then(CheckOutSpan::id);
            info_span!(
                target: TARGET,
                parent: parent,
                "establish",
                "server.address" = address.host(),
                "server.port" = address.port().map(i64::from),
                "cenote.connection" = number(connection),
                "cenote.background" = owner.is_none(),
                "error.type" = Empty,
                "error.message" = Empty,
                "otel.status_code" = Empty,
            )
        }))))
    }

    fn remove(&self, id: WaiterId) -> Option<CheckOutSpan> {
        if !self.is_used.load(Ordering::Relaxed) {
            return None;
        }
        let (span, waits_for) = self.all().remove(&id)?;
        span.record(|span| {
            span.record("cenote.request", display(id));
            span.record("cenote.waits_for", waits_for);
        });
        Some(span)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<WaiterId, (CheckOutSpan, &'static str)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A check-out that probably waits. Clones are the same; the default is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckOutSpan(Option<Arc<ContainedSpan>>);

impl CheckOutSpan {
    /// A child of the span that the caller is in.
    pub(crate) fn begin(address: &ServerAddress) -> Self {
        let begin = || {
            info_span!(
                target: TARGET,
                "check out",
                "server.address" = address.host(),
                "server.port" = address.port().map(i64::from),
                "cenote.request" = Empty,
                "cenote.waits_for" = Empty,
                "cenote.outcome" = Empty,
                "cenote.connection" = Empty,
                "error.message" = Empty,
                "otel.status_code" = Empty,
            )
        };
        Self(Some(Arc::new(ContainedSpan::new(begin))))
    }

    pub(crate) const fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn end(self, outcome: Outcome<'_>) {
        self.record(|span| match outcome {
            Ok(connection) => {
                span.record("cenote.outcome", "connection");
                span.record("cenote.connection", number(connection));
            }
            Err((error, address)) => {
                let message = PoolError::message_of(error, address);
                span.record("cenote.outcome", error.reason().as_str());
                span.record("error.message", display(message));
                span.record("otel.status_code", "ERROR");
            }
        });
    }

    fn record(&self, record: impl FnOnce(&Span)) {
        if let Some(span) = &self.0 {
            span.record(record);
        }
    }

    fn id(&self) -> Option<Id> {
        self.0.as_ref()?.0.as_ref()?.id()
    }
}

/// The establishment of a connection, until it ends.
#[derive(Debug, Default)]
pub(crate) struct EstablishSpan(Mutex<Option<ContainedSpan>>);

impl EstablishSpan {
    pub(crate) fn is_some(&self) -> bool {
        self.span().is_some()
    }

    /// A child for a stage.
    pub(crate) fn stage(&self, stage: Stage) -> StageSpan {
        // The name of a span is a constant.
        macro_rules! named {
            ($parent:expr, $name:literal) => {
                info_span!(
                    target: TARGET,
                    parent: $parent,
                    $name,
                    "error.type" = Empty,
                    "otel.status_code" = Empty,
                )
            };
        }
        let Some(parent) = self.span().as_ref().and_then(|span| span.0.as_ref()?.id()) else {
            return StageSpan(ContainedSpan(None));
        };
        StageSpan(ContainedSpan::new(|| match stage {
            Stage::Dns => named!(parent, "name resolution"),
            Stage::Tcp => named!(parent, "connect"),
            Stage::Proxy => named!(parent, "SOCKS5 proxy"),
            Stage::TlsIo | Stage::TlsCertificate => named!(parent, "TLS handshake"),
            Stage::Hello => named!(parent, "hello"),
            Stage::Authentication => named!(parent, "authentication"),
            Stage::Operation | _ => named!(parent, "operation"),
        }))
    }

    pub(crate) fn end(&self, outcome: Result<(), &ConnectionError>) {
        let span = self.span().take();
        if let (Some(span), Err(error)) = (span, outcome) {
            span.fail(error_type(error));
            span.record(|span| {
                span.record("error.message", display(error));
            });
        }
    }

    pub(crate) fn abort(&self) {
        let span = self.span().take();
        span.into_iter().for_each(|span| span.fail(ABORTED));
    }

    fn span(&self) -> MutexGuard<'_, Option<ContainedSpan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stage of an establishment, until it ends.
#[derive(Debug)]
pub(crate) struct StageSpan(ContainedSpan);

impl StageSpan {
    /// Ends well, or with this `error.type`.
    pub(crate) fn end(self, error: Option<&'static str>) {
        error.into_iter().for_each(|error| self.0.fail(error));
    }
}

/// A span of a collector that may panic.
#[derive(Debug)]
struct ContainedSpan(Option<Span>);

impl ContainedSpan {
    fn new(begin: impl FnOnce() -> Span) -> Self {
        Self(contain(begin))
    }

    fn record(&self, record: impl FnOnce(&Span)) {
        if let Some(span) = &self.0 {
            contain(|| record(span));
        }
    }

    fn fail(&self, error: &'static str) {
        self.record(|span| {
            span.record("error.type", error);
            span.record("otel.status_code", "ERROR");
        });
    }
}

impl Drop for ContainedSpan {
    fn drop(&mut self) {
        contain(|| drop(self.0.take()));
    }
}

/// OpenTelemetry has signed numbers only.
fn number(connection: u64) -> i64 {
    i64::try_from(connection).unwrap_or(i64::MAX)
}
