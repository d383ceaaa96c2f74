//! The machine: what it remembers, and how its description is edited.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{
    Action, ActionSink, Event, Input, ServerId, TopologyDescription, TopologyKind, TopologyOptions,
};
use crate::address::ServerAddress;
use crate::error::ConnectionError;
use crate::monitor::ServerDescription;
use crate::uri::srv::distinct;

/// Discovers the servers of a deployment: what each is, and which are to be monitored and to have a pool.
///
/// As with the pool, the same options and inputs always give the same actions. Nothing here blocks or panics, whatever
/// is fed.
#[derive(Clone, Debug)]
pub struct Topology {
    pub(super) description: Arc<TopologyDescription>,
    /// The servers of the description.
    ids: BTreeMap<ServerId, Arc<ServerAddress>>,
    last_id: ServerId,
    /// The hosts of the connection string.
    pub(super) seeds: BTreeSet<Arc<ServerAddress>>,
    /// The description before the present input, once that has changed it.
    previous: Option<Arc<TopologyDescription>>,
    is_closed: bool,
}

impl Topology {
    /// Adds the hosts of the connection string.
    #[must_use]
    pub fn new(options: TopologyOptions, out: &mut impl ActionSink) -> Self {
        let mut topology = Self {
            description: Arc::default(),
            ids: BTreeMap::new(),
            last_id: ServerId(0),
            seeds: options.seeds(),
            previous: None,
            is_closed: false,
        };
        topology.open(options, out);
        topology
    }

    /// Takes one input and emits what follows from it, all of it, in order.
    pub fn handle(&mut self, input: Input, out: &mut impl ActionSink) {
        if self.is_closed {
            return;
        }
        match input {
            Input::Described { id, description } => {
                let Some(address) = self.address(id).cloned() else { return };
                self.described(&address, description, out);
            }
            Input::Hosts { hosts } => self.hosts_changed(hosts, out),
            Input::Close => return self.close(out),
        }
        self.tell_change(out);
    }

    /// In the state in which one was.
    pub(crate) fn resume(
        description: TopologyDescription,
        ids: BTreeMap<ServerId, Arc<ServerAddress>>,
        last_id: ServerId,
        seeds: BTreeSet<Arc<ServerAddress>>,
        is_closed: bool,
    ) -> Self {
        let description = Arc::new(description);
        Self { description, ids, last_id, seeds, previous: None, is_closed }
    }

    pub(crate) const fn ids(&self) -> &BTreeMap<ServerId, Arc<ServerAddress>> {
        &self.ids
    }

    pub(crate) const fn last_id(&self) -> ServerId {
        self.last_id
    }

    pub(crate) const fn seeds(&self) -> &BTreeSet<Arc<ServerAddress>> {
        &self.seeds
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Where one of the servers is; `None` if it was removed.
    pub(crate) fn address(&self, id: ServerId) -> Option<&Arc<ServerAddress>> {
        self.ids.get(&id)
    }

    /// What is known of the deployment.
    #[must_use]
    pub const fn description(&self) -> &Arc<TopologyDescription> {
        &self.description
    }

    /// The events of the beginning tell of the servers first, and then open them.
    // SE-04, SE-11
    fn open(&mut self, options: TopologyOptions, out: &mut impl ActionSink) {
        let edited = self.edit();
        edited.kind = options.kind();
        edited.set_name = options.set_name;
        out.act(Action::EmitEvent(Event::TopologyOpening));
        // SD-07: in the order of the connection string, in which servers are numbered.
        let hosts = distinct(options.hosts).into_iter();
        let seeds: Vec<_> = hosts.filter_map(|host| self.seeds.get(&host).cloned()).collect();
        for address in &seeds {
            self.edit().servers.insert(Arc::clone(address), Arc::default());
        }
        self.tell_change(out);
        for address in seeds {
            self.tell_opening(&address, out);
            if self.description.kind == TopologyKind::LoadBalanced {
                self.replace(&address, Arc::new(ServerDescription::load_balancer()), out);
            }
        }
        self.tell_change(out);
    }

    // SV-13
    fn hosts_changed(&mut self, hosts: Vec<ServerAddress>, out: &mut impl ActionSink) {
        let polls = matches!(self.description.kind, TopologyKind::Unknown | TopologyKind::Sharded);
        if hosts.is_empty() || !(polls || self.description.is_lost()) {
            return;
        }
        self.seeds = hosts.iter().cloned().map(Arc::new).collect();
        let seeds = self.seeds.clone();
        self.keep_only(&seeds, out);
        if self.description.excluded.keys().any(|address| !seeds.contains(address)) {
            self.edit().excluded.retain(|address, _| seeds.contains(address));
        }
        for address in hosts {
            self.add(&address, out);
        }
    }

    // SE-05
    fn close(&mut self, out: &mut impl ActionSink) {
        self.is_closed = true;
        self.keep_only(&BTreeSet::new(), out);
        *self.edit() = TopologyDescription::default();
        self.tell_change(out);
        out.act(Action::EmitEvent(Event::TopologyClosed));
    }
}

/// How the description is edited. One that somewhere else is still looked at is copied first.
impl Topology {
    /// To change something that events tell of.
    pub(super) fn edit(&mut self) -> &mut TopologyDescription {
        self.previous.get_or_insert_with(|| Arc::clone(&self.description));
        Arc::make_mut(&mut self.description)
    }

    /// To change something that they do not tell of.
    pub(super) fn edit_silently(&mut self) -> &mut TopologyDescription {
        Arc::make_mut(&mut self.description)
    }

    pub(super) fn set_kind(&mut self, kind: TopologyKind) {
        if self.description.kind != kind {
            self.edit().kind = kind;
        }
    }

    /// Describes a server of this topology.
    pub(super) fn replace(
        &mut self,
        address: &ServerAddress,
        new: Arc<ServerDescription>,
        out: &mut impl ActionSink,
    ) {
        let found = self.description.servers.get_key_value(address);
        let Some((address, previous)) = found.map(|(key, it)| (Arc::clone(key), Arc::clone(it)))
        else {
            return;
        };
        if previous.says_the_same_as(&new) {
            self.edit_silently().servers.insert(address, new);
            return;
        }
        self.edit().servers.insert(Arc::clone(&address), Arc::clone(&new));
        out.act(Action::EmitEvent(Event::ServerDescriptionChanged { address, previous, new }));
    }

    /// Adds a server, unless it is there.
    pub(super) fn add(&mut self, address: &ServerAddress, out: &mut impl ActionSink) {
        if self.description.servers.contains_key(address) {
            return;
        }
        let edited = self.edit();
        edited.excluded.remove(address);
        let address = Arc::new(address.clone());
        edited.servers.insert(Arc::clone(&address), Arc::default());
        self.tell_opening(&address, out);
    }

    /// Removes a server. If it is one of the connection string's, the reason is kept.
    pub(super) fn remove(
        &mut self,
        address: &ServerAddress,
        reason: ConnectionError,
        out: &mut impl ActionSink,
    ) {
        let Some((server, _)) = self.edit().servers.remove_entry(address) else { return };
        if self.seeds.contains(&server) {
            self.edit().excluded.insert(Arc::clone(&server), reason);
        }
        self.tell_closed(server, out);
    }

    fn keep_only(&mut self, kept: &BTreeSet<Arc<ServerAddress>>, out: &mut impl ActionSink) {
        let servers = self.description.servers.keys();
        let gone: Vec<_> = servers.filter(|server| !kept.contains(*server)).cloned().collect();
        for server in gone {
            self.edit().servers.remove(&server);
            self.tell_closed(server, out);
        }
    }

    // SE-03
    fn tell_opening(&mut self, address: &Arc<ServerAddress>, out: &mut impl ActionSink) {
        let event = Event::ServerOpening { address: Arc::clone(address) };
        out.act(Action::EmitEvent(event));
        let id = ServerId(self.last_id.0.saturating_add(1));
        self.last_id = id;
        self.ids.insert(id, Arc::clone(address));
        out.act(Action::AddServer { id, address: Arc::clone(address) });
    }

    fn tell_closed(&mut self, address: Arc<ServerAddress>, out: &mut impl ActionSink) {
        let found = self.ids.iter().find(|(_, its)| Arc::ptr_eq(its, &address));
        if let Some(id) = found.map(|(id, _)| *id) {
            self.ids.remove(&id);
            out.act(Action::RemoveServer { id, address: Arc::clone(&address) });
        }
        out.act(Action::EmitEvent(Event::ServerClosed { address }));
    }

    // SE-08
    fn tell_change(&mut self, out: &mut impl ActionSink) {
        if let Some(previous) = self.previous.take() {
            let new = Arc::clone(&self.description);
            out.act(Action::EmitEvent(Event::TopologyDescriptionChanged { previous, new }));
        }
    }
}
