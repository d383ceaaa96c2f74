//! Options that change while the pool runs.

use cenote_core::pool::{
    Action, CloseReason, ConnId, Event, Health, Input, Instant, Maintenance, NoPayload,
    PoolOptions, Purpose, Queued, WaiterId,
};

/// Maintenance that is switched on finds what it was kept from before: here, in a paused pool, a
/// connection that a clear made stale.
// BG-10
#[test]
fn maintenance_that_is_switched_on_closes_what_is_stale() {
    let now = Instant::ORIGIN;
    let id = ConnId::from_parts(1, 0);
    let without = PoolOptions::default().with_maintenance(Maintenance::Never);
    let mut pool = Queued::<NoPayload>::new(now, without).unwrap();
    let request = Input::CheckOutRequested {
        id: WaiterId(1),
        waiter: (),
        deadline: None,
        purpose: Purpose::Other,
    };
    for input in [
        Input::Ready,
        request,
        Input::EstablishSucceeded { id, conn: () },
        Input::CheckedIn { id, conn: (), health: Health::Healthy },
        Input::Clear { cause: (), interrupt: false, service: None },
    ] {
        pool.handle(now, input).unwrap();
    }
    while pool.poll_action().is_some() {}
    assert_eq!(pool.state().snapshot().available, 1, "nothing was pruned");

    pool.handle(now, Input::SetOptions { options: Box::default() }).unwrap();
    pool.state().check_invariants();
    let closed =
        Event::ConnectionClosed { connection_id: 1, reason: CloseReason::Stale, error: None };
    assert_eq!(pool.poll_action(), Some(Action::EmitEvent(closed)));
    assert_eq!(pool.poll_action(), Some(Action::CloseSocket { id, conn: () }));
    assert_eq!(pool.poll_action(), None);
}
