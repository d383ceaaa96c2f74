//! What the topology promises to embedders and to subscribers of its events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::connect::{Membership, ServerKind};
use cenote_core::error::ConnectionError;
use cenote_core::monitor::ServerDescription;
use cenote_core::topology::{
    Action, Event, Input, ServerId, TopologyDescription, TopologyKind, TopologyOptions,
};

use super::model::Model;

/// Everything that the topology has emitted, as far as later actions depend on it.
#[derive(Debug)]
pub(super) struct Judge {
    model: Model,
    /// The servers that are open, as they were described last.
    open: BTreeMap<Arc<ServerAddress>, Arc<ServerDescription>>,
    /// Those that were added and not removed.
    added: BTreeMap<Arc<ServerAddress>, ServerId>,
    last_id: ServerId,
    /// As subscribers were told.
    told: Arc<TopologyDescription>,
    phase: Phase,
    elections: Elections,
    set_name: Option<String>,
    /// The servers that this input has described.
    described: BTreeSet<Arc<ServerAddress>>,
}

/// Where the history is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Before,
    Open,
    Closed,
}

/// The newest elections of primaries that were believed.
#[derive(Debug, Default)]
struct Elections {
    /// Of servers from 6.0 on, which compare `electionId` first.
    newest: Option<(Option<[u8; 12]>, Option<i64>)>,
    /// Of older servers, which compare `setVersion` first, and only where both are told.
    newest_old: Option<(i64, [u8; 12])>,
}

impl Judge {
    pub(super) fn new(options: &TopologyOptions) -> Self {
        Self {
            model: Model::new(options),
            open: BTreeMap::new(),
            added: BTreeMap::new(),
            last_id: ServerId(0),
            told: Arc::default(),
            phase: Phase::Before,
            elections: Elections::default(),
            set_name: options.set_name.clone(),
            described: BTreeSet::new(),
        }
    }

    /// Judges an action by those before it.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn emitted(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::AddServer { id, address } => {
                let is_new = *id > std::mem::replace(&mut self.last_id, *id);
                match self.added.insert(Arc::clone(address), *id) {
                    None if is_new => Ok(()),
                    other => {
                        Err(format!("{address} is added as {id:?}, and is there as {other:?}"))
                    }
                }
            }
            Action::RemoveServer { id, address } => match self.added.remove(address) {
                Some(its) if its == *id => Ok(()),
                other => Err(format!("{address} is removed as {id:?}, and is there as {other:?}")),
            },
            Action::EmitEvent(event) => {
                self.told(event).map_err(|what| format!("{}: {what}", event.name()))
            }
        }
    }

    fn told(&mut self, event: &Event) -> Result<(), String> {
        let is_opening = matches!(event, Event::TopologyOpening);
        let expected = if is_opening { Phase::Before } else { Phase::Open };
        if self.phase != expected {
            return Err(format!("out of order: {:?}", self.phase));
        }
        match event {
            Event::TopologyOpening => self.phase = Phase::Open,
            Event::TopologyClosed => {
                self.phase = Phase::Closed;
                if !self.open.is_empty() {
                    return Err(format!("servers are open: {:?}", self.open.keys()));
                }
            }
            Event::ServerOpening { address } => {
                if self.open.insert(Arc::clone(address), Arc::default()).is_some() {
                    return Err(format!("{address} is open already"));
                }
            }
            Event::ServerClosed { address } => {
                if self.open.remove(address).is_none() {
                    return Err(format!("{address} is not open"));
                }
            }
            Event::ServerDescriptionChanged { address, previous, new } => {
                self.described.insert(Arc::clone(address));
                let last = self.open.insert(Arc::clone(address), Arc::clone(new));
                let last = last.ok_or_else(|| format!("{address} is not open"))?;
                if !is_same(&last, previous) {
                    return Err(format!("{address} was {last}, not {previous}"));
                }
                if is_same(previous, new) {
                    return Err(format!("nothing has changed: {new}"));
                }
                expect_versions_in_order(previous, new)?;
            }
            Event::TopologyDescriptionChanged { previous, new } => {
                if !is_same_topology(&self.told, previous) {
                    return Err(format!("it was {}, not {previous}", self.told));
                }
                if is_same_topology(previous, new) {
                    return Err(format!("nothing has changed: {new}"));
                }
                self.told = Arc::clone(new);
            }
            other => return Err(format!("an event of another kind: {other:?}")),
        }
        Ok(())
    }

    /// Whether this server is the one that is at this address now.
    pub(super) fn is_added(&self, address: &ServerAddress, id: ServerId) -> bool {
        self.added.get(address) == Some(&id)
    }

    /// A check has succeeded, of which subscribers are told before what it has found (SE-02).
    ///
    /// # Errors
    ///
    /// They know already.
    pub(super) fn checked(&self, address: &ServerAddress) -> Result<(), String> {
        match self.described.contains(address) {
            true => Err(format!("{address}: what a check has found is told before its end")),
            false => Ok(()),
        }
    }

    /// A pool is made ready when subscribers know that its server can be used, and not before (SD-04, SD-05).
    ///
    /// # Errors
    ///
    /// What they know.
    pub(super) fn made_ready(&self, id: ServerId) -> Result<(), String> {
        let its = self.added.iter().find(|(_, its)| **its == id);
        match its.is_some_and(|(address, _)| self.told.is_usable(address)) {
            true => Ok(()),
            false => {
                Err(format!("the pool of {id:?} is made ready, and events tell of {}", self.told))
            }
        }
    }

    /// What the topology is told. Returns the server that it is about.
    pub(super) fn feed(&mut self, input: &Input) -> Option<Arc<ServerAddress>> {
        let about = match input {
            Input::Described { id, .. } => self.added.iter().find(|(_, its)| *its == id),
            Input::Hosts { .. } | Input::Close => None,
        };
        let about = about.map(|(address, _)| Arc::clone(address));
        self.model.apply(input, about.as_deref());
        about
    }

    /// Judges the description after inputs about these servers, whose actions were judged.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn follow(
        &mut self,
        about: &[Arc<ServerAddress>],
        description: &Arc<TopologyDescription>,
    ) -> Result<(), String> {
        self.described.clear();
        if self.phase == Phase::Open {
            about.iter().try_for_each(|it| self.elections.believed(it, description))?;
        }
        self.compare(description)
    }

    /// Judges the description by itself, by the events, and by SDAM's tables.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn compare(&mut self, description: &TopologyDescription) -> Result<(), String> {
        let servers = || description.servers().map(|(address, _)| address);
        if !servers().eq(self.added.keys()) {
            let added = self.added.keys();
            return Err(format!("{added:?} were added and not removed; described: {description}"));
        }
        if !servers().eq(self.open.keys()) || !is_same_topology(&self.told, description) {
            return Err(format!("events tell of {}; it is {description}", self.told));
        }
        if let Some((host, _)) =
            description.excluded().find(|(it, _)| description.server(it).is_some())
        {
            return Err(format!("{host} is used and is not used: {description}"));
        }
        self.expect_one_set(description)?;
        self.model.compare(description)
    }

    /// At most one primary is believed, and the members of one set, whose name stays.
    fn expect_one_set(&mut self, description: &TopologyDescription) -> Result<(), String> {
        if !description.kind.is_replica_set() {
            return Ok(());
        }
        let kinds = description.servers().filter_map(|(_, server)| server.kind());
        let primaries = kinds.filter(|kind| *kind == ServerKind::RsPrimary).count();
        let expected = usize::from(description.kind == TopologyKind::ReplicaSetWithPrimary);
        if primaries != expected {
            return Err(format!("{primaries} primaries: {description}"));
        }
        let set_name = description.set_name.as_deref();
        if self.set_name.is_some() && self.set_name.as_deref() != set_name {
            return Err(format!("the set was {:?}, and is {set_name:?}", self.set_name));
        }
        self.set_name = set_name.map(str::to_owned);
        // A ghost has no configuration yet, and may still become a member of the right set.
        let is_other = |server: &ServerDescription| {
            let is_ghost = server.kind() == Some(ServerKind::RsGhost);
            !is_ghost && server.set_name().is_some_and(|its| Some(its) != set_name)
        };
        match description.servers().find(|(_, server)| is_other(server)) {
            Some((address, _)) => Err(format!("{address} is of another set: {description}")),
            None => Ok(()),
        }
    }
}

impl Elections {
    /// The primary that is believed was elected last, or has a newer configuration. What servers of the other kind said
    /// before does not count.
    fn believed(
        &mut self,
        address: &ServerAddress,
        description: &TopologyDescription,
    ) -> Result<(), String> {
        let Some((_, server)) = description.primary().filter(|(its, _)| ***its == *address) else {
            return Ok(());
        };
        let hello = server.hello.as_deref().ok_or("a primary without a reply")?;
        if !description.kind.is_replica_set() {
            return Ok(());
        }
        let none = Membership::default();
        let said = hello.membership.as_deref().unwrap_or(&none);
        let (election, version) = (said.election_id, said.set_version);
        let is_older = if hello.max_wire_version >= 17 {
            self.newest_old = None;
            let last = self.newest.replace((election, version));
            last.is_some_and(|last| (election, version) < last)
        } else {
            self.newest = None;
            let told = version.zip(election);
            let last = told.and_then(|told| self.newest_old.replace(told));
            told < last
        };
        if is_older {
            return Err(format!(
                "{address} is believed as the primary of election {election:?} and setVersion {version:?}, which \
                 are older than those of a primary before"
            ));
        }
        Ok(())
    }
}

/// Whether both say the same of a server. Times, and how the server calls the connection, do not count.
fn is_same(one: &ServerDescription, other: &ServerDescription) -> bool {
    let said = |server: &ServerDescription| {
        let hello = server.hello.as_deref();
        hello.map(|it| (it.min_wire_version, it.max_wire_version, it.membership.clone()))
    };
    let why = |server: &ServerDescription| server.error.as_ref().map(ConnectionError::to_string);
    one.kind() == other.kind()
        && one.set_name() == other.set_name()
        && one.topology_version == other.topology_version
        && said(one) == said(other)
        && why(one) == why(other)
}

fn is_same_topology(one: &TopologyDescription, other: &TopologyDescription) -> bool {
    one.kind == other.kind
        && one.set_name == other.set_name
        && one.servers().len() == other.servers().len()
        && one.servers().zip(other.servers()).all(|((address, server), (its, other))| {
            address == its && (Arc::ptr_eq(server, other) || is_same(server, other))
        })
        && one.excluded().map(|(address, _)| address).eq(other.excluded().map(|(it, _)| it))
}

/// `topologyVersion` does not run backwards within one process, unless the server was Unknown without one meanwhile.
fn expect_versions_in_order(
    previous: &ServerDescription,
    new: &ServerDescription,
) -> Result<(), String> {
    let (Some(before), Some(after)) = (previous.topology_version, new.topology_version) else {
        return Ok(());
    };
    if before.process_id == after.process_id && before.counter > after.counter {
        return Err(format!("topologyVersion {} after {}", after.counter, before.counter));
    }
    Ok(())
}
