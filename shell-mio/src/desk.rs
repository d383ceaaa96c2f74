//! What is under the lock: the machine, those who wait, and what is to be done outside.

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;

use cenote_core::error::ConnectionError;
use cenote_core::pool::{
    Action, ActionSink, CheckOutError, ConnId, Input, Instant, PoolState, Shell,
};
use slab::Slab;

use crate::connector::Connector;
use crate::event_loop::EventLoop;
use crate::interrupt::Interrupt;
use crate::parker::Parker;

/// What this shell brings to the machine.
pub(crate) struct Mio<K>(PhantomData<K>);

impl<K: Connector> Shell for Mio<K> {
    type Conn = Box<Held<K::Connection>>;
    /// The place in [`Desk::parked`], which is taken only if the request has to wait.
    type Waiter = usize;
    type Cause = ConnectionError;
}

/// A connection and the way to whoever uses it. It moves as one pointer.
pub(crate) struct Held<C> {
    pub(crate) connection: C,
    pub(crate) interrupt: Arc<Interrupt>,
}

pub(crate) type Delivery<K> =
    Result<(ConnId, Box<Held<<K as Connector>::Connection>>), CheckOutError<ConnectionError>>;

pub(crate) struct Desk<K: Connector> {
    pub(crate) state: PoolState<Mio<K>>,
    /// How many requests there have been; the last one has this number.
    pub(crate) requests: u64,
    pub(crate) parked: Slab<Parked<K>>,
    /// In the machine's order; for whoever drains it.
    pub(crate) outbox: VecDeque<Action<Mio<K>>>,
    pub(crate) is_drained: bool,
    /// When the timer fires, as it was told.
    pub(crate) armed: Option<Instant>,
    /// Connections that are open.
    pub(crate) interrupts: BTreeMap<ConnId, Arc<Interrupt>>,
    /// Where connections are opened and the timer runs.
    pub(crate) event_loop: EventLoop,
    /// Answers for requests of nobody's thread, in the order in which they came.
    pub(crate) answered: VecDeque<usize>,
}

/// A request that waits, or whose answer waits for it.
pub(crate) enum Parked<K: Connector> {
    Waiting(Waiter),
    Answered(Delivery<K>),
}

/// Who is told that the answer is there.
#[derive(Clone)]
pub(crate) enum Waiter {
    Thread(Arc<Parker>),
    /// Whoever turns the loop and looks at [`Desk::answered`].
    Loop,
}

impl<K: Connector> Desk<K> {
    pub(crate) fn new(
        state: PoolState<Mio<K>>,
        outbox: VecDeque<Action<Mio<K>>>,
        event_loop: EventLoop,
    ) -> Self {
        Self {
            state,
            requests: 0,
            parked: Slab::new(),
            outbox,
            is_drained: false,
            armed: None,
            interrupts: BTreeMap::new(),
            event_loop,
            answered: VecDeque::new(),
        }
    }

    /// Feeds one input. Those who are answered are woken by `wakers`, after the lock is given back.
    ///
    /// # Panics
    ///
    /// When this shell has broken the machine's contract.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        input: Input<Mio<K>>,
        wants_events: bool,
        wakers: &mut Wakers,
    ) {
        self.handle_for(None, now, input, wants_events, wakers);
    }

    /// As [`handle`](Self::handle), and what is delivered at once to this place is given back.
    pub(crate) fn handle_for(
        &mut self,
        place: Option<usize>,
        now: Instant,
        input: Input<Mio<K>>,
        wants_events: bool,
        wakers: &mut Wakers,
    ) -> Option<Delivery<K>> {
        let mut tray = Tray {
            outbox: &mut self.outbox,
            parked: &mut self.parked,
            answered: &mut self.answered,
            wants_events,
            wakers,
            place,
            at_once: None,
        };
        if let Err(misuse) = self.state.handle(now, input, &mut tray) {
            panic!("a contract between shell and machine is broken: {misuse}");
        }
        tray.at_once
    }
}

/// Almost always none or one.
pub(crate) type Wakers = Vec<Waiter>;

/// Where the machine puts its actions.
struct Tray<'a, K: Connector> {
    outbox: &'a mut VecDeque<Action<Mio<K>>>,
    parked: &'a mut Slab<Parked<K>>,
    answered: &'a mut VecDeque<usize>,
    wants_events: bool,
    wakers: &'a mut Wakers,
    place: Option<usize>,
    at_once: Option<Delivery<K>>,
}

impl<K: Connector> ActionSink<Mio<K>> for Tray<'_, K> {
    fn act(&mut self, action: Action<Mio<K>>) {
        match action {
            Action::Deliver { waiter, outcome } if self.place == Some(waiter) => {
                self.at_once = Some(outcome);
            }
            Action::Deliver { waiter, outcome } => self.deliver(waiter, outcome),
            Action::StartEstablish { .. }
            | Action::AbortEstablish { .. }
            | Action::CloseSocket { .. }
            | Action::Interrupt { .. }
            | Action::ReportHeldTooLong { .. }
            | Action::EmitEvent(_) => self.outbox.push_back(action),
        }
    }

    fn wants_events(&self) -> bool {
        self.wants_events
    }
}

impl<K: Connector> Tray<'_, K> {
    fn deliver(&mut self, place: usize, outcome: Delivery<K>) {
        // Whoever has given up does not come for an answer.
        if matches!(outcome, Err(CheckOutError::Cancelled)) {
            self.parked.remove(place);
            return;
        }
        let parked = &mut self.parked[place];
        if let Parked::Waiting(waiter) = std::mem::replace(parked, Parked::Answered(outcome)) {
            if matches!(waiter, Waiter::Loop) {
                self.answered.push_back(place);
            }
            self.wakers.push(waiter);
        }
    }
}
