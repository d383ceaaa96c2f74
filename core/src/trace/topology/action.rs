//! What followed from an input, as traces hold it.

use core::fmt;
use std::sync::Arc;

use crate::address::ServerAddress;
use crate::connect::ServerKind;
use crate::topology::{Action, Event, ServerId, TopologyKind};

/// An [`Action`] of a topology: of descriptions the types alone. Names and types are as the specifications spell them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ActionRecord {
    /// `AddServer`, `RemoveServer`, or the name of an [event](Event::name).
    pub name: &'static str,
    /// The server that it is about, if it is about one.
    pub server: Option<Arc<ServerAddress>>,
    /// If the server is added or removed: which one it is.
    pub id: Option<ServerId>,
    /// If it is a change of a description: the type of the topology or of the server before, and now.
    pub change: Option<[&'static str; 2]>,
}

impl ActionRecord {
    /// The action without what traces leave out.
    #[must_use]
    pub fn of(action: &Action) -> Self {
        let (name, server, id, change) = match action {
            Action::AddServer { id, address } => ("AddServer", Some(address), Some(*id), None),
            Action::RemoveServer { id, address } => {
                ("RemoveServer", Some(address), Some(*id), None)
            }
            Action::EmitEvent(event) => {
                let (server, change) = match event {
                    Event::TopologyOpening | Event::TopologyClosed => (None, None),
                    Event::TopologyDescriptionChanged { previous, new } => {
                        (None, Some([previous.kind.name(), new.kind.name()]))
                    }
                    Event::ServerOpening { address } | Event::ServerClosed { address } => {
                        (Some(address), None)
                    }
                    Event::ServerDescriptionChanged { address, previous, new } => {
                        (Some(address), Some([previous.kind(), new.kind()].map(kind_name)))
                    }
                };
                (event.name(), server, None, change)
            }
        };
        Self { name, server: server.map(Arc::clone), id, change }
    }

    /// All names.
    pub(super) const NAMES: [&'static str; 8] = [
        "AddServer",
        "RemoveServer",
        "TopologyOpening",
        "TopologyDescriptionChanged",
        "TopologyClosed",
        "ServerOpening",
        "ServerDescriptionChanged",
        "ServerClosed",
    ];

    /// All types of topologies and of servers.
    pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
        let servers = ServerKind::ALL.into_iter().map(Some).chain([None]).map(kind_name);
        TopologyKind::ALL.into_iter().map(TopologyKind::name).chain(servers)
    }

    /// Whether a server or a type is another one: otherwise only texts are.
    pub(super) fn changes_a_kind(&self) -> bool {
        self.change.is_none_or(|[was, now]| was != now)
    }
}

/// As traces spell the type of a server.
pub(super) const fn kind_name(kind: Option<ServerKind>) -> &'static str {
    match kind {
        Some(kind) => kind.name(),
        None => "Unknown",
    }
}

/// As in `AddServer a.example.com:27017 as server 3` and
/// `ServerDescriptionChanged a.example.com:27017 Unknown -> RSPrimary`.
impl fmt::Display for ActionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, server, id, change } = self;
        f.write_str(name)?;
        if let Some(server) = server {
            write!(f, " {server}")?;
        }
        if let Some(ServerId(id)) = id {
            write!(f, " as server {id}")?;
        }
        match change {
            Some([was, now]) => write!(f, " {was} -> {now}"),
            None => Ok(()),
        }
    }
}
