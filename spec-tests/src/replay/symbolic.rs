//! Inputs that mean the same after others were taken away: a connection is named by who held it or
//! for whom it was made, not by its number, which would be another one.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cenote_core::pool::{
    Action, ActionSink, ConnId, ConnectionState, Input, Instant, PoolState, WaiterId,
};
use cenote_core::trace::Traced;

use super::filter::connection_of;
use super::history::{Entry, History};

/// An input, and what its connection was when it was recorded.
#[derive(Clone, Debug)]
pub(super) struct Symbolic {
    at: Instant,
    /// Nanoseconds since the input before it.
    since_last: i64,
    pub(super) input: Input<Traced>,
    pub(super) refused: bool,
    about: Option<About>,
    /// It answers for a connection that the pool had given up by then.
    is_late: bool,
    /// It came exactly when something was due.
    is_due: bool,
}

/// What a connection was, as far as the trace tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    /// The one that was handed to this request last.
    HeldBy(WaiterId),
    /// The one that was made for this request.
    MadeFor(WaiterId),
    /// The one that was made ahead of need as the so-manieth.
    Background(u64),
    /// It was there when the trace began, or never existed.
    Itself,
}

/// What time it is when inputs are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeline {
    /// As long after the one before it as it was after the one before it then: what is left out
    /// takes no time.
    Closed,
    /// As it was, with gaps.
    Open,
    /// As `Closed`, but what came exactly when something was due comes when something is due.
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

    /// When an input happens. Its deadline moves with it.
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

/// Who is who, in one run or another.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    by_name: BTreeMap<About, ConnId>,
    by_number: BTreeMap<u64, About>,
    backgrounds: u64,
    /// Given up while they were opened: answers may come too late for them.
    given_up: Vec<ConnId>,
}

impl Names {
    /// Takes note of what an action says about who is who.
    fn note(&mut self, action: &Action<Traced>) {
        match action {
            Action::StartEstablish { id, background: true, .. } => {
                self.backgrounds += 1;
                self.name(About::Background(self.backgrounds), *id);
            }
            Action::Deliver { waiter, outcome: Ok((id, ())) } => {
                self.name(About::HeldBy(*waiter), *id);
            }
            Action::AbortEstablish { id } => self.given_up.push(*id),
            // Named when the machine can tell for whom it is.
            Action::StartEstablish { background: false, .. }
            | Action::Deliver { outcome: Err(_), .. }
            | Action::CloseSocket { .. }
            | Action::Interrupt { .. }
            | Action::ReportLeak { .. }
            | Action::EmitEvent(_) => {}
        }
    }

    fn name(&mut self, name: About, id: ConnId) {
        self.by_name.insert(name, id);
        self.by_number.insert(id.number(), name);
    }
}

/// Notes who is who and passes actions on.
pub(super) struct Naming<'a, K> {
    pub(super) names: &'a mut Names,
    pub(super) started: &'a mut Vec<ConnId>,
    pub(super) out: &'a mut K,
}

impl<K: ActionSink<Traced>> ActionSink<Traced> for Naming<'_, K> {
    fn act(&mut self, action: Action<Traced>) {
        if let Action::StartEstablish { id, background: false, .. } = &action {
            self.started.push(*id);
        }
        self.names.note(&action);
        self.out.act(action);
    }

    fn wants_events(&self) -> bool {
        self.out.wants_events()
    }
}

/// Names whom a queued request's connection was made for: the machine knows who owns it.
pub(super) fn name_started(names: &mut Names, started: &mut Vec<ConnId>, pool: &PoolState<Traced>) {
    for id in started.drain(..) {
        let started = pool.connections().find(|connection| connection.id == id);
        let state = started.map(|connection| connection.state);
        if let Some(ConnectionState::Pending { owner: Some(owner), .. }) = state {
            names.name(About::MadeFor(owner), id);
        }
    }
}

/// The inputs of a history with names for their connections.
pub(super) fn symbolic(history: &History) -> Vec<Symbolic> {
    let mut pool = history.pool();
    let (mut names, mut started) = (Names::default(), Vec::new());
    let mut all = Vec::with_capacity(history.inputs.len());
    let mut last = history.start.now;
    for Entry { at, input, refused } in &history.inputs {
        let about = connection_of(input)
            .map(|number| names.by_number.get(&number).copied().unwrap_or(About::Itself));
        let since_last = at.as_nanos().wrapping_sub(last.as_nanos()) as i64;
        last = *at;
        let (at, refused) = (*at, *refused);
        let is_given_up = |number| pending(&pool).all(|pending| pending.number() != number);
        all.push(Symbolic {
            at,
            since_last,
            input: input.clone(),
            refused,
            about,
            is_late: connection_of(input).is_some_and(is_given_up),
            is_due: pool.next_deadline().is_some_and(|deadline| deadline.at == at),
        });
        let out = &mut super::history::Nobody;
        let mut naming = Naming { names: &mut names, started: &mut started, out };
        let handled = AssertUnwindSafe(|| pool.handle(at, input.clone(), &mut naming).is_ok());
        if catch_unwind(handled).is_err() {
            // What comes after a panic never happened.
            break;
        }
        name_started(&mut names, &mut started, &pool);
    }
    all
}

/// What goes or stays together: a request is of no use without its end, nor the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Story {
    /// A request, from the check-out to the check-in.
    Request(WaiterId),
    /// How a connection was established.
    Establishment(u64),
    /// Something by itself.
    Alone(usize),
}

impl Symbolic {
    /// The input as it has to be in a run with these names; `None` if its connection does not come
    /// up in it. What establishes a connection that is not there establishes the oldest that is
    /// pending: somebody else may have it made now. What came too late comes too late again.
    pub(super) fn resolve(&self, names: &Names, pool: &PoolState<Traced>) -> Option<Input<Traced>> {
        let Some(about) = self.about else { return Some(self.input.clone()) };
        let named = names.by_name.get(&about).copied();
        if about == About::Itself && self.refused {
            return Some(self.input.clone());
        }
        let id = if self.establishes() && self.is_late && !self.refused {
            let given_up = &names.given_up;
            named.filter(|id| given_up.contains(id)).or_else(|| given_up.last().copied())?
        } else if self.establishes() && !self.refused {
            named.filter(|id| is_pending(*id, pool)).or_else(|| pending(pool).next())?
        } else if about == About::Itself {
            return Some(self.input.clone());
        } else {
            named?
        };
        Some(about_another(&self.input, id))
    }

    /// What this is a part of; `index` is its place.
    pub(super) fn story(&self, index: usize) -> Story {
        match (&self.input, self.about) {
            (Input::CheckOutRequested { id, .. } | Input::CheckOutCancelled { id }, _) => {
                Story::Request(*id)
            }
            (_, Some(About::HeldBy(id))) if !self.establishes() => Story::Request(id),
            (input, Some(_)) if self.establishes() => {
                connection_of(input).map_or(Story::Alone(index), Story::Establishment)
            }
            _ => Story::Alone(index),
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

/// Connections that are being established, oldest first. They come before all others.
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
        | Input::IdleClosedByPeer { id, .. } => *id = to,
        Input::CheckOutRequested { .. }
        | Input::CheckOutCancelled { .. }
        | Input::Ready
        | Input::Close
        | Input::Timer
        | Input::ResetAfterFork
        | Input::Clear { .. }
        | Input::SetOptions { .. } => {}
    }
    input
}
