//! The machine: what it remembers, and how an input finds its transition.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::action::{Action, ActionSink, PoolTypes};
use super::connections::Connections;
use super::error::Misuse;
use super::event::Event;
use super::id::{ConnId, WaiterId};
use super::input::Input;
use super::options::{InvalidOptions, PoolOptions, Settings};
use super::service::Services;
use super::time::Instant;
use super::wait_queue::{Request, WaitQueue};

/// MongoDB's connection pool as a state machine.
///
/// Inputs go in through [`handle`](Self::handle) with the time at which they happen; actions come
/// out through a sink, in one ordered stream that is complete when `handle` returns. The same
/// options, times and inputs always give the same actions, whatever the payloads are: there is no
/// clock, no entropy, no I/O, no thread, no lock and no global inside.
///
/// * [`new`](Self::new) and [`handle`](Self::handle) take part in the life of the pool;
/// * [`next_deadline`](Self::next_deadline) and [`needs_now`](Self::needs_now) tell what the shell
///   has to provide;
/// * [`snapshot`](Self::snapshot), [`connections`](Self::connections), [`waiters`](Self::waiters),
///   [`services`](Self::services), [`is_stale`](Self::is_stale) and the like let one look;
/// * [`fingerprint`](Self::fingerprint) and [`check_invariants`](Self::check_invariants) are for
///   tests and replay.
///
/// Nothing here blocks. Once the pool has been as large and as busy as it gets, nothing allocates,
/// except that requests which time out share one allocation for the snapshot in their error.
pub struct PoolState<S: PoolTypes> {
    pub(super) options: PoolOptions,
    pub(super) settings: Settings,
    pub(super) status: Status,
    /// Of the pool; in load-balanced mode it stays 0 but for forks, and services have their own.
    pub(super) generation: u64,
    pub(super) services: Services<S::Cause>,
    pub(super) connections: Connections<S::Conn>,
    pub(super) queue: WaitQueue<S::Waiter>,
    /// The requests that own a pending connection, in the order in which they came.
    pub(super) owners: Vec<(Request<S::Waiter>, ConnId)>,
    /// How many connections are in use for each purpose.
    pub(super) purposes: [u32; 3],
    /// What the most recent clear of the whole pool was fed with (SI-19).
    pub(super) cleared_by: Option<S::Cause>,
    /// Until when the minimum is left alone after a failed establishment (T-37).
    pub(super) populate_after: Option<Instant>,
    /// Connections up to this number were inherited through a fork.
    pub(super) inherited: u64,
    pub(super) last_waiter: Option<WaiterId>,
    pub(super) now: Instant,
    pub(super) clock_regressions: u64,
}

/// The state of a pool, as CMAP names it (PS-15 … PS-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// At first, and after a clear: no check-outs, nothing is created.
    Paused,
    /// Serves check-outs and keeps up the minimum.
    Ready,
    /// For good.
    Closed,
}

impl<S: PoolTypes> PoolState<S> {
    /// Makes a pool: paused, in generation 0, empty (PCR-02 … PCR-05), and emits
    /// `ConnectionPoolCreated`.
    ///
    /// # Errors
    ///
    /// When no pool can work with these options; then nothing is emitted.
    pub fn new(
        now: Instant,
        options: PoolOptions,
        out: &mut impl ActionSink<S>,
    ) -> Result<Self, InvalidOptions> {
        let settings = Settings::new(&options)?;
        emit(out, || Event::ConnectionPoolCreated { options: Box::new(options.clone()) });
        Ok(Self {
            options,
            settings,
            status: Status::Paused,
            generation: 0,
            services: Services::new(),
            connections: Connections::new(),
            queue: WaitQueue::new(),
            owners: Vec::new(),
            purposes: [0; 3],
            cleared_by: None,
            populate_after: None,
            inherited: 0,
            last_waiter: None,
            now,
            clock_regressions: 0,
        })
    }

    /// Takes one input and emits what follows from it, all of it, in order.
    ///
    /// `now` may stand still. If it runs backwards, the last one counts and
    /// [`Snapshot::clock_regressions`](super::Snapshot::clock_regressions) says so.
    ///
    /// # Errors
    ///
    /// An input that makes no sense in this state comes back, payload and all, with the reason.
    /// Then nothing has changed and nothing has been emitted.
    // Inlined into the caller, who knows which input it feeds, so that the choice between them is
    // made by the compiler; it halves the instructions of a warm pair.
    #[inline(always)]
    pub fn handle(
        &mut self,
        now: Instant,
        input: Input<S>,
        out: &mut impl ActionSink<S>,
    ) -> Result<(), Misuse<S>> {
        if let Err(reason) = self.permit(&input) {
            return Err(Misuse { input, reason });
        }
        self.proceed(now, input, out);
        Ok(())
    }

    /// [`handle`](Self::handle), once the input is known to be [permitted](Self::permit).
    #[inline(always)]
    #[expect(clippy::wildcard_enum_match_arm, reason = "handle_rarer names every variant")]
    pub(crate) fn proceed(&mut self, now: Instant, input: Input<S>, out: &mut impl ActionSink<S>) {
        self.advance(now);
        if !self.queue.is_empty() {
            self.time_out_requests(out);
        }
        match input {
            Input::CheckOutRequested { id, waiter, deadline, purpose } => {
                self.check_out(id, waiter, deadline, purpose, out);
            }
            Input::CheckedIn { id, conn, health } => self.check_in(id, conn, health, out),
            rarer => self.handle_rarer(rarer, out),
        }
        if !self.queue.is_empty() {
            self.serve_requests(out);
        }
        if self.is_below_minimum() {
            self.populate(out);
        }
    }

    /// The inputs that are not part of every operation, apart, so that the others stay small.
    #[inline(never)]
    fn handle_rarer(&mut self, input: Input<S>, out: &mut impl ActionSink<S>) {
        match input {
            Input::CheckOutRequested { .. } | Input::CheckedIn { .. } => {
                unreachable!("handled before the rarer ones")
            }
            Input::CheckOutCancelled { id } => self.cancel_check_out(id, out),
            Input::Repurposed { id, purpose } => self.repurpose(id, purpose),
            Input::Handshaken { id, service } => self.handshaken(id, service),
            Input::EstablishSucceeded { id, conn } => self.establish_succeeded(id, conn, out),
            Input::EstablishFailed { id, cause } => self.establish_failed(id, cause, out),
            Input::IdleClosedByPeer { id, cause } => self.idle_closed_by_peer(id, cause, out),
            Input::Ready => self.ready(out),
            Input::Close => self.close(out),
            Input::Timer => self.run_maintenance(out),
            Input::ResetAfterFork => self.reset_after_fork(out),
            Input::Clear { cause, interrupt, service: None } => self.clear(cause, interrupt, out),
            Input::Clear { cause, interrupt: _, service: Some(service) } => {
                self.clear_service(cause, service, out);
            }
            Input::SetOptions { options } => self.set_options(*options, out),
        }
    }

    /// Whether the next input needs a fresh `now` even if nobody looks at events: some limit on time
    /// is set or running. If not, the shell may pass the last `now` again and spare the clock, unless
    /// the input brings a deadline or is `SetOptions`. An idle time that is set then counts from the
    /// last fresh `now` before the connection came back.
    #[inline]
    pub fn needs_now(&self) -> bool {
        self.settings.depends_on_time
            || self.populate_after.is_some()
            || !self.owners.is_empty()
            || self.connections.next_expiry().is_some()
            || self.queue.is_timed()
    }

    /// The options as they were set last.
    pub const fn options(&self) -> &PoolOptions {
        &self.options
    }

    /// Whether a connection is of an older generation than the pool or its service (CO-09); so is a
    /// connection that the pool does not know any more.
    ///
    /// SDAM asks this, under the same lock as the `Clear` that may follow: errors of a stale
    /// connection change nothing (SD-20, CLB-07, T-62).
    pub fn is_stale(&self, id: ConnId) -> bool {
        self.connections.get(id).is_none_or(|connection| self.outdated(connection))
    }

    /// The service that a connection of a load-balanced pool belongs to, from its hello on.
    pub fn service_of(&self, id: ConnId) -> Option<super::ServiceId> {
        self.connections.get(id)?.service
    }

    /// Moves time forward, never back.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if now < self.now {
            self.clock_regressions += 1;
        } else {
            self.now = now;
        }
    }
}

/// Where the payloads can be copied, as in exploration and simulation, so can the whole machine: the
/// copy goes its own way from here on. By hand, so that it does not ask for `Clone` of the shell.
impl<S: PoolTypes> Clone for PoolState<S>
where
    S::Conn: Clone,
    S::Waiter: Clone,
{
    fn clone(&self) -> Self {
        let Self {
            options,
            settings,
            status,
            generation,
            services,
            connections,
            queue,
            owners,
            purposes,
            cleared_by,
            populate_after,
            inherited,
            last_waiter,
            now,
            clock_regressions,
        } = self;
        Self {
            options: options.clone(),
            settings: *settings,
            status: *status,
            generation: *generation,
            services: services.clone(),
            connections: connections.clone(),
            queue: queue.clone(),
            owners: owners.clone(),
            purposes: *purposes,
            cleared_by: cleared_by.clone(),
            populate_after: *populate_after,
            inherited: *inherited,
            last_waiter: *last_waiter,
            now: *now,
            clock_regressions: *clock_regressions,
        }
    }
}

/// Emits an event, if anybody would look at it.
#[inline(always)]
pub(super) fn emit<S: PoolTypes>(
    out: &mut impl ActionSink<S>,
    event: impl FnOnce() -> Event<S::Cause>,
) {
    if out.wants_events() {
        out.act(Action::EmitEvent(event()));
    }
}
