//! Rules that no story tells: what one asks a pool between two inputs, and large numbers.

use core::time::Duration;

use cenote_core::pool::{
    Action, CloseReason, ConnId, Event, Health, Input, Instant, Maintenance, NoPayload,
    PoolOptions, PoolState, Purpose, ServiceId, WaiterId,
};

const NOW: Instant = Instant::ORIGIN;
const FIRST: ConnId = ConnId::from_parts(1, 0);

fn ready_pool(options: PoolOptions) -> PoolState<NoPayload> {
    let mut pool = PoolState::new(NOW, options, &mut |_| {}).expect("usable options");
    feed(&mut pool, Input::Ready);
    pool
}

fn feed(pool: &mut PoolState<NoPayload>, input: Input<NoPayload>) {
    pool.handle(NOW, input, &mut |_| {}).expect("an input that makes sense");
}

fn request(id: u64) -> Input<NoPayload> {
    let (id, purpose) = (WaiterId(id), Purpose::Other);
    Input::CheckOutRequested { id, waiter: (), deadline: None, purpose }
}

// CO-18, CLB-07, SD-20: whether an error of a connection is news, from its creation on and after
// its end.
#[test]
fn an_error_of_an_older_connection_is_old_news() {
    let mut pool = ready_pool(PoolOptions::default());
    feed(&mut pool, request(1));
    assert!(!pool.is_stale(FIRST), "its attempt started in this generation");
    feed(&mut pool, Input::Clear { cause: (), interrupt: false, service: None });
    assert!(pool.is_stale(FIRST), "and ends in another");
    feed(&mut pool, Input::EstablishFailed { id: FIRST, cause: (), overloaded: false });
    assert!(pool.is_stale(FIRST), "a closed connection is stale");
}

// CLB-07, T-62: the same for a service, also when the service is forgotten and begins anew.
#[test]
fn an_error_of_an_older_connection_of_a_service_is_old_news() {
    let service = Some(ServiceId([1; 12]));
    let mut pool = ready_pool(PoolOptions::default().with_load_balanced(true));
    feed(&mut pool, request(1));
    assert_eq!((pool.service_of(FIRST), pool.is_stale(FIRST)), (None, false));
    feed(&mut pool, Input::Handshaken { id: FIRST, service, clears_at_hello: None });
    feed(&mut pool, Input::EstablishSucceeded { id: FIRST, conn: () });
    assert_eq!((pool.service_of(FIRST), pool.is_stale(FIRST)), (service, false));

    let clear = || Input::Clear { cause: (), interrupt: false, service };
    feed(&mut pool, clear());
    assert_eq!((pool.service_of(FIRST), pool.is_stale(FIRST)), (service, true));

    feed(&mut pool, Input::CheckedIn { id: FIRST, conn: (), health: Health::Errored(()) });
    assert_eq!(pool.services().count(), 0, "forgotten with its last connection");
    feed(&mut pool, request(2));
    let second = ConnId::from_parts(2, FIRST.slot());
    feed(&mut pool, Input::Handshaken { id: second, service, clears_at_hello: None });
    assert_eq!((pool.is_stale(FIRST), pool.is_stale(second)), (true, false));
}

// WQ-16.
#[test]
fn the_wait_queue_has_no_limit() {
    const MANY: u64 = 50_000;
    let mut pool = ready_pool(PoolOptions::default().with_max_pool_size(1));
    for id in 1..=MANY {
        feed(&mut pool, request(id));
    }
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.waiting, snapshot.pending), (MANY - 1, 1));

    let mut failed = 0;
    let mut count = |action: Action<NoPayload>| {
        failed += u64::from(matches!(action, Action::Deliver { outcome: Err(_), .. }));
    };
    pool.handle(NOW, Input::Close, &mut count).expect("an input that makes sense");
    assert_eq!(failed, MANY, "every check-out has an outcome");
}

// T-37: a shell that spares the clock whenever it may, and whose peer refuses after five seconds,
// is made to pause all the same.
#[test]
fn sparing_the_clock_does_not_shorten_the_pause() {
    let seconds = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
    let mut pool = ready_pool(PoolOptions::default().with_min_pool_size(1));
    let now = if pool.needs_now() { seconds(5) } else { pool.now() };
    let failed = Input::EstablishFailed { id: FIRST, cause: (), overloaded: false };
    pool.handle(now, failed, &mut |_| {}).expect("an input that makes sense");
    let pause = PoolOptions::DEFAULT_PAUSE_AFTER_FAILURE;
    assert_eq!(pool.next_deadline().map(|due| due.at), Some(seconds(5) + pause));
}

// WQ-05, T-27: a queue from which most have gone away keeps its order and its deadlines, however
// large the gaps are that they left.
#[test]
fn a_queue_full_of_gaps_keeps_its_order_and_its_deadlines() {
    let mut pool = ready_pool(PoolOptions::default().with_max_pool_size(1));
    feed(&mut pool, request(0));
    let at = |nanos| Some(Instant::from_nanos(nanos));
    for id in 1..=1000 {
        // Every third has no deadline, every seventh one before its elders'.
        let deadline = match (id % 3, id % 7) {
            (0, _) => None,
            (_, 0) => at(5_000 - id),
            (_, _) => at(10_000 + id),
        };
        let (id, purpose) = (WaiterId(id), Purpose::Other);
        feed(&mut pool, Input::CheckOutRequested { id, waiter: (), deadline, purpose });
    }
    for id in (1..=1000).filter(|id| id % 11 != 0) {
        feed(&mut pool, Input::CheckOutCancelled { id: WaiterId(id) });
        pool.check_invariants();
    }
    let left: Vec<u64> = pool.waiters().skip(1).map(|waiter| waiter.id.0).collect();
    assert_eq!(left, (1..=1000).filter(|id| id % 11 == 0).collect::<Vec<_>>());
    let stragglers = left.iter().filter(|id| *id % 3 != 0 && *id % 7 == 0).count() as u64;
    pool.handle(Instant::from_nanos(5_000), Input::Timer, &mut |_| {}).expect("a timer");
    pool.check_invariants();
    assert_eq!(pool.snapshot().waiting, left.len() as u64 - stragglers);
}

// KX-05: what is stale is closed as stale, even where it goes because it is surplus.
#[test]
fn stale_surplus_is_stale() {
    let never = PoolOptions::default().with_maintenance(Maintenance::Never);
    let mut pool = ready_pool(never.clone().with_max_pool_size(2));
    for (id, slot) in [(1, 0), (2, 1)] {
        feed(&mut pool, request(id));
        let id = ConnId::from_parts(id, slot);
        feed(&mut pool, Input::EstablishSucceeded { id, conn: () });
    }
    for id in [FIRST, ConnId::from_parts(2, 1)] {
        feed(&mut pool, Input::CheckedIn { id, conn: (), health: Health::Healthy });
    }
    feed(&mut pool, Input::Clear { cause: (), interrupt: false, service: None });
    let mut reasons = Vec::new();
    let options = Box::new(never.with_max_pool_size(1));
    let mut closed = |action| {
        if let Action::EmitEvent(Event::ConnectionClosed { reason, .. }) = action {
            reasons.push(reason);
        }
    };
    pool.handle(NOW, Input::SetOptions { options }, &mut closed).expect("valid options");
    assert_eq!(reasons, [CloseReason::Stale]);
}

// KX-05: and even if it was idle for too long.
#[test]
fn stale_idle_is_stale() {
    let never = PoolOptions::default().with_maintenance(Maintenance::Never);
    let mut pool = ready_pool(never.with_max_idle_time(Duration::from_nanos(1)));
    feed(&mut pool, request(1));
    feed(&mut pool, Input::EstablishSucceeded { id: FIRST, conn: () });
    feed(&mut pool, Input::CheckedIn { id: FIRST, conn: (), health: Health::Healthy });
    feed(&mut pool, Input::Clear { cause: (), interrupt: false, service: None });
    feed(&mut pool, Input::Ready);
    let mut reasons = Vec::new();
    let mut closed = |action| {
        if let Action::EmitEvent(Event::ConnectionClosed { reason, .. }) = action {
            reasons.push(reason);
        }
    };
    pool.handle(Instant::from_nanos(9), request(2), &mut closed).expect("a request");
    assert_eq!(reasons, [CloseReason::Stale]);
}
