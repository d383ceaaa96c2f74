//! A naive reference model of the pool: an executable reading of the requirements.
//!
//! The model returns the exact actions of every input, the exact refusal, and the exact next
//! deadline. It shares only the types of inputs and actions with the machine: everything is in
//! plain `Vec`s, is found by linear search, and is counted again whenever it is needed. It is slow
//! and obvious on purpose; where the two disagree, one of them is wrong.
//!
//! The ids in the comments are those of `spec-tests/requirements.txt`. Two choices of the machine
//! are learnt or repeated: the slot in a `ConnId` ([`Model::learn`]), and the random numbers that
//! shorten lifetimes.

mod check_out;
mod connection;
mod generation;
mod key;
mod late;
mod legal;
mod maintenance;
mod pace;
mod shed;
mod view;

use std::time::Duration;

use cenote_core::pool::{
    Action, ConnId, Event, Input, Instant, InvalidOptions, Maintenance, MisuseReason, NoPayload,
    PoolOptions, PoolState, PoolTypes, Purpose, ReuseOrder, ServiceId, Snapshot, Status, WaiterId,
};

use pace::{Demand, Pace};

/// A pool without any optimisation.
#[derive(Clone)]
pub struct Model<S: PoolTypes> {
    options: PoolOptions,
    status: Status,
    // PS-14: of the pool.
    generation: u64,
    // LB-01: each service that has connections. Their number is counted when needed.
    services: Vec<Service<S::Cause>>,
    /// The service that each clear named, in order, whether it had connections or not.
    clears: Vec<ServiceId>,
    /// Every connection that is not closed, ordered by the time at which it entered its present
    /// state: so pending ones are in order of creation, available ones in order of check-in, those
    /// in use in order of check-out.
    connections: Vec<Connection<S::Conn, S::Waiter>>,
    // WQ-01: oldest first.
    queue: Vec<Request<S::Waiter>>,
    /// The late replies of connections that are pending a response or draining.
    responses: Vec<Response<S::Cause>>,
    // SI-19.
    cleared_by: Option<S::Cause>,
    // T-37: the minimum pool size is not restored before this time.
    populate_after: Option<Instant>,
    /// Since when the oldest request has waited for the target of shedding or longer, at every moment.
    delayed_since: Option<Instant>,
    pace: Pace,
    /// Of a predictive minimum.
    demand: Option<Demand>,
    // CO-05: the number of connections ever created, and so the number of the last one.
    created: u64,
    // FK-01: connections up to this number belong to the parent of this process.
    inherited: u64,
    last_waiter: Option<WaiterId>,
    now: Instant,
    clock_regressions: u64,
    /// A snapshot to be filled in: its type cannot be constructed outside its crate.
    blank: Snapshot,
    actions: Vec<Action<S>>,
}

#[derive(Clone)]
struct Connection<C, W> {
    id: ConnId,
    // CO-09, LB-03.
    generation: u64,
    service: Option<ServiceId>,
    created: Instant,
    expires: Option<Instant>,
    /// Maintenance has seen the end of its lifetime, so that no further deadline is needed.
    expiry_seen: bool,
    phase: Phase<C, W>,
}

#[derive(Clone)]
struct Service<E> {
    id: ServiceId,
    generation: u64,
    cleared_by: Option<E>,
    /// The number of clears when it was remembered: which of those were of it, is not known.
    since: usize,
}

#[derive(Clone)]
enum Phase<C, W> {
    Pending {
        owner: Option<Request<W>>,
        handshaken: bool,
        reported: bool,
    },
    Available {
        conn: C,
        since: Instant,
    },
    InUse {
        since: Instant,
        purpose: Purpose,
        interrupted: bool,
        reported: bool,
    },
    /// Available once the late reply was read.
    PendingResponse {
        conn: C,
        since: Instant,
    },
    /// The shell reads the late reply; announced to the request, if there is one.
    Draining {
        owner: Option<Request<W>>,
        started: Instant,
        announced: Instant,
    },
}

/// A reply that is still to come after its caller timed out.
#[derive(Clone)]
struct Response<E> {
    connection: ConnId,
    request_id: i32,
    last_read: Instant,
    cause: E,
}

#[derive(Clone)]
struct Request<W> {
    id: WaiterId,
    waiter: W,
    started: Instant,
    deadline: Option<Instant>,
    // CS-02: whether the caller set the deadline, which then covers establishment, too.
    callers: bool,
    purpose: Purpose,
}

impl<S: PoolTypes> Model<S> {
    /// A paused pool in generation 0, which emits PoolCreated with the options that were set.
    ///
    /// # Errors
    ///
    /// If the options are invalid.
    // PCR-04.
    pub fn new(
        now: Instant,
        options: PoolOptions,
    ) -> Result<(Self, Vec<Action<S>>), InvalidOptions> {
        legal::options(&options)?;
        let created = Event::ConnectionPoolCreated { options: Box::new(options.clone()) };
        let mut model = Self {
            options,
            status: Status::Paused,
            generation: 0,
            services: Vec::new(),
            clears: Vec::new(),
            connections: Vec::new(),
            queue: Vec::new(),
            responses: Vec::new(),
            cleared_by: None,
            populate_after: None,
            delayed_since: None,
            pace: Pace::default(),
            demand: None,
            created: 0,
            inherited: 0,
            last_waiter: None,
            now,
            clock_regressions: 0,
            blank: blank_snapshot()?,
            actions: Vec::new(),
        };
        model.demand = model.new_demand();
        Ok((model, vec![Action::EmitEvent(created)]))
    }

    /// The actions that the machine has to emit for this input.
    ///
    /// A new connection has the slot `u32::MAX` in the actions, until [`learn`](Self::learn) sets
    /// the slot that the machine chose.
    ///
    /// # Errors
    ///
    /// The reason why the input is invalid; then nothing has changed.
    pub fn handle(
        &mut self,
        now: Instant,
        input: Input<S>,
    ) -> Result<Vec<Action<S>>, MisuseReason> {
        self.judge(&input)?;
        self.move_clock(now);
        // WQ-05; a deadline that is exactly now may still be met by this input (SI-16).
        self.watch_delay();
        self.time_out(|deadline, now| deadline < now);
        self.watch_delay();
        self.shed(|at, now| at < now);
        // Check-outs and check-ins do not look at drains and establishments.
        if !matches!(input, Input::CheckOutRequested { .. } | Input::CheckedIn { .. }) {
            self.time_out_drains(|deadline, now| deadline < now);
            self.time_out_owners(|deadline, now| deadline < now);
        }
        self.apply(input);
        // OUT-07, T-21, T-27: the input may have freed something for waiting requests.
        self.serve_waiting();
        // PO-05, after pruning (BG-11) and after waiting requests (T-12).
        self.populate();
        self.watch_delay();
        Ok(std::mem::take(&mut self.actions))
    }

    /// Sets the slot that the machine chose for this connection number.
    pub fn learn(&mut self, id: ConnId) {
        for connection in &mut self.connections {
            if connection.id.number() == id.number() {
                connection.id = id;
            }
        }
    }

    fn apply(&mut self, input: Input<S>) {
        match input {
            Input::CheckOutRequested { id, waiter, deadline, purpose } => {
                self.check_out(id, waiter, deadline, purpose);
            }
            Input::CheckOutCancelled { id } => self.cancel(id),
            Input::CheckedIn { id, conn, health } => self.check_in(id, conn, health),
            Input::Repurposed { id, purpose: to } => self.repurpose(id, to),
            Input::Handshaken { id, service, clears_at_hello } => {
                self.handshaken(id, service, clears_at_hello);
            }
            Input::EstablishSucceeded { id, conn } => self.established(id, conn),
            Input::EstablishFailed { id, cause, overloaded } => {
                self.establish_failed(id, cause, overloaded);
            }
            Input::IdleClosedByPeer { id, cause } => self.closed_by_peer(id, cause),
            Input::DrainSucceeded { id, conn } => self.drain_succeeded(id, conn),
            Input::DrainFailed { id, cause } => self.drain_failed(id, cause),
            Input::DrainProgress { id } => self.drain_progress(id),
            Input::RetireConnections => self.retire(),
            Input::ReleaseIdle => self.release_idle(),
            Input::Ready => self.ready(),
            Input::Close => self.close(),
            Input::Timer => self.run(),
            Input::ResetAfterFork => self.reset_after_fork(),
            Input::Clear { cause, interrupt, service: None } => self.clear(&cause, interrupt),
            Input::Clear { cause, interrupt: _, service: Some(service) } => {
                self.clear_service(&cause, service);
            }
            Input::SetOptions { options } => self.set_options(*options),
        }
    }

    /// Time never runs backwards; attempts are counted.
    fn move_clock(&mut self, now: Instant) {
        if now < self.now {
            self.clock_regressions += 1;
        } else {
            self.measure_demand(now);
            self.now = now;
        }
    }

    fn emit(&mut self, event: Event<S::Cause>) {
        self.actions.push(Action::EmitEvent(event));
    }

    // OP-02, T-15: 0 is no limit.
    fn max_total(&self) -> Option<usize> {
        let max = self.options.max_pool_size.unwrap_or(PoolOptions::DEFAULT_MAX_POOL_SIZE);
        (max != 0).then_some(max as usize)
    }

    // OP-03, or what is predicted if that is more.
    fn min_total(&self) -> usize {
        usize::max(self.options.min_pool_size.unwrap_or(0) as usize, self.predicted())
    }

    // OP-06.
    fn max_pending(&self) -> usize {
        self.options.max_connecting.unwrap_or(PoolOptions::DEFAULT_MAX_CONNECTING) as usize
    }

    // 0 is no limit. Not part of CMAP.
    fn max_waiting(&self) -> Option<u32> {
        self.options.max_wait_queue_size.filter(|&max| max != 0)
    }

    // OP-05, T-55: 0 is never.
    fn max_idle(&self) -> Option<Duration> {
        self.options.max_idle_time.filter(|time| !time.is_zero())
    }

    fn leak_detection_threshold(&self) -> Option<Duration> {
        self.options.leak_detection_threshold.filter(|time| !time.is_zero())
    }

    fn unanswered_threshold(&self) -> Option<Duration> {
        self.options.unanswered_threshold.filter(|time| !time.is_zero())
    }

    // BG-09: how long the minimum pool size is not restored after a failure; `None` without
    // maintenance.
    fn pause_after_failure(&self) -> Option<Duration> {
        match self.options.maintenance {
            None => Some(PoolOptions::DEFAULT_PAUSE_AFTER_FAILURE),
            Some(Maintenance::PauseAfterFailure(pause)) => Some(pause),
            Some(Maintenance::Never | _) => None,
        }
    }

    fn runs(&self) -> bool {
        self.pause_after_failure().is_some()
    }

    fn reuse_order(&self) -> ReuseOrder {
        self.options.reuse_order.unwrap_or(ReuseOrder::MostRecentlyUsed)
    }

    fn load_balanced(&self) -> bool {
        self.options.load_balanced == Some(true)
    }
}

fn blank_snapshot() -> Result<Snapshot, InvalidOptions> {
    let nobody = &mut |_: Action<NoPayload>| {};
    Ok(PoolState::<NoPayload>::new(Instant::ORIGIN, PoolOptions::default(), nobody)?.snapshot())
}
