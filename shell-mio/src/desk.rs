//! What is under the lock: the machine, those who wait, and what is to be done outside.

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;

use cenote_core::error::ConnectionError;
use cenote_core::pool::{
    Action, ActionSink, CheckOutError, ConnId, Input, Instant, Misuse, PoolTypes, Purpose, WaiterId,
};
use cenote_shell::trace::RecordedPool;
use slab::Slab;

use crate::connector::Connector;
use crate::event::News;
use crate::event_loop::EventLoop;
use crate::interrupt::Interrupt;
use crate::outbox::Outbox;
use crate::woken::{Waiter, Woken};

/// What this shell brings to the machine.
pub(crate) struct Mio<K>(PhantomData<K>);

impl<K: Connector> PoolTypes for Mio<K> {
    type Conn = Box<Held<K>>;
    /// The place in [`Desk::parked`], which is taken only if the request has to wait.
    type Waiter = usize;
    type Cause = ConnectionError;
}

/// A connection and what goes with it. It moves as one pointer.
pub(crate) struct Held<K: Connector> {
    pub(crate) connection: K::Connection,
    /// The way to whoever uses it.
    pub(crate) interrupt: Arc<Interrupt>,
    /// Why it must not be used again, if so.
    pub(crate) error: Option<ConnectionError>,
}

pub(crate) type Delivery<K> = Result<(ConnId, Box<Held<K>>), CheckOutError<ConnectionError>>;

pub(crate) struct Desk<K: Connector> {
    pub(crate) state: RecordedPool<Mio<K>>,
    /// How many requests there have been; the last one has this number.
    pub(crate) requests: u64,
    pub(crate) parked: Slab<Parked<K>>,
    /// What is to be done, in the machine's order. Nobody's subscriber keeps it waiting: a socket is
    /// broken off or opened at once, whoever is being told of what (INT-03, ES-04).
    pub(crate) outbox: Outbox<Action<Mio<K>>>,
    /// What is to be told, in the machine's order.
    pub(crate) news: Outbox<News>,
    /// Somebody waited in vain since this was looked at.
    pub(crate) has_timed_out: bool,
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

impl<K: Connector> Desk<K> {
    /// `first` is what the machine said at the beginning.
    pub(crate) fn new(
        state: RecordedPool<Mio<K>>,
        first: VecDeque<Action<Mio<K>>>,
        event_loop: EventLoop,
    ) -> Self {
        let mut desk = Self {
            state,
            requests: 0,
            parked: Slab::new(),
            outbox: Outbox::default(),
            news: Outbox::default(),
            has_timed_out: false,
            armed: None,
            interrupts: BTreeMap::new(),
            event_loop,
            answered: VecDeque::new(),
        };
        first.into_iter().for_each(|action| desk.post(action));
        desk
    }

    /// Puts what is no delivery where it belongs.
    pub(crate) fn post(&mut self, action: Action<Mio<K>>) {
        post(&mut self.outbox, &mut self.news, action);
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
        input: Input<Mio<K>>,
        wants_events: bool,
        woken: &mut Woken,
    ) {
        let mut tray = Tray {
            outbox: &mut self.outbox,
            news: &mut self.news,
            has_timed_out: &mut self.has_timed_out,
            parked: &mut self.parked,
            answered: &mut self.answered,
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
    /// parked with its waiter, and its place is given back.
    #[inline(always)]
    pub(crate) fn request(
        &mut self,
        now: Instant,
        Asked { deadline, purpose }: Asked,
        wants_events: bool,
        (waiter, woken): (impl FnOnce() -> Waiter, &mut Woken),
    ) -> Result<Delivery<K>, Place> {
        self.requests += 1;
        let id = WaiterId(self.requests);
        let place = self.parked.vacant_key();
        let input = Input::CheckOutRequested { id, waiter: place, deadline, purpose };
        let mut tray = Tray {
            outbox: &mut self.outbox,
            news: &mut self.news,
            has_timed_out: &mut self.has_timed_out,
            parked: &mut self.parked,
            answered: &mut self.answered,
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
        let taken = self.parked.insert(Parked::Waiting(waiter()));
        debug_assert_eq!(taken, place, "nobody else parks under the same lock");
        Err(Place { index: place, id })
    }
}

/// A contract between shell and machine is broken, which is a defect of the shell.
#[cold]
pub(crate) fn broken<K: Connector>(misuse: &Misuse<Mio<K>>) -> ! {
    panic!("a contract between shell and machine is broken: {misuse}");
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

impl<K: Connector> AsMut<Outbox<Action<Mio<K>>>> for Desk<K> {
    fn as_mut(&mut self) -> &mut Outbox<Action<Mio<K>>> {
        &mut self.outbox
    }
}

impl<K: Connector> AsMut<Outbox<News>> for Desk<K> {
    fn as_mut(&mut self) -> &mut Outbox<News> {
        &mut self.news
    }
}

/// What there is to tell goes one way, and what there is to do another.
#[inline(always)]
fn post<K: Connector>(
    outbox: &mut Outbox<Action<Mio<K>>>,
    news: &mut Outbox<News>,
    action: Action<Mio<K>>,
) {
    match action {
        Action::EmitEvent(event) => news.push(News::Event(event)),
        Action::ReportLeak { id, held } => news.push(News::LeakReport { id, held }),
        Action::StartEstablish { .. }
        | Action::AbortEstablish { .. }
        | Action::CloseSocket { .. }
        | Action::Interrupt { .. } => outbox.push(action),
        Action::Deliver { .. } => unreachable!("deliveries are made under the lock"),
    }
}

/// Where the machine puts its actions.
struct Tray<'a, K: Connector> {
    outbox: &'a mut Outbox<Action<Mio<K>>>,
    news: &'a mut Outbox<News>,
    has_timed_out: &'a mut bool,
    parked: &'a mut Slab<Parked<K>>,
    answered: &'a mut VecDeque<usize>,
    wants_events: bool,
    woken: &'a mut Woken,
    /// The place of who is asking, and what there was for him at once.
    asking: Option<usize>,
    at_once: Option<Delivery<K>>,
}

impl<K: Connector> ActionSink<Mio<K>> for Tray<'_, K> {
    #[inline(always)]
    fn act(&mut self, action: Action<Mio<K>>) {
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
            | Action::EmitEvent(_) => post(self.outbox, self.news, action),
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
        *self.has_timed_out |= matches!(outcome, Err(CheckOutError::WaitQueueTimeout { .. }));
        let parked = &mut self.parked[place];
        if let Parked::Waiting(waiter) = std::mem::replace(parked, Parked::Answered(outcome)) {
            if matches!(waiter, Waiter::Loop(_)) {
                self.answered.push_back(place);
            }
            self.woken.push(waiter);
        }
    }
}
