//! Filters steps.

use cenote_core::pool::{Action, ConnId, Event, Input, WaiterId};
use cenote_core::trace::{ActionName, ActionRecord, StageRecord, Traced};
use cenote_core::uri::similar_name;

use super::condition::INPUTS;
use super::step_reader::View;
use super::topology;
use cenote_check::event_json;

/// Lets steps pass that match everything that is set.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// They are about one of these connections.
    pub connections: Vec<u64>,
    /// They are about one of these requests.
    pub waiters: Vec<u64>,
    /// They are not earlier, in nanoseconds since the origin.
    pub from: Option<u64>,
    /// They are not later, in nanoseconds since the origin.
    pub to: Option<u64>,
    /// They have an input, event or action of one of these names.
    pub types: Vec<String>,
}

/// Checks the name of an input, event or action.
///
/// # Errors
///
/// If no input, event or action has that name.
pub fn known_type(name: &str) -> Result<String, String> {
    let known = || Names::ALL.into_iter().flat_map(Names::known);
    if known().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let similar = similar(name, known());
    let similar = similar.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    Err(format!(
        "neither an input (CheckOutRequested, Clear, …) nor an event (ConnectionClosed, …) nor an \
         action (Deliver, CloseSocket, …) has this name{similar}"
    ))
}

/// The name that this one was meant for. What held a connection too long is a leak.
pub fn similar(
    name: &str,
    mut known: impl Iterator<Item = &'static str> + Clone,
) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let is_leak = lower.contains("held") || lower.contains("leak");
    let leak = known.clone().find(|&known| is_leak && known == "ReportLeak");
    leak.or_else(move || similar_name(name, &mut known))
}

/// What a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Inputs.
    Inputs,
    /// Events.
    Events,
    /// Actions other than events.
    Actions,
}

impl Names {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Inputs, Self::Events, Self::Actions];

    /// One of them, as in a condition.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Inputs => "input",
            Self::Events => "event",
            Self::Actions => "action",
        }
    }

    /// Those that this word is for.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|names| names.word() == word)
    }

    /// The names in traces of pools, and in those of topologies.
    const fn of_traces(self) -> [&'static [&'static str]; 2] {
        match self {
            Self::Inputs => [&INPUTS, &topology::INPUTS],
            Self::Events => [&event_json::TYPES, &topology::EVENTS],
            Self::Actions => [&ACTIONS, &topology::ACTIONS],
        }
    }

    /// The names in traces of both.
    pub fn known(self) -> impl Iterator<Item = &'static str> + Clone {
        self.of_traces().into_iter().flatten().copied()
    }
}

/// The names of actions other than events, in the order of [`ActionName::ALL`].
pub const ACTIONS: [&str; 9] = [
    "StartEstablish",
    "AbortEstablish",
    "Deliver",
    "CloseSocket",
    "Interrupt",
    "ReportLeak",
    "StartDrain",
    "AbortDrain",
    "ReportUnanswered",
];

/// The name of an action; of an event, the event's name.
pub fn name_of(action: &Action<Traced>) -> &'static str {
    let place = |name| ActionName::ALL.iter().position(|known| *known == name);
    if let Action::EmitEvent(event) = action {
        return event.name();
    }
    ActionRecord::of(action).and_then(|it| place(it.name)).map_or("", |place| ACTIONS[place])
}

impl Filter {
    /// Whether a stage is shown: where steps are not chosen by requests or types.
    pub fn lets_stage_pass(&self, stage: &StageRecord) -> bool {
        let at = stage.at.as_nanos();
        let is_chosen = self.connections.is_empty() || self.connections.contains(&stage.connection);
        let is_in_time =
            self.from.is_none_or(|from| at >= from) && self.to.is_none_or(|to| at <= to);
        is_chosen && is_in_time && self.waiters.is_empty() && self.types.is_empty()
    }

    /// Whether the step passes.
    pub fn lets_pass(&self, view: &View<'_>) -> bool {
        let Self { connections, waiters, from, to, types } = self;
        let at = view.step.at.as_nanos();
        from.is_none_or(|from| at >= from)
            && to.is_none_or(|to| at <= to)
            && (connections.is_empty() || self.is_about_connection(view))
            && (waiters.is_empty() || self.is_about_waiter(view))
            && (types.is_empty() || self.is_of_type(view))
    }

    fn is_about_connection(&self, view: &View<'_>) -> bool {
        let wanted =
            |number: Option<u64>| number.is_some_and(|number| self.connections.contains(&number));
        wanted(connection_of(&view.step.input))
            || view.actions.iter().any(|action| wanted(connection_of_action(action)))
    }

    /// Whether the step is about the request, or about the connection that it holds.
    fn is_about_waiter(&self, view: &View<'_>) -> bool {
        let wanted = |id: WaiterId| self.waiters.contains(&id.0);
        let asked = if let Input::CheckOutRequested { id, .. } | Input::CheckOutCancelled { id } =
            &view.step.input
        {
            wanted(*id)
        } else {
            let number = connection_of(&view.step.input);
            let holder = number.and_then(|number| view.holders.last_holder.get(&number));
            holder.is_some_and(|&id| wanted(id))
        };
        let answered = |action: &Action<Traced>| matches!(action, Action::Deliver { waiter, .. } if wanted(*waiter));
        asked || view.actions.iter().any(answered)
    }

    fn is_of_type(&self, view: &View<'_>) -> bool {
        let wanted = |name: &str| self.types.iter().any(|wanted| wanted == name);
        wanted(view.step.input.name()) || view.actions.iter().any(|action| wanted(name_of(action)))
    }
}

/// The connection that an input is about.
pub fn connection_of(input: &Input<Traced>) -> Option<u64> {
    if let Input::CheckedIn { id, .. }
    | Input::Repurposed { id, .. }
    | Input::Handshaken { id, .. }
    | Input::EstablishSucceeded { id, .. }
    | Input::EstablishFailed { id, .. }
    | Input::DrainSucceeded { id, .. }
    | Input::DrainFailed { id, .. }
    | Input::DrainProgress { id }
    | Input::IdleClosedByPeer { id, .. } = input
    {
        return Some(id.number());
    }
    None
}

fn connection_of_action(action: &Action<Traced>) -> Option<u64> {
    if let Action::EmitEvent(event) = action {
        return connection_of_event(event);
    }
    ActionRecord::of(action)?.connection.map(ConnId::number)
}

/// The connection that an event is about.
pub fn connection_of_event<C>(event: &Event<C>) -> Option<u64> {
    if let Event::ConnectionCreated { connection_id }
    | Event::ConnectionReady { connection_id, .. }
    | Event::ConnectionClosed { connection_id, .. }
    | Event::ConnectionCheckedOut { connection_id, .. }
    | Event::ConnectionPendingResponseStarted { connection_id, .. }
    | Event::ConnectionPendingResponseSucceeded { connection_id, .. }
    | Event::ConnectionPendingResponseFailed { connection_id, .. }
    | Event::ConnectionCheckedIn { connection_id } = event
    {
        return Some(*connection_id);
    }
    None
}
