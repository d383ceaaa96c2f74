//! What is under the lock: the machine, those who wait, and what is to be done outside.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Waker;

use cenote_core::error::ConnectionError;
use cenote_core::pool::{
    Action, ActionSink, CheckOutError, ConnId, Input, Instant, PoolState, Shell, Status,
};
use slab::Slab;
use tokio::task::AbortHandle;

use crate::connector::Connector;
use crate::interrupt::Interrupt;
use crate::outbox::Outbox;

/// What this shell brings to the machine.
pub(crate) struct Tokio<K>(PhantomData<K>);

impl<K: Connector> Shell for Tokio<K> {
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
    pub(crate) state: PoolState<Tokio<K>>,
    /// How many requests there have been; the last one has this number.
    pub(crate) requests: u64,
    pub(crate) parked: Slab<Parked<K>>,
    /// Actions, in the machine's order.
    pub(crate) outbox: Outbox<Action<Tokio<K>>>,
    /// How many sockets are to be closed, in the outbox and on their way out of it.
    pub(crate) closing: usize,
    /// When the timer fires, as it was told.
    pub(crate) armed: Option<Instant>,
    /// Connections that are being opened, and how to stop that as soon as it is known.
    pub(crate) opening: BTreeMap<ConnId, Option<AbortHandle>>,
    /// Connections that are open.
    pub(crate) interrupts: BTreeMap<ConnId, Arc<Interrupt>>,
}

/// A request that waits, or whose answer waits for it.
pub(crate) enum Parked<K: Connector> {
    Waiting(Option<Waker>),
    Answered(Delivery<K>),
}

impl<K: Connector> Desk<K> {
    pub(crate) fn new(state: PoolState<Tokio<K>>, outbox: Outbox<Action<Tokio<K>>>) -> Self {
        Self {
            state,
            requests: 0,
            parked: Slab::new(),
            outbox,
            closing: 0,
            armed: None,
            opening: BTreeMap::new(),
            interrupts: BTreeMap::new(),
        }
    }

    /// The pool is closed, everything came home, and every socket is closed.
    pub(crate) fn is_empty(&self) -> bool {
        let snapshot = self.state.snapshot();
        snapshot.status == Status::Closed && snapshot.total == 0 && self.closing == 0
    }

    /// Feeds one input. Those who are answered are woken by `wakers`, after the lock is given back.
    ///
    /// # Panics
    ///
    /// When this shell has broken the machine's contract.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        input: Input<Tokio<K>>,
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
        input: Input<Tokio<K>>,
        wants_events: bool,
        wakers: &mut Wakers,
    ) -> Option<Delivery<K>> {
        let mut tray = Tray {
            outbox: &mut self.outbox,
            closing: &mut self.closing,
            parked: &mut self.parked,
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

impl<K: Connector> AsMut<Outbox<Action<Tokio<K>>>> for Desk<K> {
    fn as_mut(&mut self) -> &mut Outbox<Action<Tokio<K>>> {
        &mut self.outbox
    }
}

/// Almost always none or one.
pub(crate) type Wakers = Vec<Waker>;

/// Where the machine puts its actions.
struct Tray<'a, K: Connector> {
    outbox: &'a mut Outbox<Action<Tokio<K>>>,
    closing: &'a mut usize,
    parked: &'a mut Slab<Parked<K>>,
    wants_events: bool,
    wakers: &'a mut Wakers,
    place: Option<usize>,
    at_once: Option<Delivery<K>>,
}

impl<K: Connector> ActionSink<Tokio<K>> for Tray<'_, K> {
    fn act(&mut self, action: Action<Tokio<K>>) {
        match action {
            Action::Deliver { waiter, outcome } if self.place == Some(waiter) => {
                self.at_once = Some(outcome);
            }
            Action::Deliver { waiter, outcome } => self.deliver(waiter, outcome),
            Action::CloseSocket { .. } => {
                *self.closing += 1;
                self.outbox.push(action);
            }
            Action::StartEstablish { .. }
            | Action::AbortEstablish { .. }
            | Action::Interrupt { .. }
            | Action::ReportHeldTooLong { .. }
            | Action::EmitEvent(_) => self.outbox.push(action),
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
        if let Parked::Waiting(waker) = std::mem::replace(parked, Parked::Answered(outcome)) {
            self.wakers.extend(waker);
        }
    }
}
