//! What is under the lock: the machine, those who wait, and what is to be done outside.

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Waker;

use cenote_core::error::ConnectionError;
use cenote_core::pool::{
    Action, ActionSink, CheckOutError, ConnId, Input, Instant, Misuse, PoolTypes, Purpose, Status,
    WaiterId,
};
use cenote_shell::trace::RecordedPool;
use slab::Slab;
use tokio::task::AbortHandle;

use crate::connector::Connector;
use crate::event::News;
use crate::home::Owned;
use crate::interrupt::Interrupt;
use crate::outbox::Outbox;
use crate::sync::Notify;
use crate::woken::Woken;

/// What this shell brings to the machine.
pub(crate) struct Tokio<K>(PhantomData<K>);

impl<K: Connector> PoolTypes for Tokio<K> {
    type Conn = Box<Held<K>>;
    /// The place in [`Desk::parked`], which is taken only if the request has to wait.
    type Waiter = usize;
    type Cause = ConnectionError;
}

/// A connection and what goes with it. It moves as one pointer.
pub(crate) struct Held<K: Connector> {
    pub(crate) connection: Owned<K::Connection>,
    /// The way to whoever uses it.
    pub(crate) interrupt: Arc<Interrupt>,
    /// Why it must not be used again, if so.
    pub(crate) error: Option<ConnectionError>,
}

pub(crate) type Delivery<K> = Result<(ConnId, Box<Held<K>>), CheckOutError<ConnectionError>>;

pub(crate) struct Desk<K: Connector> {
    pub(crate) state: RecordedPool<Tokio<K>>,
    /// How many requests there have been; the last one has this number.
    pub(crate) requests: u64,
    pub(crate) parked: Slab<Parked<K>>,
    /// What is to be done, in the machine's order. Nobody's subscriber keeps it waiting: a socket is
    /// broken off or opened at once, whoever is being told of what (INT-03, ES-04).
    pub(crate) outbox: Outbox<Action<Tokio<K>>>,
    /// What is to be told, in the machine's order.
    pub(crate) news: Outbox<News>,
    pub(crate) noted: Noted,
    /// When the timer fires, as it was told.
    pub(crate) armed: Option<Instant>,
    /// The timer may have to fire earlier than it was told.
    pub(crate) alarm: Arc<Notify>,
    /// The last connection of a closed pool came home.
    pub(crate) emptied: Arc<Notify>,
    /// The tasks that open connections, until they are over.
    pub(crate) opening: BTreeMap<ConnId, OpeningTask>,
    /// Connections that are open.
    pub(crate) interrupts: BTreeMap<ConnId, Arc<Interrupt>>,
}

/// What opens a connection.
#[derive(Default)]
pub(crate) struct OpeningTask {
    /// As soon as it is known.
    pub(crate) stop: Option<AbortHandle>,
    /// The pool does not want the connection any more.
    pub(crate) is_given_up: bool,
}

/// What is taken note of when the machine decides it.
#[derive(Default)]
pub(crate) struct Noted {
    /// How many sockets are to be closed, in the outbox and on their way out of it.
    pub(crate) closing: usize,
    /// Somebody waited in vain since this was looked at.
    pub(crate) has_timed_out: bool,
}

/// A request that waits, or whose answer waits for it.
pub(crate) enum Parked<K: Connector> {
    Waiting(Waker),
    Answered(Delivery<K>),
}

impl<K: Connector> Desk<K> {
    /// `first` is what the machine said at the beginning.
    pub(crate) fn new(state: RecordedPool<Tokio<K>>, first: VecDeque<Action<Tokio<K>>>) -> Self {
        let mut desk = Self {
            state,
            requests: 0,
            parked: Slab::new(),
            outbox: Outbox::default(),
            news: Outbox::default(),
            noted: Noted::default(),
            armed: None,
            alarm: Arc::default(),
            emptied: Arc::default(),
            opening: BTreeMap::new(),
            interrupts: BTreeMap::new(),
        };
        for action in first {
            post(&mut desk.outbox, &mut desk.news, &mut desk.noted, action);
        }
        desk
    }

    /// The pool is closed, everything came home, every socket is closed, and all of that is told.
    pub(crate) fn is_empty(&self) -> bool {
        let snapshot = self.state.snapshot();
        snapshot.status == Status::Closed
            && snapshot.total == 0
            && self.noted.closing == 0
            && self.opening.is_empty()
            && self.news.is_idle()
    }

    /// Feeds one input. Those who are answered are woken by `woken`, after the lock is given back.
    ///
    /// # Panics
    ///
    /// When this shell has broken the machine's contract.
    // Inlined, as the machine's own `handle` is, into callers who know which input they feed.
    #[inline(always)]
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        input: Input<Tokio<K>>,
        wants_events: bool,
        woken: &mut Woken,
    ) {
        let mut tray = Tray {
            outbox: &mut self.outbox,
            news: &mut self.news,
            noted: &mut self.noted,
            parked: &mut self.parked,
            wants_events,
            woken,
            asking: None,
            at_once: None,
        };
        if let Err(misuse) = self.state.handle(now, input, &mut tray) {
            broken(&misuse);
        }
    }

    /// Feeds a request to check out. What there is for it at once is given back; otherwise it is
    /// parked with the waker, and its place is given back.
    #[inline(always)]
    pub(crate) fn request(
        &mut self,
        now: Instant,
        request: Asked,
        wants_events: bool,
        (waker, woken): (&Waker, &mut Woken),
    ) -> Result<Delivery<K>, Place> {
        self.requests += 1;
        let id = WaiterId(self.requests);
        let place = self.parked.vacant_key();
        let Asked { deadline, purpose } = request;
        let input = Input::CheckOutRequested { id, waiter: place, deadline, purpose };
        let mut tray = Tray {
            outbox: &mut self.outbox,
            news: &mut self.news,
            noted: &mut self.noted,
            parked: &mut self.parked,
            wants_events,
            woken,
            asking: Some(place),
            at_once: None,
        };
        if let Err(misuse) = self.state.handle(now, input, &mut tray) {
            broken(&misuse);
        }
        if let Some(delivery) = tray.at_once {
            return Ok(delivery);
        }
        let taken = self.parked.insert(Parked::Waiting(waker.clone()));
        debug_assert_eq!(taken, place, "nobody else parks under the same lock");
        Err(Place { index: place, id })
    }
}

/// A contract between shell and machine is broken, which is a defect of the shell.
#[cold]
fn broken<K: Connector>(misuse: &Misuse<Tokio<K>>) -> ! {
    panic!("a contract between shell and machine is broken: {misuse}");
}

impl<K: Connector> AsMut<Outbox<News>> for Desk<K> {
    fn as_mut(&mut self) -> &mut Outbox<News> {
        &mut self.news
    }
}

/// What somebody wants who checks out.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) deadline: Option<Instant>,
    pub(crate) purpose: Purpose,
}

/// Where a request waits, and its number.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) index: usize,
    pub(crate) id: WaiterId,
}

impl<K: Connector> AsMut<Outbox<Action<Tokio<K>>>> for Desk<K> {
    fn as_mut(&mut self) -> &mut Outbox<Action<Tokio<K>>> {
        &mut self.outbox
    }
}

/// What there is to tell goes one way, and what there is to do another.
#[inline(always)]
fn post<K: Connector>(
    outbox: &mut Outbox<Action<Tokio<K>>>,
    news: &mut Outbox<News>,
    noted: &mut Noted,
    action: Action<Tokio<K>>,
) {
    match action {
        Action::EmitEvent(event) => news.push(News::Event(event)),
        Action::ReportLeak { id, held } => news.push(News::LeakReport { id, held }),
        Action::CloseSocket { .. } => {
            noted.closing += 1;
            outbox.push(action);
        }
        Action::StartEstablish { .. }
        | Action::AbortEstablish { .. }
        | Action::Interrupt { .. } => outbox.push(action),
        Action::Deliver { .. } => unreachable!("deliveries are made under the lock"),
    }
}

/// Where the machine puts its actions.
struct Tray<'a, K: Connector> {
    outbox: &'a mut Outbox<Action<Tokio<K>>>,
    news: &'a mut Outbox<News>,
    noted: &'a mut Noted,
    parked: &'a mut Slab<Parked<K>>,
    wants_events: bool,
    woken: &'a mut Woken,
    /// The place of who is asking, and what there was for him at once.
    asking: Option<usize>,
    at_once: Option<Delivery<K>>,
}

impl<K: Connector> ActionSink<Tokio<K>> for Tray<'_, K> {
    #[inline(always)]
    fn act(&mut self, action: Action<Tokio<K>>) {
        match action {
            Action::Deliver { waiter, outcome } if self.asking == Some(waiter) => {
                self.at_once = Some(outcome);
            }
            Action::Deliver { waiter, outcome } => self.deliver(waiter, outcome),
            Action::StartEstablish { .. }
            | Action::AbortEstablish { .. }
            | Action::CloseSocket { .. }
            | Action::Interrupt { .. }
            | Action::ReportLeak { .. }
            | Action::EmitEvent(_) => post(self.outbox, self.news, self.noted, action),
        }
    }

    #[inline]
    fn wants_events(&self) -> bool {
        self.wants_events
    }
}

impl<K: Connector> Tray<'_, K> {
    #[inline(never)]
    fn deliver(&mut self, place: usize, outcome: Delivery<K>) {
        // Whoever has given up does not come for an answer.
        if matches!(outcome, Err(CheckOutError::Cancelled)) {
            self.parked.remove(place);
            return;
        }
        self.noted.has_timed_out |= matches!(outcome, Err(CheckOutError::WaitQueueTimeout { .. }));
        let parked = &mut self.parked[place];
        if let Parked::Waiting(waker) = std::mem::replace(parked, Parked::Answered(outcome)) {
            self.woken.push(waker);
        }
    }
}
