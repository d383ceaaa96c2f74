//! Generations by service, in load-balanced mode (LB-01 … LB-04).

use alloc::collections::BTreeMap;

use super::id::ServiceId;

/// CMAP's map from a service to its generation and the number of its connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Services {
    map: BTreeMap<ServiceId, Service>,
}

#[derive(Clone, Debug)]
struct Service {
    generation: u64,
    connections: u32,
}

impl Services {
    /// A connection has finished its hello with this service: counts it and tells the generation
    /// that it belongs to (LB-03).
    pub(super) fn join(&mut self, id: ServiceId) -> u64 {
        let service = self.map.entry(id).or_insert(Service { generation: 0, connections: 0 });
        service.connections += 1;
        service.generation
    }

    /// A connection of this service was closed. The last one takes the entry along (LB-02).
    pub(super) fn leave(&mut self, id: ServiceId) {
        let service = self.map.get_mut(&id).expect("a connection that joined its service");
        assert!(service.connections > 0, "a service without connections has no entry");
        service.connections -= 1;
        if service.connections == 0 {
            self.map.remove(&id);
        }
    }

    /// Starts a new generation of this service (CLB-02). `false` when there is no such entry: then
    /// nothing can be stale (SI-17).
    pub(super) fn clear(&mut self, id: ServiceId) -> bool {
        match self.map.get_mut(&id) {
            Some(service) => {
                service.generation += 1;
                true
            }
            None => false,
        }
    }

    /// The present generation of a service that has connections.
    pub(super) fn generation(&self, id: ServiceId) -> Option<u64> {
        self.map.get(&id).map(|service| service.generation)
    }

    /// Each service with its generation and how many connections it has, in the order of ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ServiceId, u64, u32)> {
        self.map.iter().map(|(&id, service)| (id, service.generation, service.connections))
    }
}
