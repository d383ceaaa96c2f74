//! What must hold after every input.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::input::Purpose;
use super::options::Settings;
use super::state::PoolState;
use super::state::connections::Doing;
use super::state::lists::List;
use super::status::Status;
use super::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// The promises that are cheap to look at: they are kept in every build, after every input.
    #[inline]
    pub(super) fn check_promises(&self) {
        if self.queue.is_empty() {
            return;
        }
        // No lost wake-up: if the oldest request waits, nothing could serve it (WQ-07).
        assert_eq!(self.status, Status::Ready, "only a ready pool lets requests wait");
        assert_eq!(self.connections.len(List::Available), 0, "a request waits beside a connection");
        assert!(!self.may_create(), "a request waits although a connection could be made");
    }

    /// Recomputes everything that the machine keeps as a number, a link or an order (PS-22). Costs
    /// as much as the pool is large; for tests, fuzzing and simulation.
    ///
    /// # Panics
    ///
    /// When something does not hold, which is a defect of the machine.
    pub fn check_invariants(&self) {
        self.check_promises();
        self.connections.check_invariants();
        self.queue.check_invariants();
        self.check_status();
        self.check_owners();
        self.check_purposes();
        self.check_services();
        assert_eq!(Settings::new(&self.options), Ok(self.settings), "settings follow options");
        assert!(self.inherited <= self.connections.last_number(), "inherited ones were made");
    }

    fn check_status(&self) {
        let available = self.connections.len(List::Available);
        let runs_maintenance = self.settings.pause_after_failure.is_some();
        match self.status {
            Status::Ready => {}
            Status::Paused => {
                let current = self.connections().filter(|connection| !connection.stale).count();
                assert_eq!(current, 0, "a paused pool has nothing of its present generation");
                assert!(!runs_maintenance || available == 0, "stale connections go at once");
            }
            Status::Closed => {
                assert_eq!(available, 0, "a closed pool offers nothing");
                assert_eq!(self.connections.len(List::Pending), 0, "and makes nothing");
            }
        }
        assert!(available == 0 || !self.has_surplus(), "surplus is not kept available");
    }

    fn check_owners(&self) {
        let listed: Vec<_> = self.owners.iter().map(|(request, id)| (request.id, *id)).collect();
        assert!(listed.is_sorted(), "owners are in the order of requests");
        let mut owned: Vec<_> = self
            .connections
            .iter(List::Pending)
            .filter_map(|(id, connection)| match connection.doing {
                Doing::Pending { owner, .. } => owner.map(|owner| (owner, id)),
                Doing::Available { .. } | Doing::InUse { .. } => None,
            })
            .collect();
        owned.sort_unstable();
        assert_eq!(owned, listed, "an owner and its connection know each other");
        let oldest_waiting = self.queue.iter().next().map(|request| request.id);
        let youngest_owner = listed.last().map(|&(id, _)| id);
        assert!(
            oldest_waiting.is_none() || youngest_owner < oldest_waiting,
            "who was served came before who waits"
        );
    }

    fn check_purposes(&self) {
        let mut purposes = [0; 3];
        for list in [List::InUse, List::Overdue] {
            for (_, connection) in self.connections.iter(list) {
                if let Doing::InUse { purpose, .. } = connection.doing {
                    purposes[purpose as usize] += 1;
                }
            }
        }
        assert_eq!(purposes, self.purposes, "each use counts for one purpose");
        let _: [u32; Purpose::Transaction as usize + 1] = purposes;
    }

    fn check_services(&self) {
        let mut counted = BTreeMap::new();
        let all = List::ALL.into_iter().flat_map(|list| self.connections.iter(list));
        for service in all.filter_map(|(_, connection)| connection.service) {
            *counted.entry(service).or_insert(0) += 1;
        }
        let kept = self.services.iter().map(|(id, _, connections)| (id, connections)).collect();
        assert_eq!(counted, kept, "services count their connections, and go with the last");
        assert!(self.settings.load_balanced || counted.is_empty(), "no services without balancer");
    }
}

#[cfg(test)]
pub(super) mod tests;
