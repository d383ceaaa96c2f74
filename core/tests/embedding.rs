//! What a driver's own shell is told, beyond what ours need.

use std::time::Duration;

use cenote_core::pool::{
    Action, ConnId, Deadline, DeadlineReason, Event, Health, Input, Instant, NoPayload,
    PoolOptions, PoolState, PoolTypes, Purpose, ServiceId, WaiterId,
};

const NOW: Instant = Instant::ORIGIN;

/// A pool and what it has to do.
struct World<S: PoolTypes> {
    pool: PoolState<S>,
    actions: Vec<Action<S>>,
}

impl World<NoPayload> {
    fn ready(options: PoolOptions) -> Self {
        let mut actions = Vec::new();
        let pool = PoolState::new(NOW, options, &mut actions).expect("good options");
        let mut world = Self { pool, actions };
        world.feed(Input::Ready);
        world
    }

    fn feed(&mut self, input: Input<NoPayload>) {
        self.feed_at(NOW, input);
    }

    fn feed_at(&mut self, now: Instant, input: Input<NoPayload>) {
        self.pool.handle(now, input, &mut self.actions).expect("a valid input");
        self.pool.check_invariants();
    }

    fn ask(&mut self, id: u64) {
        let (id, purpose) = (WaiterId(id), Purpose::Other);
        self.feed(Input::CheckOutRequested { id, waiter: (), deadline: None, purpose });
    }

    fn established(&mut self, number: u32) {
        self.feed(Input::EstablishSucceeded { id: connection(number), conn: () });
    }

    /// The connections that were started since this was last asked: number, owner, generation.
    fn started(&mut self) -> Vec<(u64, Option<u64>, u64)> {
        let started = |action| {
            let Action::StartEstablish { id, owner, deadline: _, generation } = action else {
                return None;
            };
            Some((id.number(), owner.map(|WaiterId(owner)| owner), generation))
        };
        self.actions.drain(..).filter_map(started).collect()
    }
}

/// A connection of a pool in which none was closed.
fn connection(number: u32) -> ConnId {
    ConnId::from_parts(number.into(), number - 1)
}

fn clear() -> Input<NoPayload> {
    Input::Clear { cause: (), interrupt: false, service: None }
}

#[test]
fn a_connection_names_the_request_that_it_is_made_for() {
    let mut world = World::ready(PoolOptions::default().with_min_pool_size(1));
    assert_eq!(world.started(), [(1, None, 0)], "for the minimum");
    world.ask(5);
    assert_eq!(world.started(), [(2, Some(5), 0)]);
    world.ask(7);
    assert_eq!(world.started(), [], "both permits are taken");
    world.established(1);
    assert_eq!(world.started(), [], "it goes to request 7");
    world.ask(8);
    assert_eq!(world.started(), [(3, Some(8), 0)]);
}

#[test]
fn a_request_that_waited_is_named_when_its_connection_is_started() {
    let mut world = World::ready(PoolOptions::default().with_max_connecting(1));
    world.ask(1);
    world.ask(2);
    assert_eq!(world.started(), [(1, Some(1), 0)]);
    world.established(1);
    assert_eq!(world.started(), [(2, Some(2), 0)]);
}

#[test]
fn a_connection_names_the_generation_in_which_it_is_made() {
    let mut world = World::ready(PoolOptions::default());
    world.ask(1);
    world.established(1);
    world.feed(clear());
    world.feed(Input::Ready);
    world.ask(2);
    assert_eq!(world.started(), [(1, Some(1), 0), (2, Some(2), 1)]);
    let generations = [1, 2].map(|number| world.pool.generation_of(connection(number)));
    assert_eq!(generations, [Some(0), Some(1)]);
    world.feed(Input::CheckedIn { id: connection(1), conn: (), health: Health::Healthy });
}

/// What is inside an action is moved on every check-out, so it stays small.
#[test]
fn actions_are_small() {
    assert!(size_of::<Action<NoPayload>>() <= 48, "{}", size_of::<Action<NoPayload>>());
}

impl World<NoPayload> {
    /// The connections that were reported since this was last asked, and for how long they had been
    /// pending.
    fn reported(&mut self) -> Vec<(u64, Duration)> {
        let reported = |action| {
            let Action::ReportUnanswered { id, pending } = action else { return None };
            Some((id.number(), pending))
        };
        self.actions.drain(..).filter_map(reported).collect()
    }

    fn timer(&mut self, at: Instant) {
        self.feed_at(at, Input::Timer);
    }

    fn due(&self) -> Option<Deadline> {
        self.pool.next_deadline()
    }
}

const fn second(number: u64) -> Instant {
    Instant::from_nanos(number * 1_000_000_000)
}

const fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// The defect of an embedder: with both answers lost, its pool never connects again.
#[test]
fn a_lost_answer_is_reported_once_and_keeps_its_permit() {
    let mut world = World::ready(PoolOptions::default().with_unanswered_threshold(seconds(10)));
    world.ask(1);
    world.ask(2);
    world.ask(3);
    let expected = Deadline { at: second(10), reason: DeadlineReason::Unanswered };
    assert_eq!(world.due(), Some(expected));
    world.timer(second(9));
    assert_eq!(world.reported(), []);
    world.timer(second(12));
    assert_eq!(world.reported(), [(1, seconds(12)), (2, seconds(12))]);
    assert_eq!(world.due(), None, "once for each connection");
    world.timer(second(99));
    assert_eq!(world.reported(), []);
    let snapshot = world.pool.snapshot();
    assert_eq!((snapshot.pending, snapshot.waiting), (2, 1), "the report changes nothing");
}

#[test]
fn an_answer_that_comes_after_all_is_used() {
    let options = PoolOptions::default().with_max_connecting(1);
    let mut world = World::ready(options.with_unanswered_threshold(seconds(10)));
    world.ask(1);
    world.ask(2);
    world.timer(second(10));
    assert_eq!(world.reported(), [(1, seconds(10))]);
    world.feed_at(second(11), Input::EstablishSucceeded { id: connection(1), conn: () });
    let expected = Deadline { at: second(21), reason: DeadlineReason::Unanswered };
    assert_eq!(world.due(), Some(expected), "for the connection of request 2");
    world.feed_at(
        second(12),
        Input::EstablishFailed { id: connection(2), cause: (), overloaded: false },
    );
    assert_eq!(world.due(), None);
}

#[test]
fn a_pending_connection_that_a_clear_made_stale_is_reported() {
    let mut world = World::ready(PoolOptions::default().with_unanswered_threshold(seconds(10)));
    world.ask(1);
    world.feed(clear());
    world.timer(second(10));
    assert_eq!(world.reported(), [(1, seconds(10))], "it keeps its permit");
    world.feed(Input::Close);
    assert_eq!(world.due(), None, "nothing is pending in a closed pool");
}

#[test]
fn a_threshold_that_changes_applies_to_what_is_pending() {
    let mut world = World::ready(PoolOptions::default());
    world.ask(1);
    assert_eq!(world.due(), None, "off by default");
    let options = PoolOptions::default().with_unanswered_threshold(seconds(3));
    world.feed(Input::SetOptions { options: Box::new(options.clone()) });
    world.timer(second(4));
    assert_eq!(world.reported(), [(1, seconds(4))]);
    let off = options.clone().with_unanswered_threshold(Duration::ZERO);
    world.feed(Input::SetOptions { options: Box::new(off) });
    world.ask(2);
    assert_eq!(world.due(), None, "0 is never");
    world.feed(Input::SetOptions { options: Box::new(options) });
    world.timer(second(20));
    assert_eq!(world.reported(), [(2, seconds(16))], "1 was reported before");
}

/// As a pool that was fed `Ready`, with all events but one.
#[test]
fn a_pool_that_is_ready_from_the_beginning_does_not_say_so() {
    let options = PoolOptions::default().with_min_pool_size(3).with_max_connecting(3);
    let (mut born, mut fed) = (Vec::new(), Vec::new());
    let ready = PoolState::<NoPayload>::new_ready(NOW, options.clone(), &mut born);
    let mut pool = PoolState::new(NOW, options, &mut fed).expect("good options");
    pool.handle(NOW, Input::Ready, &mut fed).expect("a valid input");
    let ready = ready.expect("good options");
    ready.check_invariants();
    assert_eq!(ready.fingerprint(), pool.fingerprint());
    assert_eq!(fed.remove(1), Action::EmitEvent(Event::ConnectionPoolReady));
    assert_eq!(born, fed);
    assert_eq!(born.len(), 5, "created, and two connections that are announced and started");
    let refused = PoolOptions::default().with_max_connecting(0);
    assert!(PoolState::<NoPayload>::new_ready(NOW, refused, &mut born).is_err());
    assert_eq!(born.len(), 5);
}

#[test]
fn a_pool_is_filled_once_its_minimum_is_established() {
    let mut world = World::ready(PoolOptions::default().with_min_pool_size(2));
    assert!(!world.pool.is_filled());
    world.established(1);
    assert!(!world.pool.is_filled(), "the second is pending");
    world.feed(Input::EstablishFailed { id: connection(2), cause: (), overloaded: false });
    assert!(!world.pool.is_filled());
    world.timer(second(1));
    world.feed(Input::EstablishSucceeded { id: ConnId::from_parts(3, 1), conn: () });
    assert!(world.pool.is_filled());
    world.ask(1);
    assert!(world.pool.is_filled(), "one that is in use counts");
    world.feed(clear());
    assert!(!world.pool.is_filled(), "what was available is closed");
    assert!(World::ready(PoolOptions::default()).pool.is_filled(), "without a minimum, always");
}

/// Without limits on the time that a connection is idle or in use, neither way at once asks for the time.
#[test]
fn limits_of_waiting_need_no_time() {
    let needs = |options| World::ready(options).pool.needs_now_at_once();
    let limit = Duration::from_secs(1);
    assert!(!needs(PoolOptions::default().with_wait_queue_timeout(limit).with_min_pool_size(1)));
    assert!(needs(PoolOptions::default().with_max_idle_time(limit)));
    assert!(needs(PoolOptions::default().with_leak_detection_threshold(limit)));
}

/// Hello with `Handshaken` before the clear of its service, and after it: only the first is stale.
#[test]
fn a_late_handshaken_misses_the_clear_of_its_service() {
    let service = Some(ServiceId([1; 12]));
    let mut world = World::ready(PoolOptions::default().with_load_balanced(true));
    world.ask(1);
    world.ask(2);
    world.feed(Input::Handshaken { id: connection(1), service, clears_at_hello: None });
    world.feed(Input::Clear { cause: (), interrupt: false, service });
    world.feed(Input::Handshaken { id: connection(2), service, clears_at_hello: None });
    assert_eq!([1, 2].map(|number| world.pool.is_stale(connection(number))), [true, false]);
}

/// With the number of clears at hello, a late `Handshaken` misses none: not while the service has
/// connections, not while it has none, and not when its entry is a new one.
#[test]
fn a_late_handshaken_with_the_clears_at_hello_misses_none() {
    let [service, other] = [1, 2].map(|byte| Some(ServiceId([byte; 12])));
    let options = PoolOptions::default().with_load_balanced(true).with_max_connecting(9);
    let mut world = World::ready(options);
    for request in 1..=6 {
        world.ask(request);
    }
    let hello = |world: &mut World<NoPayload>, number, service, clears_at_hello| {
        world.feed(Input::Handshaken { id: connection(number), service, clears_at_hello });
        world.pool.is_stale(connection(number))
    };
    let clear = |service| Input::Clear { cause: (), interrupt: false, service };
    world.feed(clear(service));
    assert_eq!(world.pool.service_clears(), 1, "of a service without connections, too");
    assert!(hello(&mut world, 1, service, Some(0)), "cleared while there was no entry");
    assert!(!hello(&mut world, 2, service, Some(1)));
    world.feed(clear(other));
    assert!(!hello(&mut world, 3, service, Some(1)), "another service was cleared");
    world.feed(clear(service));
    assert!(hello(&mut world, 4, service, Some(2)));
    for number in [2, 3] {
        world.feed(Input::EstablishFailed { id: connection(number), cause: (), overloaded: false });
    }
    assert_eq!(world.pool.service_generation(ServiceId([1; 12])), None, "forgotten");
    assert!(!hello(&mut world, 5, service, Some(3)));
    assert!(hello(&mut world, 6, service, Some(2)), "cleared before this entry");
}
