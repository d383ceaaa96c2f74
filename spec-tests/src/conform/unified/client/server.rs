//! What is known of the server, and what failures do to it and to its pool.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use cenote_core::connect::{ConnectionDescription, ServerKind};
use cenote_core::error::ConnectionError;
use cenote_core::sdam::{self, Check, PoolVerdict, ServerVerdict, TopologyVersion};
use cenote_tokio::Failure;
use serde_json::json;

use std::sync::Arc;

use super::story::Story;
use crate::conform::lock::lock;
use crate::conform::shell::Pool;
use crate::conform::unified::format::Family;

/// A server as a client sees it.
pub(super) struct Server {
    known: Mutex<Known>,
    changed: Condvar,
    story: Arc<Story>,
    load_balanced: bool,
}

/// The description, and whether a check was requested.
#[derive(Default)]
pub(super) struct Known {
    kind: Option<ServerKind>,
    /// It is unknown because of an error, not because it was never checked.
    has_failed: bool,
    topology_version: Option<TopologyVersion>,
    check_wanted: bool,
    is_over: bool,
}

impl Server {
    /// The server has only just answered: another check so soon would tell nothing.
    const LEAST_PAUSE: Duration = Duration::from_millis(500);

    pub(super) fn new(story: Arc<Story>, load_balanced: bool) -> Self {
        let kind = load_balanced.then_some(ServerKind::LoadBalancer);
        let known = Mutex::new(Known { kind, ..Known::default() });
        Self { known, changed: Condvar::new(), story, load_balanced }
    }

    /// A connection of the pool failed: the description changes first, then the pool is cleared,
    /// under the lock that the monitor takes, too.
    pub(super) fn heed(&self, failed: &Failure<'_>) {
        let mut known = lock(&self.known);
        let verdict = sdam::verdict(&failed.context(known.topology_version), failed.error());
        self.apply(&mut known, verdict.server);
        failed.clear(verdict.pool);
        match verdict.check {
            // This monitor polls: it is seldom in a check, and the next one comes on request.
            Check::Keep | Check::Cancel => {}
            Check::Request => self.request(&mut known),
        }
    }

    /// A check succeeded: the pool is ready before the server can be selected.
    pub(super) fn answered(&self, description: &ConnectionDescription, pool: &dyn Pool) {
        let mut known = lock(&self.known);
        let new = description.topology_version;
        let old = known.topology_version;
        if old.is_some_and(|old| old.makes_description_stale(new.as_ref())) {
            return;
        }
        pool.ready();
        known.topology_version = new;
        self.change(&mut known, Some(description.kind));
    }

    /// A check failed. Says whether the server was known before.
    pub(super) fn failed_check(&self, error: ConnectionError, pool: &dyn Pool) -> bool {
        let mut known = lock(&self.known);
        let was_known = known.kind.is_some();
        let verdict = sdam::monitor_verdict(&error);
        self.apply(&mut known, verdict.server);
        match verdict.pool {
            PoolVerdict::Clear { interrupt } => pool.clear(error, interrupt),
            PoolVerdict::Keep | PoolVerdict::ClearService => {}
        }
        was_known
    }

    /// Waits until the server is known, and says whether it is.
    pub(super) fn select(&self, limit: Duration) -> bool {
        let mut known = lock(&self.known);
        if known.kind.is_none() {
            self.request(&mut known);
        }
        let unknown = |known: &mut Known| known.kind.is_none();
        let waited = self.changed.wait_timeout_while(known, limit, unknown);
        waited.unwrap_or_else(std::sync::PoisonError::into_inner).0.kind.is_some()
    }

    /// Whether the server is one by itself, which knows no retryable writes.
    pub(super) fn is_standalone(&self) -> bool {
        lock(&self.known).kind == Some(ServerKind::Standalone)
    }

    /// Lets the monitor pause until a check is requested or the client is closed; returns whether it is.
    pub(super) fn pause(&self, limit: Duration) -> bool {
        let least = Self::LEAST_PAUSE.min(limit);
        let waited = self.changed.wait_timeout_while(lock(&self.known), least, |it| !it.is_over);
        let known = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        let idle = |known: &mut Known| !known.check_wanted && !known.is_over;
        let waited = self.changed.wait_timeout_while(known, limit.saturating_sub(least), idle);
        let mut known = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        known.check_wanted = false;
        known.is_over
    }

    /// The monitor need not go on.
    pub(super) fn end(&self) {
        lock(&self.known).is_over = true;
        self.changed.notify_all();
    }

    fn request(&self, known: &mut MutexGuard<'_, Known>) {
        known.check_wanted = true;
        self.changed.notify_all();
    }

    fn apply(&self, known: &mut MutexGuard<'_, Known>, verdict: ServerVerdict) {
        match verdict {
            ServerVerdict::Keep => {}
            ServerVerdict::Unknown { topology_version } => {
                known.topology_version = topology_version;
                self.change(known, None);
            }
        }
    }

    fn change(&self, known: &mut MutexGuard<'_, Known>, kind: Option<ServerKind>) {
        let has_failed = kind.is_none();
        if self.load_balanced || (known.kind, known.has_failed) == (kind, has_failed) {
            return;
        }
        known.has_failed = has_failed;
        let previous = std::mem::replace(&mut known.kind, kind);
        let fields = json!({
            "previousDescription": { "type": name(previous) },
            "newDescription": { "type": name(kind) },
        });
        self.story.tell(Family::Sdam, "serverDescriptionChangedEvent", fields);
        self.changed.notify_all();
    }
}

/// As the files call it.
fn name(kind: Option<ServerKind>) -> &'static str {
    kind.map_or("Unknown", ServerKind::name)
}
