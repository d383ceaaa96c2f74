//! What a driver's own shell is told, beyond what ours need.

use cenote_core::pool::{
    Action, ConnId, Health, Input, Instant, NoPayload, PoolOptions, PoolState, PoolTypes, Purpose,
    WaiterId,
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
        let started = |action| match action {
            Action::StartEstablish { id, owner, deadline: _, generation } => {
                Some((id.number(), owner.map(|WaiterId(owner)| owner), generation))
            }
            _ => None,
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
