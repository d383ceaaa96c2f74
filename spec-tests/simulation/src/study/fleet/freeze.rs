//! Clients that are frozen, as functions are between two invocations.

use std::time::Duration;

use cenote_core::pool::{Input, Instant};

use super::due::Due;
use super::{Ask, Fleet};

/// A time in which the clients do not run, nor their timers.
#[derive(Clone, Copy, Debug)]
pub(in crate::study) struct Freeze {
    /// No request comes from then on; each client is frozen as soon as none of its connections is in use or pending.
    pub(in crate::study) from: Duration,
    /// The first client runs again.
    pub(in crate::study) to: Duration,
    /// How much later each of the others runs again.
    pub(in crate::study) apart: Duration,
    /// Whether each client releases idle connections before it is frozen.
    pub(in crate::study) releases: bool,
    /// Whether the network forgets connections meanwhile: the next use of one is reset.
    pub(in crate::study) forgets: bool,
}

/// How often a client looks whether it can be frozen.
const AGAIN: Duration = Duration::from_millis(10);
/// How soon the callers of a client that runs again ask.
const SPREAD: Duration = Duration::from_secs(1);

impl Fleet<'_> {
    pub(super) fn freeze_begins(&mut self) {
        if let Some(freeze) = self.setup.freeze {
            for client in 0..self.setup.clients {
                self.plan(freeze.from, Due::Freeze { client });
            }
        }
    }

    pub(super) fn freeze(&mut self, client: u32) {
        if self.of(client).is_busy() {
            return self.plan(AGAIN, Due::Freeze { client });
        }
        if self.setup.freeze.is_some_and(|freeze| freeze.releases) {
            self.feed(client, Input::ReleaseIdle);
        }
        self.of(client).is_frozen = true;
    }

    /// When this happens, if its client does not run now or gets no requests.
    pub(super) fn thaws(&self, due: &Due) -> Option<Instant> {
        let (freeze, client) = (self.setup.freeze?, due.of_client()?);
        let begins = Instant::ORIGIN + freeze.from;
        let thawed = Instant::ORIGIN + freeze.to + freeze.apart * client;
        let waits = self.clients[client as usize].is_frozen || matches!(due, Due::Ask { .. });
        (waits && self.now >= begins && self.now < thawed).then_some(thawed)
    }

    /// Until its client runs again. Requests come within a second from then on.
    pub(super) fn put_off(&mut self, thawed: Instant, due: Due) {
        if let Due::Ask { client, ask } = due {
            let asked = thawed + self.below(SPREAD);
            return self.agenda.plan(asked, Due::Ask { client, ask: Ask { asked, ..ask } });
        }
        self.agenda.plan(thawed, due);
    }

    /// Whether the network has forgotten a connection that was used last at that time.
    pub(super) fn has_forgotten(&self, rested: Instant) -> bool {
        self.setup.freeze.is_some_and(|freeze| {
            let ended = self.now >= Instant::ORIGIN + freeze.to;
            freeze.forgets && ended && rested < Instant::ORIGIN + freeze.to
        })
    }
}
