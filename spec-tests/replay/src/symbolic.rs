//! Symbolic inputs keep their meaning when others are removed: a connection is identified by the
//! request that held it or for which it was created, because its number would change.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cenote_core::pool::{
    Action, ActionSink, ConnId, ConnectionState, Input, Instant, PoolState, WaiterId,
};
use cenote_core::trace::Traced;

use super::filter::connection_of;
use super::history::{Entry, History};

/// An input, and the role of its connection in the recording.
#[derive(Clone, Debug)]
pub(super) struct Symbolic {
    at: Instant,
    /// The nanoseconds since the previous input.
    since_last: i64,
    pub(super) input: Input<Traced>,
    pub(super) refused: bool,
    pub(super) place: Option<Arc<str>>,
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

    /// The time of an input. Its deadline moves with it.
    pub(super) fn tell(
        &mut self,
        symbolic: &Symbolic,
        input: &mut Input<Traced>,
        pool: &PoolState<Traced>,
    ) -> Instant {
        let due = pool.next_deadline().map(|deadline| deadline.at.max(self.now));
        self.now = match (self.timeline, due.filter(|_| symbolic.is_due)) {
            (Timeline::Open, _) => symbolic.at,
            (Timeline::Due, Some(due)) => due,
            (Timeline::Due, None) | (Timeline::Closed, _) => moved(self.now, symbolic.since_last),
        };
        if let Input::CheckOutRequested { deadline: Some(deadline), .. } = input {
            let allowed = deadline.as_nanos().wrapping_sub(symbolic.at.as_nanos()) as i64;
            *deadline = moved(self.now, allowed);
        }
        self.now
    }
}

fn moved(from: Instant, by: i64) -> Instant {
    Instant::from_nanos(from.as_nanos().saturating_add_signed(by))
}

/// The connections of a run by role.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    by_name: BTreeMap<Role, ConnId>,
    by_number: BTreeMap<u64, Role>,
    backgrounds: u64,
    /// Aborted connections, for which answers may come too late.
    given_up: Vec<ConnId>,
}

impl Names {
    /// Updates the roles after an action.
    fn note(&mut self, action: &Action<Traced>) {
        match action {
            Action::StartEstablish { id, owner: Some(owner), .. } => {
                self.name(Role::MadeFor(*owner), *id);
            }
            Action::StartEstablish { id, owner: None, .. } => {
                self.backgrounds += 1;
                self.name(Role::Background(self.backgrounds), *id);
            }
            Action::Deliver { waiter, outcome: Ok((id, ())) } => {
                self.name(Role::HeldBy(*waiter), *id);
            }
            Action::AbortEstablish { id } => self.given_up.push(*id),
            Action::Deliver { outcome: Err(_), .. }
            | Action::CloseSocket { .. }
            | Action::Interrupt { .. }
            | Action::StartDrain { .. }
            | Action::AbortDrain { .. }
            | Action::ReportLeak { .. }
            | Action::ReportUnanswered { .. }
            | Action::EmitEvent(_) => {}
        }
    }

    fn name(&mut self, name: Role, id: ConnId) {
        self.by_name.insert(name, id);
        self.by_number.insert(id.number(), name);
    }
}

/// Updates the roles and passes actions on.
pub(super) struct Naming<'a, K> {
    pub(super) names: &'a mut Names,
    pub(super) out: &'a mut K,
}

impl<K: ActionSink<Traced>> ActionSink<Traced> for Naming<'_, K> {
    fn act(&mut self, action: Action<Traced>) {
        self.names.note(&action);
        self.out.act(action);
    }

    fn wants_events(&self) -> bool {
        self.out.wants_events()
    }
}

/// The inputs of a history, in symbolic form.
pub(super) fn symbolic(history: &History) -> Vec<Symbolic> {
    let mut pool = history.pool();
    let mut names = Names::default();
    let mut all = Vec::with_capacity(history.inputs.len());
    let mut last = history.start.now;
    for Entry { at, input, refused, place } in &history.inputs {
        let about = connection_of(input)
            .map(|number| names.by_number.get(&number).copied().unwrap_or(Role::Itself));
        let since_last = at.as_nanos().wrapping_sub(last.as_nanos()) as i64;
        last = *at;
        let (at, refused) = (*at, *refused);
        let is_given_up = |number| pending(&pool).all(|pending| pending.number() != number);
        all.push(Symbolic {
            at,
            since_last,
            input: input.clone(),
            refused,
            place: place.clone(),
            about,
            is_late: connection_of(input).is_some_and(is_given_up),
            is_due: pool.next_deadline().is_some_and(|deadline| deadline.at == at),
        });
        let out = &mut super::history::Discard;
        let mut naming = Naming { names: &mut names, out };
        let handled = AssertUnwindSafe(|| pool.handle(at, input.clone(), &mut naming).is_ok());
        if catch_unwind(handled).is_err() {
            // Inputs after a panic are not replayed.
            break;
        }
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
    pub(super) fn resolve(&self, names: &Names, pool: &PoolState<Traced>) -> Option<Input<Traced>> {
        let Some(about) = self.about else { return Some(self.input.clone()) };
        let named = names.by_name.get(&about).copied();
        if about == Role::Itself && self.refused {
            return Some(self.input.clone());
        }
        let id = if self.establishes() && self.is_late && !self.refused {
            let given_up = &names.given_up;
            named.filter(|id| given_up.contains(id)).or_else(|| given_up.last().copied())?
        } else if self.establishes() && !self.refused {
            named.filter(|id| is_pending(*id, pool)).or_else(|| pending(pool).next())?
        } else if about == Role::Itself {
            return Some(self.input.clone());
        } else {
            named?
        };
        Some(about_another(&self.input, id))
    }

    /// The group of this input; `index` is its index.
    pub(super) fn group(&self, index: usize) -> Group {
        match (&self.input, self.about) {
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
            self.input,
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

fn is_pending(id: ConnId, pool: &PoolState<Traced>) -> bool {
    pending(pool).any(|pending| pending == id)
}

/// The same input about another connection.
fn about_another(input: &Input<Traced>, to: ConnId) -> Input<Traced> {
    let mut input = input.clone();
    match &mut input {
        Input::CheckedIn { id, .. }
        | Input::Repurposed { id, .. }
        | Input::Handshaken { id, .. }
        | Input::EstablishSucceeded { id, .. }
        | Input::EstablishFailed { id, .. }
        | Input::DrainSucceeded { id, .. }
        | Input::DrainFailed { id, .. }
        | Input::DrainProgress { id }
        | Input::IdleClosedByPeer { id, .. } => *id = to,
        Input::CheckOutRequested { .. }
        | Input::CheckOutCancelled { .. }
        | Input::RetireConnections
        | Input::ReleaseIdle
        | Input::Ready
        | Input::Close
        | Input::Timer
        | Input::ResetAfterFork
        | Input::Clear { .. }
        | Input::SetOptions { .. } => {}
    }
    input
}
