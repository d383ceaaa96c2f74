//! Recorded inputs, on their way out of the lock of the topology.

use core::fmt;
use std::sync::Arc;

use crate::address::ServerAddress;
use crate::connect::{ConnectionDescription, Membership};
use crate::monitor::{RoundTrip, ServerDescription};
use crate::pool::Instant;
use crate::topology::{Input, ServerId, Topology};

use super::action::ActionRecord;
use super::selection::SelectionRecord;

/// A stretch of recorded inputs; [`TraceWriter`](super::TraceWriter) turns it into documents. It shares what it holds
/// with the topology, and may go to another thread.
#[derive(Clone, Default)]
pub struct Chunk {
    pub(super) entries: Vec<Entry>,
    /// The state in which it begins, if it does not go on where the one before it ended.
    pub(super) start: Option<Start>,
    /// How much memory the entries take, about.
    pub(super) weight: usize,
}

/// Where recording begins, or begins again.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) now: Instant,
    pub(super) topology: Topology,
    /// How many steps there were before it.
    pub(super) steps: u64,
    /// Inputs before it that were not recorded.
    pub(super) lost: u64,
}

/// An input, and what followed from it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) now: Instant,
    pub(super) input: Recorded,
    pub(super) actions: Vec<ActionRecord>,
}

#[derive(Clone, Debug)]
pub(super) enum Recorded {
    Described {
        id: ServerId,
        description: Arc<ServerDescription>,
    },
    /// It says the same of the server as what was known of it: only times are others.
    Same {
        id: ServerId,
        round_trip: Option<RoundTrip>,
        last_write_ms: Option<i64>,
        updated: Option<Instant>,
    },
    Hosts {
        hosts: Vec<ServerAddress>,
    },
    Close,
    /// No input of the topology.
    Selection(SelectionRecord),
}

impl Chunk {
    /// One that begins in this state.
    pub(super) fn from(now: Instant, topology: &Topology, steps: u64, lost: u64) -> Self {
        let start = Start { now, topology: topology.clone(), steps, lost };
        Self { start: Some(start), ..Self::default() }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.weight += entry.weight();
        self.entries.push(entry);
    }

    /// How many inputs are in it.
    #[must_use]
    pub fn inputs(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Whether there is nothing to write.
    pub(super) fn is_blank(&self) -> bool {
        self.start.is_none() && self.entries.is_empty()
    }
}

impl Entry {
    /// `topology` is that after the input.
    pub(super) fn new(
        now: Instant,
        input: Input,
        actions: Vec<ActionRecord>,
        topology: &Topology,
    ) -> Self {
        let input = match input {
            Input::Described { id, description } => described(id, description, &actions, topology),
            Input::Hosts { hosts } => Recorded::Hosts { hosts },
            Input::Close => Recorded::Close,
        };
        Self { now, input, actions }
    }

    /// Whether it can be written: all but what a hostile server makes up.
    pub(super) fn is_writable(&self) -> bool {
        self.weight() <= WEIGHT_MAX
    }

    fn weight(&self) -> usize {
        let input = match &self.input {
            Recorded::Described { description, .. } => weight_of(description),
            Recorded::Hosts { hosts } => weight_of_hosts(hosts),
            Recorded::Selection(selection) => selection.weight(),
            Recorded::Same { .. } | Recorded::Close => 0,
        };
        size_of::<Self>() + input + self.actions.len() * size_of::<ActionRecord>()
    }
}

/// What the machine takes over without an event is what it knew already.
fn described(
    id: ServerId,
    description: Arc<ServerDescription>,
    actions: &[ActionRecord],
    topology: &Topology,
) -> Recorded {
    let address = topology.address(id);
    let known = address.and_then(|address| topology.description().server(address));
    let is_taken_over = known.is_some_and(|known| Arc::ptr_eq(known, &description));
    let is_told =
        |action: &ActionRecord| action.change.is_some() && action.server.as_ref() == address;
    if !is_taken_over || actions.iter().any(is_told) {
        return Recorded::Described { id, description: without_reply(description) };
    }
    let last_write_ms = description.hello.as_deref().and_then(|hello| hello.last_write_ms);
    let (round_trip, updated) = (description.round_trip, description.updated);
    Recorded::Same { id, round_trip, last_write_ms, updated }
}

/// A reply is not recorded, and may be large.
fn without_reply(description: Arc<ServerDescription>) -> Arc<ServerDescription> {
    let Some(hello) = description.hello.as_deref().filter(|hello| hello.reply.is_some()) else {
        return description;
    };
    let hello = Some(Arc::new(ConnectionDescription { reply: None, ..hello.clone() }));
    Arc::new(ServerDescription { hello, ..(*description).clone() })
}

/// Whether the state can be written.
pub(super) fn is_writable(topology: &Topology) -> bool {
    let description = topology.description();
    let mut servers = description.servers();
    servers.all(|(_, server)| weight_of(server) <= WEIGHT_MAX)
        && weight_of_hosts(topology.seeds().iter().map(|host| &**host)) <= WEIGHT_MAX
}

fn weight_of(description: &ServerDescription) -> usize {
    let of_hello = |hello: &ConnectionDescription| {
        let set_name = hello.set_name.as_deref().map_or(0, str::len);
        let membership = hello.membership.as_deref().map_or(0, weight_of_membership);
        size_of::<ConnectionDescription>() + set_name + membership
    };
    let hello = description.hello.as_deref().map_or(0, of_hello);
    let error = description.error.as_ref().map_or(0, |error| error.reason().len());
    size_of::<ServerDescription>() + hello + error
}

fn weight_of_membership(membership: &Membership) -> usize {
    let Membership { hosts, passives, arbiters, tags, .. } = membership;
    let hosts = weight_of_hosts(hosts.iter().chain(passives).chain(arbiters));
    let tags = tags.iter().map(|(name, value)| name.len() + value.len() + OVERHEAD);
    size_of::<Membership>() + hosts + tags.sum::<usize>()
}

fn weight_of_hosts<'a>(hosts: impl IntoIterator<Item = &'a ServerAddress>) -> usize {
    hosts.into_iter().map(|host| host.host().len() + OVERHEAD).sum()
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entries, start, weight: _ } = self;
        write!(f, "Chunk({} inputs, ", entries.len())?;
        f.write_str(if start.is_some() { "from a state)" } else { "going on)" })
    }
}

/// What an element of a list takes besides its text, in memory and in a document.
const OVERHEAD: usize = size_of::<ServerAddress>();
/// The heaviest input that is recorded: a replica set has 50 members. Its document is not larger.
const WEIGHT_MAX: usize = 256 << 10;
