//! Check-outs, waiting, cancellation.

use std::sync::Arc;

use cenote_core::pool::{
    Action, CheckOutError, CloseReason, ConnId, Event, Instant, PendingResponseFailure, PoolTypes,
    Purpose, ReuseOrder, Snapshot, Status, WaiterId,
};

use super::view::is_available;
use super::{Model, Phase, Request};

impl<S: PoolTypes> Model<S> {
    // OUT-16.
    pub(super) fn check_out(
        &mut self,
        id: WaiterId,
        waiter: S::Waiter,
        deadline: Option<Instant>,
        purpose: Purpose,
    ) {
        self.last_waiter = Some(id);
        // T-06: before the state is checked.
        self.emit(Event::ConnectionCheckOutStarted { request: id });
        // CS-07: a deadline of the caller replaces waitQueueTimeoutMS, where 0 means no limit.
        let timeout = self.options.wait_queue_timeout.filter(|timeout| !timeout.is_zero());
        let by_options = timeout.map(|timeout| self.now + timeout);
        let request = Request {
            id,
            waiter,
            started: self.now,
            deadline: deadline.or(by_options),
            callers: deadline.is_some(),
            purpose,
        };
        match self.status {
            Status::Closed => self.fail(request, CheckOutError::PoolClosed),
            Status::Paused => self.fail_cleared(request, self.cleared_by.clone()),
            Status::Ready => self.check_out_of_ready_pool(request),
        }
    }

    fn check_out_of_ready_pool(&mut self, request: Request<S::Waiter>) {
        let out_of_time = request.deadline.is_some_and(|deadline| deadline <= self.now);
        // T-19, WQ-07: no request overtakes waiting ones.
        let nobody_waits = self.queue.is_empty();
        if let Some(id) = nobody_waits.then(|| self.choose_available()).flatten() {
            return self.hand_over_available(id, request);
        }
        // Out of time: an available connection or a timeout.
        if out_of_time {
            let snapshot = self.snapshot();
            return self.fail_timed_out(request, &Arc::new(snapshot));
        }
        if nobody_waits
            && self.keeps_late_replies()
            && let Some(id) = self.choose_late()
        {
            return self.drain_for(request, id);
        }
        if nobody_waits && self.may_establish() {
            return self.establish_for(request);
        }
        // Before it enters the queue; which may be longer than a limit that came later, or by requests
        // that were put back.
        if let Some(max) = self.max_waiting().filter(|&max| self.queue.len() >= max as usize) {
            return self.fail(request, CheckOutError::WaitQueueFull { max });
        }
        self.queue.push(request);
    }

    // WQ-03, OUT-07: oldest first, until the oldest cannot be served.
    pub(super) fn serve_waiting(&mut self) {
        while !self.queue.is_empty() {
            if let Some(id) = self.choose_available() {
                let request = self.queue.remove(0);
                self.hand_over_available(id, request);
                continue;
            }
            // As a check-out: no time to wait, no late reply.
            let is_out_of_time = self.queue[0].deadline.is_some_and(|at| at <= self.now);
            let late = if is_out_of_time { None } else { self.choose_late() };
            if let Some(id) = late {
                let request = self.queue.remove(0);
                self.drain_for(request, id);
            } else if self.may_establish() {
                let request = self.queue.remove(0);
                self.establish_for(request);
            } else {
                return;
            }
        }
    }

    // OUT-04, OUT-05: visits the available connections in the order of reuse, and closes perished
    // ones before the first good one.
    fn choose_available(&mut self) -> Option<ConnId> {
        loop {
            let mut available = self.connections.iter().filter(|it| is_available(&it.phase));
            let chosen = match self.reuse_order() {
                ReuseOrder::MostRecentlyUsed => available.next_back(),
                ReuseOrder::LeastRecentlyUsed | _ => available.next(),
            };
            let id = chosen?.id;
            match self.perished(id) {
                Some(reason) => self.close_available(id, reason, None),
                None => return Some(id),
            }
        }
    }

    // KX-05: stale before idle.
    pub(super) fn perished(&self, id: ConnId) -> Option<CloseReason> {
        if self.is_stale(id) {
            return Some(CloseReason::Stale);
        }
        // CO-10: for longer than allowed, strictly.
        let idle = match &self.connection(id).phase {
            Phase::Available { since, .. } | Phase::PendingResponse { since, .. } => {
                self.max_idle().is_some_and(|max_idle| self.now > *since + max_idle)
            }
            Phase::Draining { .. } => false,
            Phase::Pending { .. } | Phase::InUse { .. } => return None,
        };
        (idle || self.is_past_lifetime(id)).then_some(CloseReason::Idle)
    }

    // OUT-15.
    fn hand_over_available(&mut self, id: ConnId, request: Request<S::Waiter>) {
        let was = self.enter(id, self.in_use_for(request.purpose));
        let Phase::Available { conn, .. } = was else { panic!("c{} is available", id.number()) };
        self.deliver(id, conn, request);
    }

    pub(super) fn in_use_for<C, W>(&self, purpose: Purpose) -> Phase<C, W> {
        Phase::InUse { since: self.now, purpose, interrupted: false, reported: false }
    }

    // OUT-06; the request has left the queue. Only a deadline of the caller covers
    // establishment.
    fn establish_for(&mut self, request: Request<S::Waiter>) {
        let deadline = request.deadline.filter(|_| request.callers);
        let owner = Some(request.id);
        let id = self.create(Some(request));
        let generation = self.generation;
        self.actions.push(Action::StartEstablish { id, owner, deadline, generation });
    }

    // DU-03.
    pub(super) fn deliver(&mut self, id: ConnId, conn: S::Conn, request: Request<S::Waiter>) {
        let duration = self.now.saturating_since(request.started).into();
        self.emit(Event::ConnectionCheckedOut {
            connection_id: id.number(),
            request: request.id,
            duration,
        });
        self.actions.push(Action::Deliver { waiter: request.waiter, outcome: Ok((id, conn)) });
    }

    // SI-10: the caller cancelled; `timeout` if its deadline is exactly now. The connection that
    // was being established for it continues.
    pub(super) fn cancel(&mut self, id: WaiterId) {
        let snapshot = self.snapshot();
        let Some(request) = self.take_waiting(id).or_else(|| self.take_owner_by_id(id)) else {
            return;
        };
        if request.deadline.is_some_and(|deadline| deadline <= self.now) {
            self.fail_timed_out(request, &Arc::new(snapshot));
        } else {
            self.fail(request, CheckOutError::Cancelled);
        }
    }

    fn take_waiting(&mut self, id: WaiterId) -> Option<Request<S::Waiter>> {
        let index = self.queue.iter().position(|request| request.id == id)?;
        Some(self.queue.remove(index))
    }

    fn take_owner_by_id(&mut self, id: WaiterId) -> Option<Request<S::Waiter>> {
        for connection in &mut self.connections {
            if let Phase::Pending { owner, .. } = &mut connection.phase
                && owner.as_ref().is_some_and(|request| request.id == id)
            {
                let request = owner.take()?;
                let deadline = request.deadline.filter(|_| request.callers);
                return Some(Request { deadline, ..request });
            }
        }
        for drain in self.draining_for_requests() {
            let Phase::Draining { owner: Some(request), .. } = &self.connection(drain).phase else {
                continue;
            };
            if request.id == id {
                let is_due = request.deadline.is_some_and(|deadline| deadline <= self.now);
                let timeout = PendingResponseFailure::Timeout;
                let reason = if is_due { timeout } else { PendingResponseFailure::Error };
                return self.take_drain_owner(drain, reason);
            }
        }
        None
    }

    // WQ-05: the earliest deadline first; of equal ones, the older request first. Each error has
    // the snapshot from before the first of them left.
    pub(super) fn time_out(&mut self, due: impl Fn(Instant, Instant) -> bool) {
        let mut snapshot = None;
        loop {
            let overdue = |request: &Request<S::Waiter>| {
                request.deadline.filter(|&deadline| due(deadline, self.now))
            };
            let earliest = self.queue.iter().filter_map(overdue).min();
            let Some(earliest) = earliest else { return };
            let index = self.queue.iter().position(|request| request.deadline == Some(earliest));
            let snapshot = snapshot.get_or_insert_with(|| Arc::new(self.snapshot()));
            let request = self.queue.remove(index.expect("the deadline of a waiting request"));
            self.fail_timed_out(request, snapshot);
        }
    }

    /// A request whose caller waits no longer for the connection that is established for it: that goes on. The oldest is
    /// the first; each error has the snapshot from before the first of them left.
    pub(super) fn time_out_owners(&mut self, due: impl Fn(Instant, Instant) -> bool) {
        let mut overdue = Vec::new();
        for connection in &self.connections {
            if let Phase::Pending { owner: Some(request), .. } = &connection.phase {
                let limit = request.deadline.filter(|_| request.callers);
                if limit.is_some_and(|limit| due(limit, self.now)) {
                    overdue.push((request.id, connection.id));
                }
            }
        }
        overdue.sort();
        let snapshot = Arc::new(self.snapshot());
        for (_, id) in overdue {
            let request = self.take_owner(id).expect("it has a request");
            self.fail_timed_out(request, &snapshot);
        }
    }

    // WQ-10, CLR-10: all of them, oldest first.
    pub(super) fn fail_waiting(&mut self, error: &CheckOutError<S::Cause>) {
        while !self.queue.is_empty() {
            let request = self.queue.remove(0);
            self.fail(request, error.clone());
        }
    }

    pub(super) fn fail_timed_out(&mut self, request: Request<S::Waiter>, snapshot: &Arc<Snapshot>) {
        let snapshot = Arc::clone(snapshot);
        self.fail(request, CheckOutError::WaitQueueTimeout { snapshot });
    }

    // ER-03.
    pub(super) fn fail_cleared(&mut self, request: Request<S::Waiter>, cause: Option<S::Cause>) {
        self.fail(request, CheckOutError::PoolCleared { cause });
    }

    // OUT-17, DU-04: the event, then the outcome.
    pub(super) fn fail(&mut self, request: Request<S::Waiter>, error: CheckOutError<S::Cause>) {
        self.emit(Event::ConnectionCheckOutFailed {
            request: request.id,
            error: error.clone(),
            duration: self.now.saturating_since(request.started).into(),
        });
        self.actions.push(Action::Deliver { waiter: request.waiter, outcome: Err(error) });
    }
}
