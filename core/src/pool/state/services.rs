//! Generations by service, in load-balanced mode.

use alloc::collections::BTreeMap;

use crate::pool::id::ServiceId;

/// CMAP's map from a service to its generation and the number of its connections.
// PS-14, LB-01
#[derive(Clone, Debug)]
pub(in crate::pool) struct Services<C> {
    map: BTreeMap<ServiceId, Service<C>>,
    /// How often a service was cleared, those without an entry included.
    clears: u64,
}

#[derive(Clone, Debug)]
struct Service<C> {
    generation: u64,
    connections: u32,
    /// What the most recent clear of this service was fed with.
    cleared_by: Option<C>,
    /// The number of clears after the most recent one that may have been of this service: all before
    /// there was this entry may have been.
    clears: u64,
}

impl<C> Services<C> {
    pub(in crate::pool) const fn new() -> Self {
        Self::restore(0)
    }

    /// Goes on counting clears where a checkpoint stopped.
    pub(in crate::pool) const fn restore(clears: u64) -> Self {
        Self { map: BTreeMap::new(), clears }
    }

    /// A connection has finished its hello with this service: counts it and tells the generation
    /// that it belongs to.
    // LB-03
    pub(in crate::pool) fn join(&mut self, id: ServiceId) -> u64 {
        let clears = self.clears;
        let new = Service { generation: 0, connections: 0, cleared_by: None, clears };
        let service = self.map.entry(id).or_insert(new);
        service.connections += 1;
        service.generation
    }

    /// Puts a service back as a checkpoint tells of it, still without connections.
    pub(in crate::pool) fn put_back(
        &mut self,
        id: ServiceId,
        generation: u64,
        cleared_by: Option<C>,
        clears: u64,
    ) {
        self.map.insert(id, Service { generation, connections: 0, cleared_by, clears });
    }

    /// A connection of this service was closed. The last one takes the entry along.
    // LB-02
    pub(in crate::pool) fn leave(&mut self, id: ServiceId) {
        let service = self.map.get_mut(&id).expect("a connection that joined its service");
        assert!(service.connections > 0, "a service without connections has no entry");
        service.connections -= 1;
        if service.connections == 0 {
            self.map.remove(&id);
        }
    }

    /// Starts a new generation of this service. `false` when there is no such entry: then nothing
    /// that has joined can be stale.
    // CLB-02
    pub(in crate::pool) fn clear(&mut self, id: ServiceId, cause: C) -> bool {
        self.clears += 1;
        match self.map.get_mut(&id) {
            Some(service) => {
                service.generation += 1;
                service.cleared_by = Some(cause);
                service.clears = self.clears;
                true
            }
            None => false,
        }
    }

    /// How often a service was cleared.
    pub(in crate::pool) const fn clears(&self) -> u64 {
        self.clears
    }

    /// The number of clears after the most recent one that may have been of this service. Of one
    /// without an entry nothing is known, so any clear may have been.
    pub(in crate::pool) fn clears_of(&self, id: ServiceId) -> u64 {
        self.map.get(&id).map_or(self.clears, |service| service.clears)
    }

    /// The present generation of a service that has connections.
    #[inline(never)]
    pub(in crate::pool) fn generation(&self, id: ServiceId) -> Option<u64> {
        self.map.get(&id).map(|service| service.generation)
    }

    /// What the most recent clear of a service was fed with.
    pub(in crate::pool) fn cleared_by(&self, id: ServiceId) -> Option<&C> {
        self.map.get(&id)?.cleared_by.as_ref()
    }

    /// Each service with its generation and how many connections it has, in the order of ids.
    pub(in crate::pool) fn iter(&self) -> impl Iterator<Item = (ServiceId, u64, u32)> {
        self.map.iter().map(|(&id, service)| (id, service.generation, service.connections))
    }
}
