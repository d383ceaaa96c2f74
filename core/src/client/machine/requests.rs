//! Callers that wait for a server.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use super::{Action, ActionSink, Chosen, ClientState, Request, SelectionId};
use crate::client::{Described, Selection, SelectionError, Selector, all_seen, select, two_of};
use crate::pool::Instant;
use crate::trace::topology::{SelectionOutcome, SelectionRecord};

/// In the order in which they came.
#[derive(Debug)]
pub(super) struct Requests<W> {
    waiting: BTreeMap<SelectionId, Waiting<W>>,
    deadlines: BTreeSet<(Instant, SelectionId)>,
    pub(super) last: SelectionId,
}

#[derive(Debug)]
struct Waiting<W> {
    request: Request<W>,
    since: Instant,
}

impl<W> Default for Requests<W> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), deadlines: BTreeSet::new(), last: SelectionId(0) }
    }
}

impl<W> Requests<W> {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Of each that waits all but the caller.
    pub(super) fn waiting(
        &self,
    ) -> impl Iterator<Item = (SelectionId, &Selector, Option<Instant>, u64, Instant)> {
        self.waiting.iter().map(|(id, Waiting { request, since })| {
            (*id, &request.selector, request.deadline, request.draw, *since)
        })
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    fn push(&mut self, request: Request<W>, since: Instant) {
        let id = request.id;
        self.deadlines.extend(request.deadline.map(|at| (at, id)));
        self.waiting.insert(id, Waiting { request, since });
    }

    fn take(&mut self, id: SelectionId) -> Option<Waiting<W>> {
        let waiting = self.waiting.remove(&id)?;
        if let Some(at) = waiting.request.deadline {
            self.deadlines.remove(&(at, id));
        }
        Some(waiting)
    }
}

impl<W> ClientState<W> {
    /// The answer is there at once, or the request waits and the servers are checked meanwhile.
    // SS-13, SS-15
    pub(super) fn select_server(&mut self, request: Request<W>, out: &mut impl ActionSink<W>) {
        self.requests.last = request.id;
        let mut outcome = self.outcome(&request);
        if helps_to_check(outcome.as_ref()) {
            self.request_checks(out);
            outcome = self.outcome(&request);
        }
        let id = request.id;
        match outcome {
            Some(outcome) => out.act(Action::Deliver { waiter: request.waiter, outcome }),
            None => self.requests.push(request, self.now),
        }
        self.fail_if_late(id, out);
    }

    pub(super) fn cancel_selection(&mut self, id: SelectionId) {
        if let Some(waiting) = self.requests.take(id) {
            self.record(&waiting, |_| SelectionOutcome::Failed("the caller gave up".to_owned()));
        }
    }

    /// While something new is known of a server, or there is another one. Servers are checked for those that go on waiting.
    // SS-15
    pub(super) fn follow_news(&mut self, out: &mut impl ActionSink<W>) {
        while std::mem::take(&mut self.is_news) && self.requests.len() > 0 {
            let mut outcomes = self.outcomes();
            if outcomes.iter().any(|(_, outcome)| helps_to_check(outcome.as_ref())) {
                self.request_checks(out);
                outcomes = self.outcomes();
            }
            for (id, outcome) in outcomes {
                let Some(outcome) = outcome else { continue };
                let Some(waiting) = self.requests.take(id) else { continue };
                self.answer(waiting, outcome, out);
            }
        }
    }

    fn outcomes(&self) -> Vec<(SelectionId, Option<Result<Chosen, SelectionError>>)> {
        let waiting = self.requests.waiting.iter();
        waiting.map(|(id, Waiting { request, .. })| (*id, self.outcome(request))).collect()
    }

    fn outcome(&self, request: &Request<W>) -> Option<Result<Chosen, SelectionError>> {
        self.select(&request.selector, request.draw)
    }

    // SS-13
    pub(super) fn fail_late_requests(&mut self, out: &mut impl ActionSink<W>) {
        let late = self.requests.deadlines.iter().take_while(|(at, _)| *at <= self.now);
        let late: Vec<_> = late.map(|(_, id)| *id).collect();
        late.into_iter().for_each(|id| self.fail_if_late(id, out));
    }

    pub(super) fn fail_if_late(&mut self, id: SelectionId, out: &mut impl ActionSink<W>) {
        let deadline = self.requests.waiting.get(&id).and_then(|it| it.request.deadline);
        if deadline.is_none_or(|at| at > self.now) {
            return;
        }
        let Some(waiting) = self.requests.take(id) else { return };
        let after = in_whole_ms(self.now.saturating_since(waiting.since));
        let servers = self.servers_seen();
        let selector = waiting.request.selector.clone();
        self.answer(waiting, Err(SelectionError::TimedOut { selector, after, servers }), out);
    }

    fn servers_seen(&self) -> String {
        all_seen(self.topology.description(), |address| {
            let started = self.monitor(self.id(address)?)?.connecting_since()?;
            Some(self.now.saturating_since(started)).filter(|time| *time >= WORTH_TELLING)
        })
    }

    pub(super) fn fail_all_requests(&mut self, out: &mut impl ActionSink<W>) {
        for (_, waiting) in std::mem::take(&mut self.requests.waiting) {
            self.answer(waiting, Err(SelectionError::Closed), out);
        }
        self.requests.deadlines.clear();
    }

    fn answer(
        &mut self,
        waiting: Waiting<W>,
        outcome: Result<Chosen, SelectionError>,
        out: &mut impl ActionSink<W>,
    ) {
        self.record(&waiting, |client| match &outcome {
            Ok(Chosen { first, second }) => {
                let servers = [Some(*first), *second].into_iter().flatten();
                let servers = servers.filter_map(|id| client.address(id).cloned());
                SelectionOutcome::Chosen(servers.collect())
            }
            Err(error) => SelectionOutcome::Failed(error.reason()),
        });
        out.act(Action::Deliver { waiter: waiting.request.waiter, outcome });
    }

    fn record(&mut self, waiting: &Waiting<W>, outcome: impl FnOnce(&Self) -> SelectionOutcome) {
        if self.topology.is_recording() {
            let Waiting { request: Request { id, selector, .. }, since } = waiting;
            let waited = self.now.saturating_since(*since);
            let record = SelectionRecord::new(*id, selector, waited, outcome(self));
            self.topology.selected(self.now, record);
        }
    }

    /// What a request would be answered now; `None`: it would wait, and waiting may help. Changes nothing.
    // SS-14
    #[must_use]
    pub fn select(&self, selector: &Selector, draw: u64) -> Option<Result<Chosen, SelectionError>> {
        if self.is_closed {
            return Some(Err(SelectionError::Closed));
        }
        let topology = self.topology.description();
        let choose = |fitting: &[Described<'_>]| {
            let [first, second] = two_of(fitting, draw)?;
            let number = |server: Described<'_>| self.by_address.get(server.0).copied();
            let first = number(*first)?;
            Some(Chosen { first, second: number(*second).filter(|it| *it != first) })
        };
        let heartbeat_frequency = self.monitoring.heartbeat_frequency;
        let threshold = self.settings.local_threshold;
        match select(selector, topology, heartbeat_frequency, threshold, choose) {
            Ok(Selection::Found(chosen)) => Some(Ok(chosen)),
            Ok(Selection::Wait) => None,
            Ok(Selection::Foreign(address)) => {
                Some(Err(SelectionError::NotOfThisClient { address }))
            }
            Ok(Selection::Incompatible) => {
                let (selector, servers) = (selector.clone(), self.servers_seen());
                Some(Err(SelectionError::Incompatible { selector, servers }))
            }
            Err(invalid) => Some(Err(invalid.into())),
        }
    }
}

/// An attempt to connect that takes longer than one that works is told of.
const WORTH_TELLING: Duration = Duration::from_millis(100);

/// As the options are: what a timer fires late by says nothing to a reader.
const fn in_whole_ms(time: Duration) -> Duration {
    let rest = time.subsec_nanos() % 1_000_000;
    if time.as_millis() == 0 {
        time
    } else {
        time.saturating_sub(Duration::from_nanos(rest as u64))
    }
}

/// Whether a check of all servers may lead to a better answer. It may do so at once: a check that is overdue times out,
/// which is no reason to give up.
const fn helps_to_check(outcome: Option<&Result<Chosen, SelectionError>>) -> bool {
    matches!(outcome, None | Some(Err(SelectionError::Incompatible { .. })))
}
