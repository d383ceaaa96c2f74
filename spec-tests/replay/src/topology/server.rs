//! The server of a pool: which changes of the topology a clear or a wait follows.

use std::time::Duration;

use cenote_core::connect::ServerKind;
use cenote_core::pool::Instant;
use cenote_core::trace::TraceHeader;

use super::change::{Change, Effect};
use super::history::History;

/// What became of the server of a pool and of the others, on the clock of the pool's trace.
#[derive(Clone, Debug, Default)]
pub struct ServerHistory {
    /// As the trace of the topology names it.
    address: String,
    changes: Vec<Change>,
}

impl ServerHistory {
    /// For the pool of this trace.
    #[must_use]
    pub fn new(history: &History, header: &TraceHeader) -> Self {
        let address = header.address.clone().unwrap_or_default();
        Self { address, changes: history.clone().on_clock(header.origin).changes }
    }

    /// Why the pool was cleared or closed at this time, if its server became Unknown or was removed just before: both
    /// happen under one lock. `follows` is the step of the client that it follows, if the trace has it: no other will do.
    #[must_use]
    pub fn lost_at(&self, at: Instant, follows: Option<u64>) -> Option<Reason> {
        let is_lost = |effect: &Effect| match effect {
            Effect::Became { now: None, .. } | Effect::Removed(..) => self.is_own(effect),
            Effect::Became { .. } | Effect::Added(_) | Effect::Kind(..) | Effect::Closed => false,
        };
        let Some(step) = follows else { return self.last(at, AT_ONCE, is_lost) };
        let change = self.changes.iter().find(|change| change.client_step == step)?;
        change.effects.iter().find(|effect| is_lost(effect)).map(|it| Reason::of(change.at, it))
    }

    /// The last change before the end of a wait that may have made it longer: during it, or shortly before. One of the
    /// pool's own server counts more than one of another.
    #[must_use]
    pub fn before_wait(&self, from: Instant, to: Instant) -> Option<Reason> {
        let time = to.saturating_since(from) + SHORTLY;
        let is_change = |effect: &Effect| match effect {
            Effect::Became { was, now, .. } => was != now,
            Effect::Removed(..) => true,
            Effect::Added(_) | Effect::Kind(..) | Effect::Closed => false,
        };
        let own = self.last(to, time, |effect| is_change(effect) && self.is_own(effect));
        own.or_else(|| self.last(to, time, is_change))
    }

    fn is_own(&self, effect: &Effect) -> bool {
        effect.server() == Some(&self.address)
    }

    /// The last such effect up to this time, and not longer before it than that.
    fn last(
        &self,
        at: Instant,
        time: Duration,
        is_wanted: impl Fn(&Effect) -> bool,
    ) -> Option<Reason> {
        let before = self.changes.iter().rev().skip_while(|change| change.at > at);
        let mut recent = before.take_while(|change| at.saturating_since(change.at) <= time);
        recent.find_map(|change| {
            let effect = change.effects.iter().rev().find(|effect| is_wanted(effect))?;
            Some(Reason::of(change.at, effect))
        })
    }

    /// The changes in this time.
    pub fn between(&self, from: Instant, to: Instant) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| from <= change.at && change.at <= to)
    }
}

/// A change of the topology that something follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// When it happened.
    pub at: Instant,
    /// As in `a.example.com:27017 became Unknown`.
    pub brief: String,
    /// The same with the round trip and the tags, or with the error.
    pub text: String,
}

impl Reason {
    fn of(at: Instant, effect: &Effect) -> Self {
        let (brief, text) = match effect {
            Effect::Became { server, now, text, .. } => {
                let now = now.map_or("Unknown", ServerKind::name);
                (format!("{server} became {now}"), format!("{server} became {text}"))
            }
            Effect::Removed(server, reason) => {
                let brief = format!("{server} was removed");
                let text = format!("{brief}: {reason}");
                (brief, text)
            }
            Effect::Added(_) | Effect::Kind(..) | Effect::Closed => {
                (effect.to_string(), effect.to_string())
            }
        };
        Self { at, brief, text }
    }
}

/// The pool is fed after the topology, under the same lock; a busy machine may stop the thread in between.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How long a change of the topology may have its effects.
const SHORTLY: Duration = Duration::from_secs(1);
