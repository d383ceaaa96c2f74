//! What a step changed: which servers there are, and what each is.

use std::fmt;

use cenote_core::address::ServerAddress;
use cenote_core::connect::ServerKind;
use cenote_core::monitor::ServerDescription;
use cenote_core::pool::Instant;
use cenote_core::topology::{Action, Event, Input, ServerId, TopologyDescription, TopologyKind};
use cenote_core::trace::topology::{Step, StepInput};

use super::step_reader::View;
use crate::clock::Clock;
use crate::text::counted;

/// What a step changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The number of the step in the trace.
    pub step: u64,
    /// Its number among all of the client's, which steps of pools follow.
    pub client_step: u64,
    /// When it happened.
    pub at: Instant,
    /// Inputs before it that were not recorded.
    pub lost: Option<u64>,
    /// The parts of the change, one at least unless inputs were lost.
    pub effects: Vec<Effect>,
    /// The member that was elected, if one was.
    pub elected: Option<String>,
}

/// A part of a change. Servers are named by their addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// There is one more server.
    Added(String),
    /// There is one less, and for this reason.
    Removed(String, String),
    /// A server is something else.
    Became {
        /// Its address.
        server: String,
        /// What it was; `None` is Unknown.
        was: Option<ServerKind>,
        /// What it is; `None` is Unknown.
        now: Option<ServerKind>,
        /// The same in words, with its round trip and its tags, or with the error for which it is Unknown.
        text: String,
    },
    /// The topology is of another type.
    Kind(TopologyKind, TopologyKind),
    /// The client was closed.
    Closed,
}

impl Change {
    pub(super) fn of(
        step: &Step,
        before: &TopologyDescription,
        actions: &[Action],
        after: &TopologyDescription,
    ) -> Option<Self> {
        let lost = step.lost_before;
        let effects = match lost {
            None => Effect::of_step(step, actions, after),
            // What happened meanwhile is unknown, but not what came of it.
            Some(_) => differences(before, after),
        };
        let elected = effects.iter().find_map(|effect| effect.elected(before, after));
        let elected = elected.map(ToOwned::to_owned);
        let is_change = lost.is_some() || !effects.is_empty();
        let Step { number, client_step, at, .. } = *step;
        is_change.then_some(Self { step: number, client_step, at, lost, effects, elected })
    }
}

impl Effect {
    /// That the servers of a client go when it is closed says nothing about them.
    fn of_step(step: &Step, actions: &[Action], after: &TopologyDescription) -> Vec<Self> {
        let is_closed = matches!(step.input, StepInput::Topology(Input::Close));
        if is_closed && !actions.is_empty() {
            return vec![Self::Closed];
        }
        actions.iter().filter_map(|action| Self::of(action, step, after)).collect()
    }

    fn of(action: &Action, step: &Step, after: &TopologyDescription) -> Option<Self> {
        Some(match action {
            Action::AddServer { address, .. } => Self::Added(address.to_string()),
            Action::RemoveServer { address, .. } => {
                Self::Removed(address.to_string(), why_removed(address, step, after))
            }
            Action::EmitEvent(Event::ServerDescriptionChanged { address, previous, new }) => {
                Self::became(address.to_string(), previous, new)
            }
            Action::EmitEvent(Event::TopologyDescriptionChanged { previous, new }) => {
                return (previous.kind != new.kind).then_some(Self::Kind(previous.kind, new.kind));
            }
            Action::EmitEvent(_) => return None,
        })
    }

    fn became(server: String, was: &ServerDescription, now: &ServerDescription) -> Self {
        let text = now.details().to_string();
        Self::Became { server, was: was.kind(), now: now.kind(), text }
    }

    /// The server that it is about.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Added(server) | Self::Removed(server, _) | Self::Became { server, .. } => {
                Some(server)
            }
            Self::Kind(..) | Self::Closed => None,
        }
    }

    /// A primary that is only found, at the beginning or again, was elected before: the number of its election tells,
    /// or, if its set has none, that it or another one was a primary or a member before.
    fn elected(&self, before: &TopologyDescription, after: &TopologyDescription) -> Option<&str> {
        let Self::Became { server, was, now: Some(ServerKind::RsPrimary), .. } = self else {
            return None;
        };
        let is_elected = match (before.max_election_id, after.max_election_id) {
            (Some(before), Some(after)) => before != after,
            _ => was.is_some() || before.primary().is_some(),
        };
        (is_elected && *was != Some(ServerKind::RsPrimary)).then_some(server)
    }
}

/// Of a host of the connection string the topology knows the reason; of another server the input tells it.
fn why_removed(server: &ServerAddress, step: &Step, after: &TopologyDescription) -> String {
    if let Some((_, reason)) = after.excluded().find(|(host, _)| ***host == *server) {
        return reason.to_string();
    }
    let StepInput::Topology(input) = &step.input else { return String::new() };
    match (input, step.server.as_deref()) {
        (Input::Described { .. }, Some(described)) if described != server => {
            format!("the primary, {described}, does not list it as a member")
        }
        (Input::Described { .. }, _) => "what it said does not fit the others".to_owned(),
        (Input::Hosts { .. }, _) => "the SRV records do not name it".to_owned(),
        (Input::Close, _) => "the client was closed".to_owned(),
    }
}

fn differences(before: &TopologyDescription, after: &TopologyDescription) -> Vec<Effect> {
    let mut effects = Vec::new();
    for (address, _) in before.servers() {
        if after.server(address).is_none() {
            let reason = "what told so was not recorded".to_owned();
            effects.push(Effect::Removed(address.to_string(), reason));
        }
    }
    let nothing = ServerDescription::default();
    for (address, server) in after.servers() {
        let known = before.server(address);
        if known.is_none() {
            effects.push(Effect::Added(address.to_string()));
        }
        let known = known.map_or(&nothing, |known| known);
        if known.to_string() != server.to_string() {
            effects.push(Effect::became(address.to_string(), known, server));
        }
    }
    if before.kind != after.kind {
        effects.push(Effect::Kind(before.kind, after.kind));
    }
    effects
}

/// A step that changes nothing, in words.
pub fn unchanged(step: &Step) -> String {
    let input = match &step.input {
        StepInput::Selection(selection) => return selection.to_string(),
        StepInput::Topology(input) => input,
    };
    let input = match input {
        Input::Described { id: ServerId(id), description } => {
            let details = description.details();
            match &step.server {
                Some(address) => format!("{address}: {details}"),
                None => format!("server {id}, which was removed: {details}"),
            }
        }
        Input::Hosts { hosts } => {
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            format!("the SRV records name {}", hosts.join(", "))
        }
        Input::Close => "the client was closed".to_owned(),
    };
    format!("{input}; nothing changes")
}

/// A step in one line: number, time, wall-clock time if there is one, and what it changed or said.
pub fn line(view: &View<'_>, clock: &Clock) -> String {
    let step = view.step;
    let told = view.change.map_or_else(|| unchanged(step), ToString::to_string);
    let time = clock.time(step.at).map(|time| format!("  {time}")).unwrap_or_default();
    format!("{:>7}  {}{time}  {told}", step.number, step.at)
}

/// As in `a.example.com:27017: RSPrimary -> Unknown: connect: connection refused; ReplicaSetNoPrimary`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let Some(lost) = self.lost {
            write!(f, "{} not recorded", counted(lost, "input was", "inputs were"))?;
            separator = "; ";
        }
        for effect in &self.effects {
            write!(f, "{separator}{effect}")?;
            separator = "; ";
        }
        Ok(())
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(server) => write!(f, "{server} is added"),
            Self::Removed(server, reason) => write!(f, "{server} is removed: {reason}"),
            Self::Became { server, was, now, text } if was == now => write!(f, "{server}: {text}"),
            Self::Became { server, was, text, .. } => {
                let was = was.map_or("Unknown", ServerKind::name);
                write!(f, "{server}: {was} -> {text}")
            }
            Self::Kind(was, now) => write!(f, "{was} -> {now}"),
            Self::Closed => f.write_str("the client was closed"),
        }
    }
}
