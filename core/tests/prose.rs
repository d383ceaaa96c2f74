//! The tests that the specification of pools describes in words, as far as they concern the
//! machine.

use cenote_core::pool::{
    Action, CheckOutError, CheckOutFailedReason, CloseReason, Event, Input, Instant, NoPayload,
    PoolOptions, PoolState, Purpose, WaiterId, WithoutEvents,
};

/// Checks a connection out of a new pool, fails to establish it, and closes the pool. What follows
/// from one input reaches `sink` before the next input goes in.
fn fail_to_establish(mut sink: impl FnMut(Action<NoPayload>)) {
    let now = Instant::ORIGIN;
    let mut started = None;
    let mut out = |action| {
        if let Action::StartEstablish { id, .. } = &action {
            started = Some(*id);
        }
        sink(action);
    };
    let mut pool = PoolState::new(now, PoolOptions::default(), &mut out).expect("valid options");
    pool.handle(now, Input::Ready, &mut out).expect("a legal input");
    let (id, purpose) = (WaiterId(1), Purpose::Other);
    let request = Input::CheckOutRequested { id, waiter: (), deadline: None, purpose };
    pool.handle(now, request, &mut out).expect("a legal input");
    let id = started.expect("an empty pool starts a connection for a request");
    let mut out = sink;
    pool.handle(now, Input::EstablishFailed { id, cause: (), overloaded: false }, &mut out)
        .expect("a legal input");
    pool.handle(now, Input::Close, &mut out).expect("a legal input");
    pool.check_invariants();
}

// PS-07, PS-21, EV-01, EV-02
// PT-04: a subscriber to events is anything that takes actions. They come in order, among the
// actions, beginning with the creation of the pool.
#[test]
fn anything_that_takes_actions_subscribes_to_events() {
    let mut seen = Vec::new();
    fail_to_establish(|action| {
        if let Action::EmitEvent(event) = action {
            seen.push(event.name());
        }
    });
    assert_eq!(
        seen,
        [
            "ConnectionPoolCreated",
            "ConnectionPoolReady",
            "ConnectionCheckOutStarted",
            "ConnectionCreated",
            "ConnectionClosed",
            "ConnectionCheckOutFailed",
            "ConnectionPoolClosed",
        ]
    );
}

// PT-04: a subscription changes nothing else.
#[test]
fn the_pool_does_the_same_when_nobody_listens() {
    let run = |subscribed: bool| {
        let mut actions: Vec<Action<NoPayload>> = Vec::new();
        let now = Instant::ORIGIN;
        let mut pool = PoolState::<NoPayload>::new(
            now,
            PoolOptions::default().with_min_pool_size(1),
            &mut WithoutEvents(&mut actions),
        )
        .unwrap();
        for input in [Input::Ready, Input::Close] {
            if subscribed {
                pool.handle(now, input, &mut actions).unwrap();
            } else {
                pool.handle(now, input, &mut WithoutEvents(&mut actions)).unwrap();
            }
        }
        let events = actions.len();
        actions.retain(|action| !matches!(action, Action::EmitEvent(_)));
        (pool.fingerprint(), actions.clone(), events - actions.len())
    };
    let (with, without) = (run(true), run(false));
    assert_eq!((with.0, with.1), (without.0, without.1));
    assert_eq!((with.2, without.2), (4, 0));
}

// ES-03, OUT-19, PT-05: a connection that cannot be established for a check-out fails it with `connectionError`,
// after the connection is closed with `error`, and the caller hears why.
#[test]
fn a_failed_establishment_fails_the_check_out_with_connection_error() {
    let mut actions = Vec::new();
    fail_to_establish(|action| actions.push(action));
    let closed = actions
        .iter()
        .position(|action| {
            let Action::EmitEvent(Event::ConnectionClosed { reason, error, .. }) = action else {
                return false;
            };
            *reason == CloseReason::Error && error.is_some()
        })
        .expect("ConnectionClosed with its error");
    let Action::EmitEvent(Event::ConnectionCheckOutFailed { error, .. }) = &actions[closed + 1]
    else {
        panic!("ConnectionCheckOutFailed comes next: {actions:?}");
    };
    assert_eq!(error.reason(), CheckOutFailedReason::ConnectionError);
    assert_eq!(*error, CheckOutError::EstablishFailed { cause: () });
    assert_eq!(
        actions[closed + 2],
        Action::Deliver { waiter: (), outcome: Err(CheckOutError::EstablishFailed { cause: () }) }
    );
}
