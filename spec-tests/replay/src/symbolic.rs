//! Symbolic inputs keep their meaning when others are removed: a connection is identified by the
//! request that held it or for which it was created, because its number would change.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cenote_core::pool::{
    Action, ConnId, ConnectionState, Input, Instant, PoolState, WaiterId, WithoutEvents,
};
use cenote_core::trace::Traced;

use super::filter::connection_of;
use super::history::{Entry, History, feed};

/// An input, and the role of its connection in the recording.
#[derive(Clone, Debug)]
pub(super) struct Symbolic {
    entry: Entry,
    /// The nanoseconds since the previous input.
    since_last: i64,
    about: Option<Role>,
    /// It is about a connection that the pool had aborted by then.
    is_late: bool,
    /// It came exactly at a deadline.
    is_due: bool,
}

/// The role of a connection, as far as the trace tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// The last connection that was delivered to this request.
    HeldBy(WaiterId),
    /// The connection that was created for this request.
    MadeFor(WaiterId),
    /// The connection with this index among those that were created for the minimum pool size.
    Background(u64),
    /// It existed when the trace began, or never existed.
    Itself,
}

/// How time passes when inputs are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeline {
    /// The interval before each input is as recorded: omitted inputs take no time.
    Closed,
    /// The times are as recorded, with gaps.
    Open,
    /// As `Closed`, but inputs that came exactly at a deadline come at a deadline.
    Due,
}

/// The time in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    timeline: Timeline,
    now: Instant,
}

impl Clock {
    pub(super) const fn new(timeline: Timeline, now: Instant) -> Self {
        Self { timeline, now }
    }

    /// Sets the time of an input. Its deadline moves with it.
    pub(super) fn set(&mut self, symbolic: &Symbolic, entry: &mut Entry, pool: &PoolState<Traced>) {
        let due = pool.next_deadline().map(|deadline| deadline.at.max(self.now));
        let recorded = symbolic.entry.at;
        self.now = match (self.timeline, due.filter(|_| symbolic.is_due)) {
            (Timeline::Open, _) => recorded,
            (Timeline::Due, Some(due)) => due,
            (Timeline::Due, None) | (Timeline::Closed, _) => moved(self.now, symbolic.since_last),
        };
        entry.at = self.now;
        if let Input::CheckOutRequested { deadline: Some(deadline), .. } = &mut entry.input {
            let allowed = deadline.as_nanos().wrapping_sub(recorded.as_nanos()) as i64;
            *deadline = moved(self.now, allowed);
        }
    }
}

fn moved(from: Instant, by: i64) -> Instant {
    Instant::from_nanos(from.as_nanos().saturating_add_signed(by))
}

/// The connections of a run by role.
#[derive(Clone, Debug, Default)]
pub(super) struct Roles {
    by_role: BTreeMap<Role, ConnId>,
    by_number: BTreeMap<u64, Role>,
    backgrounds: u64,
    /// Aborted connections, for which answers may come too late.
    given_up: Vec<ConnId>,
}

impl Roles {
    /// Updates the roles after an action.
    pub(super) fn note(&mut self, action: &Action<Traced>) {
        let (role, id) = if let Action::StartEstablish { id, owner: Some(owner), .. } = action {
            (Role::MadeFor(*owner), *id)
        } else if let Action::StartEstablish { id, owner: None, .. } = action {
            self.backgrounds += 1;
            (Role::Background(self.backgrounds), *id)
        } else if let Action::Deliver { waiter, outcome: Ok((id, ())) } = action {
            (Role::HeldBy(*waiter), *id)
        } else {
            if let Action::AbortEstablish { id } = action {
                self.given_up.push(*id);
            }
            return;
        };
        self.by_role.insert(role, id);
        self.by_number.insert(id.number(), role);
    }
}

/// The inputs of a history, in symbolic form.
pub(super) fn symbolic(history: &History) -> Vec<Symbolic> {
    let (mut pool, mut roles) = (history.pool(), Roles::default());
    let mut all = Vec::with_capacity(history.inputs.len());
    let mut last = history.start.now;
    for entry in &history.inputs {
        let number = connection_of(&entry.input);
        let role = |number| roles.by_number.get(&number).copied().unwrap_or(Role::Itself);
        let is_given_up = |number| pending(&pool).all(|pending| pending.number() != number);
        all.push(Symbolic {
            entry: entry.clone(),
            since_last: entry.at.as_nanos().wrapping_sub(last.as_nanos()) as i64,
            about: number.map(role),
            is_late: number.is_some_and(is_given_up),
            is_due: pool.next_deadline().is_some_and(|deadline| deadline.at == entry.at),
        });
        last = entry.at;
        let mut actions = Vec::new();
        let out = &mut WithoutEvents(&mut actions);
        if catch_unwind(AssertUnwindSafe(|| feed(&mut pool, entry, out).is_ok())).is_err() {
            // Inputs after a panic are not replayed.
            break;
        }
        actions.iter().for_each(|action| roles.note(action));
    }
    all
}

/// The group of an input. Groups are removed as a whole, because a request without its end is of no
/// use, and vice versa.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    /// A request, from the check-out to the check-in.
    Request(WaiterId),
    /// The establishment of a connection.
    Establishment(u64),
    /// A single input.
    Alone(usize),
}

impl Symbolic {
    /// The input for a run with these roles; `None` if its connection does not exist in this run.
    /// An answer for a connection that does not exist is about the oldest pending one, which
    /// another request may have caused now. A late answer stays late.
    pub(super) fn resolve(&self, roles: &Roles, pool: &PoolState<Traced>) -> Option<Entry> {
        let refused = self.entry.refused;
        let about = self.about.filter(|about| *about != Role::Itself || !refused);
        let Some(about) = about else { return Some(self.entry.clone()) };
        let named = roles.by_role.get(&about).copied();
        let id = if self.establishes() && self.is_late && !refused {
            let given_up = &roles.given_up;
            named.filter(|id| given_up.contains(id)).or_else(|| given_up.last().copied())?
        } else if self.establishes() && !refused {
            let is_pending = |id: &ConnId| pending(pool).any(|pending| pending == *id);
            named.filter(is_pending).or_else(|| pending(pool).next())?
        } else if about == Role::Itself {
            return Some(self.entry.clone());
        } else {
            named?
        };
        let mut entry = self.entry.clone();
        set_connection(&mut entry.input, id);
        Some(entry)
    }

    /// The group of this input; `index` is its index.
    pub(super) fn group(&self, index: usize) -> Group {
        match (&self.entry.input, self.about) {
            (Input::CheckOutRequested { id, .. } | Input::CheckOutCancelled { id }, _) => {
                Group::Request(*id)
            }
            (_, Some(Role::HeldBy(id))) if !self.establishes() => Group::Request(id),
            (input, Some(_)) if self.establishes() => {
                connection_of(input).map_or(Group::Alone(index), Group::Establishment)
            }
            _ => Group::Alone(index),
        }
    }

    fn establishes(&self) -> bool {
        matches!(
            self.entry.input,
            Input::Handshaken { .. }
                | Input::EstablishSucceeded { .. }
                | Input::EstablishFailed { .. }
        )
    }
}

/// The pending connections, oldest first. They come before all others.
fn pending(pool: &PoolState<Traced>) -> impl Iterator<Item = ConnId> {
    pool.connections()
        .take_while(|connection| matches!(connection.state, ConnectionState::Pending { .. }))
        .map(|connection| connection.id)
}

fn set_connection(input: &mut Input<Traced>, to: ConnId) {
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
        *id = to;
    }
}
