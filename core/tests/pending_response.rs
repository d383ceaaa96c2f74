//! Late replies: connections that are pending a response, and drains, in virtual time.

use std::time::Duration;

use cenote_core::pool::{
    Action, ConnId, ConnectionState, DeadlineReason, Elapsed, Event, Health, Input, Instant,
    Maintenance, MisuseReason, PoolOptions, PoolState, PoolTypes, Purpose, ServiceId, Snapshot,
    WaiterId, WaitsFor,
};

enum Plain {}

impl PoolTypes for Plain {
    type Conn = u64;
    type Waiter = u64;
    type Cause = &'static str;
}

/// A pool, its clock, and the sockets that callers and drains have.
struct World {
    pool: PoolState<Plain>,
    now: Instant,
    requests: u64,
}

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);
const SERVICE: ServiceId = ServiceId([7; 12]);

fn options() -> PoolOptions {
    PoolOptions::default().with_experimental_pending_response(true)
}

/// Nothing is closed before all are made, so that slots are taken into use in order.
fn id(number: u64) -> ConnId {
    ConnId::from_parts(number, u32::try_from(number - 1).expect("few"))
}

impl World {
    /// A ready pool.
    fn new(options: PoolOptions) -> Self {
        let mut pool = PoolState::new(Instant::ORIGIN, options, &mut |_| {}).expect("options");
        pool.handle(Instant::ORIGIN, Input::Ready, &mut |_| {}).expect("legal");
        Self { pool, now: Instant::ORIGIN, requests: 0 }
    }

    /// A pool with this many connections, all available and pending a response, whose request ids
    /// are ten times their numbers.
    fn with_pending(options: PoolOptions, count: u64) -> Self {
        let mut world = Self::new(options);
        let is_balanced = world.pool.options().load_balanced == Some(true);
        for number in 1..=count {
            world.ask();
            if is_balanced {
                world.feed(Input::Handshaken {
                    id: id(number),
                    service: Some(SERVICE),
                    clears_at_hello: None,
                });
            }
            world.feed(Input::EstablishSucceeded { id: id(number), conn: number });
        }
        for number in 1..=count {
            assert_eq!(world.late(number), [format!("CheckedIn {number}")]);
        }
        world
    }

    fn after(&mut self, time: Duration) -> &mut Self {
        self.now = self.now + time;
        self
    }

    /// The actions of an input, in short.
    #[track_caller]
    fn feed(&mut self, input: Input<Plain>) -> Vec<String> {
        self.try_feed(input).expect("a legal input")
    }

    fn try_feed(&mut self, input: Input<Plain>) -> Result<Vec<String>, MisuseReason> {
        let mut actions = Vec::new();
        let handled = self.pool.handle(self.now, input, &mut actions);
        self.pool.check_invariants();
        let checkpoint = self.pool.checkpoint();
        let restored = PoolState::<Plain>::restore(&checkpoint, &mut Payloads).expect("a pool's");
        restored.check_invariants();
        assert_eq!(restored.fingerprint(), self.pool.fingerprint());
        assert_eq!(restored.checkpoint(), checkpoint);
        assert_eq!(restored.next_deadline(), self.pool.next_deadline());
        match handled {
            Ok(()) => Ok(actions.iter().map(short).collect()),
            Err(misuse) => {
                assert!(actions.is_empty());
                Err(misuse.reason)
            }
        }
    }

    #[track_caller]
    fn ask(&mut self) -> Vec<String> {
        self.ask_until(None)
    }

    #[track_caller]
    fn ask_for(&mut self, time: Duration) -> Vec<String> {
        let deadline = self.now + time;
        self.ask_until(Some(deadline))
    }

    fn ask_until(&mut self, deadline: Option<Instant>) -> Vec<String> {
        self.requests += 1;
        let (id, waiter) = (WaiterId(self.requests), self.requests);
        self.feed(Input::CheckOutRequested { id, waiter, deadline, purpose: Purpose::Cursor })
    }

    fn cancel(&mut self, request: u64) -> Vec<String> {
        self.feed(Input::CheckOutCancelled { id: WaiterId(request) })
    }

    fn late(&mut self, number: u64) -> Vec<String> {
        let request_id = 10 * i32::try_from(number).expect("few");
        let health = Health::PendingResponse { request_id, cause: "too slow" };
        self.feed(Input::CheckedIn { id: id(number), conn: number, health })
    }

    fn check_in(&mut self, number: u64) -> Vec<String> {
        let health = Health::Healthy;
        self.feed(Input::CheckedIn { id: id(number), conn: number, health })
    }

    fn drained(&mut self, number: u64) -> Vec<String> {
        self.feed(Input::DrainSucceeded { id: id(number), conn: number })
    }

    fn drain_failed(&mut self, number: u64) -> Vec<String> {
        self.feed(Input::DrainFailed { id: id(number), cause: "garbage" })
    }

    fn progress(&mut self, number: u64) {
        assert!(self.feed(Input::DrainProgress { id: id(number) }).is_empty());
    }

    fn timer(&mut self) -> Vec<String> {
        self.feed(Input::Timer)
    }

    /// The time until the next deadline, which must be that of a late reply.
    #[track_caller]
    fn due_in(&self) -> Duration {
        let deadline = self.pool.next_deadline().expect("a deadline");
        assert_eq!(deadline.reason, DeadlineReason::PendingResponse);
        deadline.at.saturating_since(self.now)
    }

    fn snapshot(&self) -> Snapshot {
        self.pool.snapshot()
    }

    /// Total, available, of these pending a response, in use, waiting.
    fn counts(&self) -> [u64; 5] {
        let Snapshot { total, available, pending_response, in_use, waiting, .. } = self.snapshot();
        [total.into(), available.into(), pending_response.into(), in_use.into(), waiting]
    }
}

struct Payloads;

impl cenote_core::pool::PayloadSource<Plain> for Payloads {
    fn conn(&mut self, id: ConnId) -> u64 {
        id.number()
    }
    fn waiter(&mut self, id: WaiterId) -> u64 {
        id.0
    }
    fn cause(&mut self, _: Option<ServiceId>) -> &'static str {
        "an earlier clear"
    }
    fn timeout(&mut self, _: ConnId) -> &'static str {
        "too slow"
    }
}

fn short(action: &Action<Plain>) -> String {
    match action {
        Action::StartEstablish { id, .. } => format!("establish {}", id.number()),
        Action::AbortEstablish { id } => format!("abort {}", id.number()),
        Action::StartDrain { id, conn } => format!("drain {} {conn}", id.number()),
        Action::AbortDrain { id } => format!("abort drain {}", id.number()),
        Action::Deliver { waiter, outcome: Ok((id, conn)) } => {
            assert_eq!(id.number(), *conn);
            format!("deliver {conn} to {waiter}")
        }
        Action::Deliver { waiter, outcome: Err(error) } => {
            format!("deny {waiter} {}", error.reason().as_str())
        }
        Action::CloseSocket { id, conn } => {
            assert_eq!(id.number(), *conn);
            format!("close {conn}")
        }
        Action::Interrupt { id } => format!("interrupt {}", id.number()),
        Action::ReportLeak { id, .. } => format!("leak {}", id.number()),
        Action::ReportUnanswered { id, .. } => format!("unanswered {}", id.number()),
        Action::EmitEvent(event) => short_event(event),
    }
}

fn short_event(event: &Event<&'static str>) -> String {
    let name = event.name().trim_start_matches("Connection");
    let ms = |duration: &Elapsed| duration.get().as_millis();
    match event {
        Event::ConnectionCreated { connection_id }
        | Event::ConnectionReady { connection_id, .. }
        | Event::ConnectionCheckedOut { connection_id, .. }
        | Event::ConnectionCheckedIn { connection_id } => format!("{name} {connection_id}"),
        Event::ConnectionClosed { connection_id, reason, error } => {
            let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
            format!("{name} {connection_id} {}{error}", reason.as_str())
        }
        Event::ConnectionCheckOutFailed { error, .. } => {
            format!("{name} {}", error.reason().as_str())
        }
        Event::ConnectionPendingResponseStarted { connection_id, request_id } => {
            format!("{name} {connection_id} {request_id}")
        }
        Event::ConnectionPendingResponseSucceeded { connection_id, request_id, duration } => {
            format!("{name} {connection_id} {request_id} {} ms", ms(duration))
        }
        Event::ConnectionPendingResponseFailed { connection_id, request_id, duration, reason } => {
            let reason = reason.as_str();
            format!("{name} {connection_id} {request_id} {reason} {} ms", ms(duration))
        }
        Event::ConnectionPoolCreated { .. }
        | Event::ConnectionPoolReady
        | Event::ConnectionPoolCleared { .. }
        | Event::ConnectionPoolClosed
        | Event::ConnectionCheckOutStarted { .. }
        | _ => name.to_owned(),
    }
}

/// Without the option a late reply costs the connection, as any error does.
#[test]
fn without_the_option_it_is_an_error() {
    let mut world = World::new(PoolOptions::default());
    world.ask();
    world.feed(Input::EstablishSucceeded { id: id(1), conn: 1 });
    assert_eq!(world.late(1), ["CheckedIn 1", "Closed 1 error (too slow)", "close 1"]);
    assert_eq!(world.snapshot().total, 0);
}

// LR-01
#[test]
fn a_connection_is_kept_and_drained_for_the_next_request() {
    let mut world = World::with_pending(options(), 1);
    assert_eq!(world.counts(), [1, 1, 1, 0, 0]);
    assert_eq!(
        world.ask(),
        ["CheckOutStarted", "PendingResponseStarted 1 10", "drain 1 1"],
        "before a connection is created"
    );
    assert_eq!(world.counts(), [1, 0, 0, 1, 0], "in use for a request that does not wait");
    assert_eq!(world.snapshot().in_use_by_cursors, 1);
    let waiter = world.pool.waiters().next().expect("the request");
    assert_eq!(waiter.waits_for, WaitsFor::PendingResponse(id(1)));
    let state = world.pool.connections().next().expect("the connection").state;
    let owner = Some(WaiterId(2));
    assert_eq!(state, ConnectionState::Draining { request_id: 10, owner });
    assert_eq!(
        world.after(20 * MILLISECOND).drained(1),
        ["PendingResponseSucceeded 1 10 20 ms", "CheckedOut 1", "deliver 1 to 2"]
    );
    assert_eq!(world.counts(), [1, 0, 0, 1, 0]);
    assert_eq!(world.snapshot().in_use_by_cursors, 1);
    assert_eq!(world.check_in(1), ["CheckedIn 1"]);
    assert_eq!(world.counts(), [1, 1, 0, 0, 0], "it is clean again");
}

/// The order of events in the draft's tests: a failed drain, and a new connection.
// LR-08
#[test]
fn after_a_failed_drain_the_request_gets_another_connection() {
    let mut world = World::with_pending(options(), 1);
    world.ask();
    assert_eq!(
        world.after(MILLISECOND).drain_failed(1),
        [
            "PendingResponseFailed 1 10 error 1 ms",
            "Closed 1 error (garbage)",
            "Created 2",
            "establish 2"
        ]
    );
    let second = ConnId::from_parts(2, 0);
    assert_eq!(
        world.feed(Input::EstablishSucceeded { id: second, conn: 2 }),
        ["Ready 2", "CheckedOut 2", "deliver 2 to 2"]
    );
}

/// The order of events in the draft's tests: several calls to drain.
// LR-07
#[test]
fn a_request_that_gives_up_leaves_the_drain_to_the_next() {
    let mut world = World::with_pending(options(), 1);
    world.ask_for(50 * MILLISECOND);
    assert_eq!(world.due_in(), 50 * MILLISECOND, "the deadline of the request");
    assert_eq!(
        world.after(50 * MILLISECOND).timer(),
        ["PendingResponseFailed 1 10 timeout 50 ms", "CheckOutFailed timeout", "deny 2 timeout"]
    );
    assert_eq!(world.counts(), [1, 1, 1, 0, 0], "it drains for no request, and is available");
    assert_eq!(world.due_in(), 2950 * MILLISECOND);
    assert_eq!(
        world.after(SECOND).ask(),
        ["CheckOutStarted", "PendingResponseStarted 1 10"],
        "the drain goes on"
    );
    assert_eq!(
        world.after(SECOND).drained(1),
        ["PendingResponseSucceeded 1 10 1000 ms", "CheckedOut 1", "deliver 1 to 3"]
    );
}

/// `waitQueueTimeoutMS` applies while a request waits for the end of a drain, unlike while it waits
/// for an establishment; and a deadline that is over counts, even if the timer is late.
#[test]
fn the_limits_of_the_wait_queue_apply_to_drains() {
    let mut world = World::with_pending(options().with_wait_queue_timeout(20 * MILLISECOND), 1);
    world.ask();
    assert_eq!(world.due_in(), 20 * MILLISECOND);
    assert_eq!(
        world.after(21 * MILLISECOND).drained(1),
        ["PendingResponseFailed 1 10 timeout 21 ms", "CheckOutFailed timeout", "deny 2 timeout"]
    );
    assert_eq!(world.counts(), [1, 1, 0, 0, 0]);
}

// LR-03, LR-05
#[test]
fn the_window_slides_with_every_byte_but_not_for_ever() {
    let mut world = World::with_pending(options(), 1);
    world.ask();
    assert_eq!(world.due_in(), 3 * SECOND);
    for _ in 0..13 {
        world.after(2 * SECOND).progress(1);
        assert_eq!(world.due_in(), 3 * SECOND);
    }
    world.after(2 * SECOND).progress(1);
    assert_eq!(world.due_in(), 2 * SECOND, "a drain takes 30 s at most");
    world.after(SECOND).progress(1);
    assert_eq!(
        world.after(SECOND).timer(),
        [
            "PendingResponseFailed 1 10 timeout 30000 ms",
            "Closed 1 error (too slow)",
            "abort drain 1",
            "Created 2",
            "establish 2"
        ]
    );
}

/// The window counts from the last byte or the check-in. If it is over when a check-out begins, what
/// is there already still counts.
// LR-06
#[test]
fn an_old_reply_gets_one_look() {
    let mut world = World::with_pending(options(), 1);
    world.after(SECOND).ask();
    assert_eq!(world.due_in(), 2 * SECOND);
    world.cancel(2);
    world.drained(1);
    world.ask();
    world.late(1);
    world.after(10 * SECOND).ask();
    assert_eq!(world.due_in(), 100 * MILLISECOND);
    world.after(99 * MILLISECOND).progress(1);
    assert_eq!(world.due_in(), 3 * SECOND, "a byte was there");
    world.after(3 * SECOND);
    assert_eq!(
        world.timer()[..2],
        ["PendingResponseFailed 1 10 timeout 3099 ms", "Closed 1 error (too slow)"]
    );
}

#[test]
fn an_unowned_drain_ends_without_events_about_the_response() {
    let mut world = World::with_pending(options(), 3);
    for _ in 4..=6 {
        world.ask();
    }
    for request in 4..=6 {
        assert_eq!(world.cancel(request).len(), 3);
    }
    assert_eq!(world.counts(), [3, 3, 3, 0, 0]);
    assert!(world.drained(1).is_empty());
    assert_eq!(world.counts(), [3, 3, 2, 0, 0]);
    assert_eq!(world.drain_failed(2), ["Closed 2 error (garbage)"]);
    let closed = ["Closed 3 error (too slow)", "abort drain 3"];
    assert_eq!(world.after(3 * SECOND).timer(), closed);
    assert_eq!(world.counts(), [1, 1, 0, 0, 0]);
}

// LR-04
#[test]
fn a_cancelled_check_out_leaves_the_drain() {
    let mut world = World::with_pending(options(), 1);
    world.ask_for(SECOND);
    assert_eq!(
        world.after(MILLISECOND).cancel(2),
        [
            "PendingResponseFailed 1 10 error 1 ms",
            "CheckOutFailed connectionError",
            "deny 2 connectionError"
        ]
    );
    world.ask_for(SECOND);
    assert_eq!(
        world.after(SECOND).cancel(3),
        ["PendingResponseFailed 1 10 timeout 1000 ms", "CheckOutFailed timeout", "deny 3 timeout"],
        "as a cancelled check-out whose time is over"
    );
    assert!(world.cancel(3).is_empty());
}

// LR-02
#[test]
fn clean_connections_come_first_and_drains_that_go_on_before_others() {
    let mut world = World::with_pending(options(), 3);
    // Made available, and so clean.
    world.ask();
    world.drained(1);
    world.check_in(1);
    assert_eq!(world.ask()[1..], ["CheckedOut 1", "deliver 1 to 5"]);
    assert_eq!(world.ask()[1..], ["PendingResponseStarted 2 20", "drain 2 2"], "the oldest");
    world.cancel(6);
    assert_eq!(world.ask()[1..], ["PendingResponseStarted 2 20"]);
    assert_eq!(world.ask()[1..], ["PendingResponseStarted 3 30", "drain 3 3"]);
    assert_eq!(world.ask()[1..], ["Created 4", "establish 4"]);
}

#[test]
fn an_attempt_does_not_wait_for_a_late_reply() {
    let mut world = World::with_pending(options(), 1);
    assert_eq!(
        world.ask_for(Duration::ZERO),
        ["CheckOutStarted", "CheckOutFailed timeout", "deny 2 timeout"]
    );
    assert_eq!(world.counts(), [1, 1, 1, 0, 0]);
    assert!(world.pool.next_available().is_none());
    assert!(world.pool.available_mut(id(1)).is_none(), "bytes on its socket are expected");
}

/// A request keeps its place in the queue when its drain fails: it is served before all that came
/// later.
#[test]
fn a_request_returns_to_its_place() {
    let mut world = World::with_pending(options().with_max_pool_size(2), 2);
    world.ask();
    world.ask();
    assert_eq!(world.ask(), ["CheckOutStarted"]);
    // Request 3 owns connection 1, request 4 connection 2, and request 5 waits.
    world.feed(Input::SetOptions { options: options().with_max_pool_size(1).into() });
    assert_eq!(
        world.drain_failed(2),
        ["PendingResponseFailed 2 20 error 0 ms", "Closed 2 error (garbage)"]
    );
    assert_eq!(world.counts(), [1, 0, 0, 1, 2]);
    let waiting: Vec<_> = world.pool.waiters().map(|waiter| waiter.id.0).collect();
    assert_eq!(waiting, [3, 4, 5]);
    world.drained(1);
    assert_eq!(world.check_in(1), ["CheckedIn 1", "CheckedOut 1", "deliver 1 to 4"]);
    assert_eq!(world.check_in(1), ["CheckedIn 1", "CheckedOut 1", "deliver 1 to 5"]);
}

/// Also before requests that already own a connection that is being established.
#[test]
fn a_request_returns_before_younger_owners() {
    let mut world = World::with_pending(options().with_max_connecting(1), 1);
    world.ask_for(5 * SECOND);
    assert_eq!(world.ask()[1..], ["Created 2", "establish 2"]);
    assert_eq!(world.ask_for(SECOND), ["CheckOutStarted"]);
    assert_eq!(world.drain_failed(1).len(), 2, "maxConnecting is reached");
    let waiting: Vec<_> = world.pool.waiters().map(|waiter| waiter.id.0).collect();
    assert_eq!(waiting, [3, 2, 4], "an owner, then the queue");
    assert_eq!(world.pool.next_deadline().expect("one").at, Instant::ORIGIN + SECOND);
    assert_eq!(
        world.feed(Input::EstablishSucceeded { id: id(2), conn: 2 }),
        ["Ready 2", "CheckedOut 2", "deliver 2 to 3", "Created 3", "establish 3"]
    );
    assert_eq!(world.check_in(2), ["CheckedIn 2", "CheckedOut 2", "deliver 2 to 4"]);
    let third = ConnId::from_parts(3, 0);
    let ready = world.feed(Input::EstablishSucceeded { id: third, conn: 3 });
    assert_eq!(ready, ["Ready 3", "CheckedOut 3", "deliver 3 to 2"]);
}

/// Late replies are switched off, and requests 3 and 4 return, while request 5 owns connection 3. It gets that
/// one, whether the others wait for a place or for a permit, and they come before all that came later.
// WQ-17
#[test]
fn a_request_keeps_its_connection_when_older_ones_return() {
    let new = PoolOptions::default;
    for (others, next) in [
        (new().with_max_pool_size(1), &[][..]),
        (new().with_max_connecting(1), &["Created 4", "establish 4"]),
    ] {
        let connecting = others.max_connecting.unwrap_or(2);
        let mut world = World::with_pending(options().with_max_connecting(connecting), 2);
        world.ask();
        world.ask();
        assert_eq!(world.ask()[1..], ["Created 3", "establish 3"]);
        world.feed(Input::SetOptions { options: others.into() });
        world.ask();
        let waiting: Vec<_> = world.pool.waiters().map(|waiter| waiter.id.0).collect();
        assert_eq!(waiting, [5, 3, 4, 6], "an owner, then the queue");
        let ready = world.feed(Input::EstablishSucceeded { id: id(3), conn: 3 });
        assert_eq!(ready[..3], ["Ready 3", "CheckedOut 3", "deliver 3 to 5"]);
        assert_eq!(ready[3..], *next);
        let first = if next.is_empty() { 3 } else { 4 };
        assert_eq!(world.check_in(3)[2..], [format!("deliver 3 to {first}")]);
    }
}

/// However often a request returns, nothing is kept of the times before.
#[test]
fn a_request_can_return_again_and_again() {
    let mut world = World::with_pending(options().with_max_pool_size(100), 100);
    world.feed(Input::SetOptions { options: options().with_max_pool_size(1).into() });
    assert_eq!(world.counts(), [1, 1, 1, 0, 0], "surplus is closed, pending ones first");
    let mut world = World::with_pending(options().with_max_pool_size(100), 100);
    // Before this one, whose deadline is out of order then.
    world.ask_for(9 * SECOND);
    for number in 1..100 {
        let started = format!("PendingResponseStarted {0} {0}0", number + 1);
        let drain = format!("drain {0} {0}", number + 1);
        let again = world.drain_failed(number);
        assert_eq!(again[2..], [started, drain]);
    }
    assert_eq!(world.drain_failed(100)[2..], ["Created 101", "establish 101"]);
}

#[test]
fn a_clear_closes_what_is_pending_and_what_drains() {
    let mut world = World::with_pending(options(), 3);
    world.ask();
    world.ask();
    world.cancel(4);
    // Connection 1 drains for none, 2 for request 5, and 3 is pending.
    let clear = Input::Clear { cause: "reset", interrupt: false, service: None };
    assert_eq!(
        world.feed(clear),
        [
            "PoolCleared",
            "PendingResponseFailed 2 20 error 0 ms",
            "Closed 2 stale",
            "abort drain 2",
            "CheckOutFailed connectionError",
            "deny 5 connectionError",
            "Closed 1 stale",
            "abort drain 1",
            "Closed 3 stale",
            "close 3"
        ]
    );
    assert_eq!(world.drained(1), ["close 1"], "the answer was on its way");
    assert!(world.drain_failed(2).is_empty());
    world.progress(2);
}

#[test]
fn a_clear_with_interrupts_is_an_error_of_drains() {
    let mut world = World::with_pending(options(), 1);
    world.ask();
    let clear = Input::Clear { cause: "reset", interrupt: true, service: None };
    assert_eq!(
        world.feed(clear)[1..],
        [
            "PendingResponseFailed 1 10 error 0 ms",
            "Closed 1 error (reset)",
            "abort drain 1",
            "CheckOutFailed connectionError",
            "deny 2 connectionError"
        ]
    );
}

/// Also where maintenance never runs: a stale connection would be handed out otherwise.
#[test]
fn without_maintenance_a_clear_stops_drains_all_the_same() {
    let mut world = World::with_pending(options().with_maintenance(Maintenance::Never), 2);
    world.ask();
    let clear = Input::Clear { cause: "reset", interrupt: false, service: None };
    assert_eq!(world.feed(clear).len(), 6);
    assert_eq!(world.counts(), [1, 1, 1, 0, 0], "what is available stays until a check-out");
    world.feed(Input::Ready);
    assert_eq!(
        world.ask(),
        ["CheckOutStarted", "Closed 2 stale", "close 2", "Created 3", "establish 3"]
    );
}

#[test]
fn the_clear_of_a_service_fails_no_request() {
    let balanced = options().with_load_balanced(true);
    let mut world = World::with_pending(balanced, 1);
    world.ask();
    let clear = |service| Input::Clear { cause: "reset", interrupt: false, service: Some(service) };
    assert!(world.feed(clear(ServiceId([1; 12]))).is_empty(), "another service");
    assert_eq!(
        world.feed(clear(SERVICE)),
        [
            "PoolCleared",
            "PendingResponseFailed 1 10 error 0 ms",
            "Closed 1 stale",
            "abort drain 1",
            "Created 2",
            "establish 2"
        ]
    );
}

#[test]
fn a_close_ends_everything() {
    let mut world = World::with_pending(options(), 3);
    world.ask();
    world.ask();
    world.cancel(4);
    assert_eq!(
        world.feed(Input::Close),
        [
            "PendingResponseFailed 2 20 error 0 ms",
            "Closed 2 poolClosed",
            "abort drain 2",
            "CheckOutFailed poolClosed",
            "deny 5 poolClosed",
            "Closed 1 poolClosed",
            "abort drain 1",
            "Closed 3 poolClosed",
            "close 3",
            "PoolClosed"
        ]
    );
    assert_eq!(world.drained(1), ["close 1"]);
}

#[test]
fn a_fork_forgets_drains() {
    let mut world = World::with_pending(options(), 2);
    world.ask();
    assert_eq!(
        world.feed(Input::ResetAfterFork),
        [
            "PendingResponseFailed 1 10 error 0 ms",
            "Closed 1 stale",
            "abort drain 1",
            "CheckOutFailed connectionError",
            "deny 3 connectionError",
            "Closed 2 stale",
            "close 2"
        ]
    );
    assert_eq!(world.snapshot().total, 0);
    assert!(world.pool.next_deadline().is_none());
}

#[test]
fn idle_times_count_from_the_check_in() {
    let mut world = World::with_pending(options().with_max_idle_time(SECOND), 2);
    world.ask();
    let deadline = world.pool.next_deadline().expect("one");
    assert_eq!(deadline.reason, DeadlineReason::IdleTime);
    let closed = world.after(SECOND + Duration::from_nanos(1)).timer();
    assert_eq!(closed, ["Closed 2 idle", "close 2"], "what drains is not idle");
    let mut world = World::with_pending(options().with_max_idle_time(SECOND), 1);
    let asked = world.after(2 * SECOND).ask();
    assert_eq!(asked[1..], ["Closed 1 idle", "close 1", "Created 2", "establish 2"]);
}

#[test]
fn lifetimes_end_drains_that_have_no_request() {
    let mortal = options().with_max_lifetime(2 * SECOND);
    let mut world = World::with_pending(mortal, 3);
    world.ask();
    world.ask();
    world.cancel(4);
    // Connection 1 drains for none, 2 for request 5, and 3 is pending.
    let mut closed = world.after(2 * SECOND).timer();
    closed.sort();
    assert_eq!(closed, ["Closed 1 idle", "Closed 3 idle", "abort drain 1", "close 3"]);
    assert_eq!(world.drained(2)[1..], ["CheckedOut 2", "deliver 2 to 5"], "whatever its age");
    assert_eq!(world.check_in(2), ["CheckedIn 2", "Closed 2 idle", "close 2"]);

    let mut world = World::with_pending(options().with_max_lifetime(2 * SECOND), 1);
    world.ask();
    world.after(2 * SECOND).timer();
    world.cancel(2);
    assert_eq!(world.drained(1), ["Closed 1 idle", "close 1"], "too old to be kept");

    let mut world = World::with_pending(options().with_max_lifetime(2 * SECOND), 1);
    world.ask();
    world.after(2 * SECOND).timer();
    world.cancel(2);
    let asked = world.ask();
    assert_eq!(asked[1..], ["Closed 1 idle", "abort drain 1", "Created 2", "establish 2"]);
}

#[test]
fn surplus_is_closed_but_for_what_requests_wait_for() {
    let mut world = World::with_pending(options(), 3);
    world.ask();
    world.ask();
    world.cancel(4);
    let fewer = options().with_max_pool_size(1);
    assert_eq!(
        world.feed(Input::SetOptions { options: fewer.into() }),
        ["Closed 3 idle", "close 3", "Closed 1 idle", "abort drain 1"]
    );
    let none = options().with_max_pool_size(1);
    let mut world = World::with_pending(options(), 2);
    world.ask();
    world.ask();
    assert!(world.feed(Input::SetOptions { options: none.into() }).is_empty());
    world.cancel(3);
    assert_eq!(world.drained(1), ["Closed 1 idle", "close 1"]);
}

#[test]
fn switching_it_off_closes_what_is_pending() {
    let mut world = World::with_pending(options(), 2);
    world.ask();
    assert_eq!(
        world.feed(Input::SetOptions { options: Box::default() }),
        [
            "Closed 2 error (too slow)",
            "close 2",
            "PendingResponseFailed 1 10 error 0 ms",
            "Closed 1 error (too slow)",
            "abort drain 1",
            "Created 3",
            "establish 3"
        ]
    );
    assert!(!world.pool.options().experimental_pending_response.unwrap_or(false));
}

/// The peer of a connection that is pending a response may close it; that of a draining one is the
/// drain's.
#[test]
fn a_peer_closes_a_connection_that_is_pending_a_response() {
    let mut world = World::with_pending(options(), 2);
    world.ask();
    let gone = |number| Input::IdleClosedByPeer { id: id(number), cause: "eof" };
    assert!(world.feed(gone(1)).is_empty());
    assert_eq!(world.feed(gone(2)), ["Closed 2 error (eof)", "close 2"]);
}

#[test]
fn other_faults_of_a_connection_come_first() {
    let mut world = World::new(options());
    for number in 1..=2 {
        world.ask();
        world.feed(Input::EstablishSucceeded { id: id(number), conn: number });
    }
    world.feed(Input::Clear { cause: "reset", interrupt: false, service: None });
    assert_eq!(world.late(1), ["CheckedIn 1", "Closed 1 stale", "close 1"]);
    world.feed(Input::Close);
    assert_eq!(world.late(2), ["CheckedIn 2", "Closed 2 stale", "close 2"]);
}

#[test]
fn answers_for_what_does_not_drain_are_refused() {
    let mut world = World::with_pending(options(), 2);
    world.ask();
    world.ask();
    world.drained(1);
    let not_draining = |number| Err(MisuseReason::NotDraining { id: id(number) });
    let progress = |number| Input::DrainProgress { id: id(number) };
    assert_eq!(world.try_feed(progress(1)), not_draining(1), "in use");
    let twice = Input::DrainSucceeded { id: id(1), conn: 1 };
    assert_eq!(world.try_feed(twice), not_draining(1));
    world.check_in(1);
    assert_eq!(world.try_feed(progress(1)), not_draining(1), "available");
    let failed = Input::DrainFailed { id: id(1), cause: "twice" };
    assert_eq!(world.try_feed(failed), not_draining(1));
    let foreign = Err(MisuseReason::ForeignConnection { id: id(9) });
    assert_eq!(world.try_feed(progress(9)), foreign);
    let health = Health::PendingResponse { request_id: 1, cause: "twice" };
    let back = Input::CheckedIn { id: id(2), conn: 2, health };
    assert_eq!(world.try_feed(back), Err(MisuseReason::NotInUse { id: id(2) }), "it drains");
    let purpose = Input::Repurposed { id: id(2), purpose: Purpose::Other };
    assert_eq!(world.try_feed(purpose), Err(MisuseReason::NotInUse { id: id(2) }));
    let answer = Input::EstablishFailed { id: id(2), cause: "no", overloaded: false };
    assert_eq!(world.try_feed(answer), Err(MisuseReason::NotPending { id: id(2) }));
}

/// The time is needed as long as anything can be pending a response.
#[test]
fn drains_need_the_time() {
    assert!(World::new(options()).pool.needs_now());
    let off = options().with_experimental_pending_response(false);
    assert!(!World::new(off).pool.needs_now());
}

mod retiring {
    use super::*;

    /// Connections 1 in use, 2 available, 3 pending for request 3.
    fn busy(options: PoolOptions) -> World {
        let mut world = World::new(options);
        for number in 1..=2 {
            world.ask();
            world.feed(Input::EstablishSucceeded { id: id(number), conn: number });
        }
        world.ask();
        world.check_in(2);
        world
    }

    #[test]
    fn what_is_available_is_closed_and_the_rest_when_it_comes_back() {
        let mut world = busy(PoolOptions::default());
        assert_eq!(
            world.feed(Input::RetireConnections),
            ["Closed 2 idle", "close 2", "Closed 3 idle", "abort 3", "Created 4", "establish 4"]
        );
        assert_eq!(world.snapshot().generation, 0);
        assert_eq!(world.check_in(1), ["CheckedIn 1", "Closed 1 idle", "close 1"]);
        // Those that are made from now on stay.
        let fourth = ConnId::from_parts(4, 2);
        assert_eq!(
            world.feed(Input::EstablishSucceeded { id: fourth, conn: 4 }),
            ["Ready 4", "CheckedOut 4", "deliver 4 to 3"]
        );
        let health = Health::Healthy;
        assert_eq!(world.feed(Input::CheckedIn { id: fourth, conn: 4, health }), ["CheckedIn 4"]);
    }

    /// The server may know the old credentials no more: that fails no request and clears no pool.
    #[test]
    fn a_failure_of_the_old_credentials_concerns_no_request() {
        let mut world = busy(PoolOptions::default());
        world.feed(Input::RetireConnections);
        let refused = Input::EstablishFailed { id: id(3), cause: "refused", overloaded: false };
        assert!(world.feed(refused).is_empty());
        assert_eq!(world.snapshot().pending, 1);
    }

    #[test]
    fn a_lifetime_does_not_begin_again() {
        let mut world = busy(PoolOptions::default().with_max_lifetime(60 * SECOND));
        world.feed(Input::RetireConnections);
        assert!(world.pool.next_deadline().is_none(), "nothing waits for its end");
        assert_eq!(world.check_in(1), ["CheckedIn 1", "Closed 1 idle", "close 1"]);
    }

    #[test]
    fn the_minimum_is_kept_with_new_connections() {
        let options = PoolOptions::default().with_min_pool_size(1);
        let mut world = World::new(options);
        assert_eq!(
            world.feed(Input::RetireConnections),
            ["Closed 1 idle", "abort 1", "Created 2", "establish 2"]
        );
        let second = ConnId::from_parts(2, 0);
        world.feed(Input::EstablishSucceeded { id: second, conn: 2 });
        assert_eq!(
            world.feed(Input::RetireConnections),
            ["Closed 2 idle", "close 2", "Created 3", "establish 3"]
        );
    }

    #[test]
    fn requests_that_wait_are_served_by_new_connections() {
        let mut world = World::new(PoolOptions::default().with_max_pool_size(1));
        world.ask();
        world.feed(Input::EstablishSucceeded { id: id(1), conn: 1 });
        world.ask();
        assert!(world.feed(Input::RetireConnections).is_empty());
        assert_eq!(
            world.check_in(1),
            ["CheckedIn 1", "Closed 1 idle", "close 1", "Created 2", "establish 2"]
        );
    }

    /// A request that returns is in the queue again, and may be there for no longer than any other since it came.
    // WQ-05, OP-08
    #[test]
    fn a_request_that_returns_has_its_limit_again() {
        let limited = options().with_wait_queue_timeout(5 * SECOND).with_max_connecting(1);
        let mut world = World::with_pending(limited.clone(), 1);
        world.ask();
        world.ask();
        // Connection 1 was for request 2, and 2 is for request 3.
        world.drain_failed(1);
        assert_eq!(world.feed(Input::EstablishSucceeded { id: id(2), conn: 2 }).len(), 5);
        assert!(world.pool.next_deadline().is_none(), "connection 3 takes as long as it takes");
        let third = world.pool.waiters().next().expect("request 2");
        assert_eq!((third.id, third.deadline), (WaiterId(2), None));

        world.feed(Input::SetOptions { options: limited.with_max_pool_size(1).into() });
        assert_eq!(world.feed(Input::RetireConnections), ["Closed 3 idle", "abort 3"]);
        world.after(SECOND).ask();
        let deadline = world.pool.next_deadline().expect("that of request 2");
        assert_eq!(deadline.at, Instant::ORIGIN + 5 * SECOND);
        assert_eq!(world.after(4 * SECOND).timer(), ["CheckOutFailed timeout", "deny 2 timeout"]);
        assert_eq!(world.pool.next_deadline().map(|it| it.at), Some(world.now + SECOND));
    }

    #[test]
    fn late_replies_are_not_awaited_any_more() {
        let mut world = World::with_pending(options(), 3);
        world.ask();
        world.ask();
        world.cancel(4);
        assert_eq!(
            world.feed(Input::RetireConnections),
            [
                "Closed 3 idle",
                "close 3",
                "PendingResponseFailed 2 20 error 0 ms",
                "Closed 2 idle",
                "abort drain 2",
                "Closed 1 idle",
                "abort drain 1",
                "Created 4",
                "establish 4"
            ]
        );
    }

    #[test]
    fn a_connection_that_retires_is_not_kept_for_a_late_reply() {
        let mut world = World::new(options());
        world.ask();
        world.feed(Input::EstablishSucceeded { id: id(1), conn: 1 });
        world.feed(Input::RetireConnections);
        assert_eq!(world.late(1), ["CheckedIn 1", "Closed 1 idle", "close 1"]);
    }

    #[test]
    fn a_paused_or_closed_pool_stays_so() {
        let mut world = busy(PoolOptions::default());
        world.feed(Input::Clear { cause: "reset", interrupt: false, service: None });
        assert!(world.feed(Input::RetireConnections).is_empty());
        assert_eq!(world.check_in(1), ["CheckedIn 1", "Closed 1 stale", "close 1"]);
        let mut world = busy(PoolOptions::default());
        world.feed(Input::Close);
        assert!(world.feed(Input::RetireConnections).is_empty());
        assert_eq!(world.check_in(1), ["CheckedIn 1", "Closed 1 poolClosed", "close 1"]);
    }
}
