//! What events say about a pool, judged while they come.

use std::collections::BTreeMap;
use std::fmt;

use cenote_core::pool::Event;

/// Where a connection is, as far as it was told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Created,
    Available,
    Draining,
    Out,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    max_pool_size: u64,
    connections: BTreeMap<u64, Stage>,
    pub(crate) started: u64,
    pub(crate) out: u64,
    pub(crate) failed: u64,
    is_closed: bool,
}

impl Ledger {
    pub(crate) fn new(max_pool_size: u32) -> Self {
        Self { max_pool_size: max_pool_size.into(), ..Self::default() }
    }

    /// One more event.
    ///
    /// # Errors
    ///
    /// It cannot come now.
    pub(crate) fn hear<C: fmt::Debug>(&mut self, event: &Event<C>) -> Result<(), String> {
        let fits = match event {
            Event::ConnectionPoolCreated { .. }
            | Event::ConnectionPoolReady
            | Event::ConnectionPoolCleared { .. } => !self.is_closed,
            Event::ConnectionPoolClosed => !std::mem::replace(&mut self.is_closed, true),
            Event::ConnectionCreated { connection_id } => {
                let before = self.connections.insert(*connection_id, Stage::Created);
                before.is_none() && self.connections.len() as u64 <= self.max_pool_size
            }
            Event::ConnectionReady { connection_id, .. } => {
                self.moves(*connection_id, Stage::Created, Stage::Available)
            }
            Event::ConnectionCheckedOut { connection_id, .. } => {
                self.out += 1;
                self.moves(*connection_id, Stage::Available, Stage::Out)
            }
            Event::ConnectionCheckedIn { connection_id } => {
                self.moves(*connection_id, Stage::Out, Stage::Available)
            }
            Event::ConnectionClosed { connection_id, .. } => {
                let stage = self.connections.remove(connection_id);
                stage.is_some_and(|stage| !matches!(stage, Stage::Out | Stage::Draining))
            }
            Event::ConnectionCheckOutStarted { .. } => {
                self.started += 1;
                true
            }
            Event::ConnectionCheckOutFailed { .. } => {
                self.failed += 1;
                true
            }
            Event::ConnectionPendingResponseStarted { connection_id, .. } => {
                self.moves(*connection_id, Stage::Available, Stage::Draining)
            }
            Event::ConnectionPendingResponseSucceeded { connection_id, .. }
            | Event::ConnectionPendingResponseFailed { connection_id, .. } => {
                self.moves(*connection_id, Stage::Draining, Stage::Available)
            }
            _ => false,
        };
        if fits && self.out + self.failed <= self.started {
            return Ok(());
        }
        Err(format!("{event:?} cannot come after what was told: {self:?}"))
    }

    /// After the pool is closed: everything that began has ended.
    ///
    /// # Errors
    ///
    /// What has not.
    pub(crate) fn end(&self) -> Result<(), String> {
        let is_done =
            self.is_closed && self.connections.is_empty() && self.started == self.out + self.failed;
        if is_done { Ok(()) } else { Err(format!("not everything has ended: {self:?}")) }
    }

    fn moves(&mut self, id: u64, from: Stage, to: Stage) -> bool {
        self.connections.insert(id, to) == Some(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What of these is heard, and whether that was all.
    fn judge(events: &[Event<()>]) -> (usize, bool) {
        let mut ledger = Ledger::new(1);
        let heard = events.iter().take_while(|event| ledger.hear(event).is_ok()).count();
        (heard, ledger.end().is_ok())
    }

    #[test]
    fn it_hears_what_cannot_be() {
        let duration = std::time::Duration::ZERO;
        let created = |connection_id| Event::ConnectionCreated { connection_id };
        let ready = Event::ConnectionReady { connection_id: 1, duration };
        let (request, waited) = (cenote_core::pool::WaiterId(1), duration.into());
        let out = Event::ConnectionCheckedOut { connection_id: 1, request, duration: waited };
        let back = Event::ConnectionCheckedIn { connection_id: 1 };
        let reason = cenote_core::pool::CloseReason::PoolClosed;
        let gone = Event::ConnectionClosed { connection_id: 1, reason, error: None };
        let (asks, closes) =
            (Event::ConnectionCheckOutStarted { request }, Event::ConnectionPoolClosed);
        let good = [&asks, &created(1), &ready, &out, &closes, &back, &gone].map(Clone::clone);
        assert_eq!(judge(&good), (7, true));
        for cut in 0..7 {
            assert!(!judge(&good[..cut]).1, "cut after {cut}");
        }
        assert_eq!(judge(&[created(1), created(2)]).0, 1, "more than allowed");
        assert_eq!(judge(&[created(1), ready.clone(), out.clone()]).0, 2, "without a request");
        assert_eq!(judge(&[asks.clone(), created(1), out.clone()]).0, 2, "not ready");
        let twice = [&asks, &asks, &created(1), &ready, &out, &out].map(Clone::clone);
        assert_eq!(judge(&twice).0, 5, "handed out twice");
        assert_eq!(judge(&good.map(|event| if event == back { gone.clone() } else { event })).0, 5);
        assert_eq!(judge(&[closes.clone(), closes]).0, 1);
    }
}
