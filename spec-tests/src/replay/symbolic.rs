//! Inputs that mean the same after others were taken away: a connection is named by who held it or
//! for whom it was made, not by its number, which would be another one.

use std::collections::BTreeMap;

use cenote_core::pool::{Action, ActionSink, ConnId, Input, Instant, PoolState, WaiterId};
use cenote_core::trace::Traced;

use super::filter::connection_of;
use super::history::{Entry, History};

/// An input, and what its connection was when it was recorded.
#[derive(Clone, Debug)]
pub(super) struct Symbolic {
    pub(super) at: Instant,
    pub(super) input: Input<Traced>,
    pub(super) refused: bool,
    about: Option<About>,
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

/// Who is who, in one run or another.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    by_name: BTreeMap<About, ConnId>,
    by_number: BTreeMap<u64, About>,
    backgrounds: u64,
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
            // Named when the machine can tell for whom it is.
            Action::StartEstablish { background: false, .. }
            | Action::Deliver { outcome: Err(_), .. }
            | Action::AbortEstablish { .. }
            | Action::CloseSocket { .. }
            | Action::Interrupt { .. }
            | Action::ReportHeldTooLong { .. }
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
        let owner = pool.connections().find(|connection| connection.id == id);
        if let Some(cenote_core::pool::ConnectionState::Pending { owner: Some(owner), .. }) =
            owner.map(|connection| connection.state)
        {
            names.name(About::MadeFor(owner), id);
        }
    }
}

/// The inputs of a history with names for their connections.
pub(super) fn symbolic(history: &History) -> Vec<Symbolic> {
    let mut pool = history.pool();
    let (mut names, mut started) = (Names::default(), Vec::new());
    let mut all = Vec::with_capacity(history.inputs.len());
    for Entry { at, input, refused } in &history.inputs {
        let about = connection_of(input)
            .map(|number| names.by_number.get(&number).copied().unwrap_or(About::Itself));
        all.push(Symbolic { at: *at, input: input.clone(), refused: *refused, about });
        let out = &mut super::history::Nobody;
        let mut naming = Naming { names: &mut names, started: &mut started, out };
        let _ = pool.handle(*at, input.clone(), &mut naming);
        name_started(&mut names, &mut started, &pool);
    }
    all
}

impl Symbolic {
    /// The input as it has to be in a run with these names; `None` if its connection does not come
    /// up in it.
    pub(super) fn resolve(&self, names: &Names) -> Option<Input<Traced>> {
        let Some(about) = self.about else { return Some(self.input.clone()) };
        if about == About::Itself {
            return Some(self.input.clone());
        }
        let id = *names.by_name.get(&about)?;
        Some(about_another(&self.input, id))
    }
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
