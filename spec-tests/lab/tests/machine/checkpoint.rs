//! Checkpoints of states: what is restored from one has the same fingerprint and the same future, and
//! what cannot be is refused.

use cenote_core::pool::{Action, Instant, NoPayload, PoolCheckpoint, PoolState};
use cenote_lab::random_run::RandomRun;
use cenote_replay::random::SplitMix;

const RUNS: u64 = 1_000;
const STEPS: usize = 200;

#[test]
fn a_restored_pool_has_the_same_fingerprint_and_the_same_future() {
    let mut restored_busy = 0;
    for seed in 0..RUNS {
        let mut run = RandomRun::with_late_replies(seed, STEPS);
        let mut chance = SplitMix(seed);
        let mut pool = new_pool(&run);
        let mut copy = restore(&pool.checkpoint());
        while let Some((now, input)) = run.next_bare(&pool) {
            let (mut expected, mut actions) = (Vec::new(), Vec::new());
            let outcome = pool.handle(now, input.clone(), &mut expected);
            let same = copy.handle(now, input, &mut actions);
            assert_eq!(outcome.map_err(|misuse| misuse.reason), same.map_err(|m| m.reason));
            assert_eq!(actions, expected, "seed {seed}");
            assert_eq!(copy.fingerprint(), pool.fingerprint(), "seed {seed}");
            assert_eq!(copy.next_deadline(), pool.next_deadline());
            if chance.below(4) == 0 {
                let checkpoint = copy.checkpoint();
                assert_eq!(checkpoint, pool.checkpoint());
                restored_busy += u64::from(!checkpoint.requests.is_empty());
                copy = restore(&checkpoint);
                copy.check_invariants();
                assert_eq!(copy.fingerprint(), pool.fingerprint());
            }
        }
    }
    assert!(restored_busy > RUNS, "requests waited in {restored_busy} of the checkpoints");
}

#[test]
fn a_damaged_image_is_refused_or_is_that_of_a_sound_pool() {
    let (mut refused, mut accepted) = (0, 0);
    for seed in 0..RUNS {
        let mut run = RandomRun::with_late_replies(seed, STEPS);
        let mut chance = SplitMix(seed ^ 0xDA3A6E);
        let mut pool = new_pool(&run);
        for _ in 0..chance.below(STEPS as u64) {
            let Some((now, input)) = run.next_bare(&pool) else { break };
            let _ = pool.handle(now, input, &mut |_: Action<NoPayload>| {});
        }
        for _ in 0..20 {
            let mut checkpoint = pool.checkpoint();
            for _ in 0..=chance.below(2) {
                damage(&mut checkpoint, &mut chance);
            }
            let Ok(mut copy) = PoolState::<NoPayload>::restore(&checkpoint, &mut ()) else {
                refused += 1;
                continue;
            };
            accepted += 1;
            copy.check_invariants();
            let mut future = RandomRun::with_late_replies(seed + 1, 40);
            while let Some((now, input)) = future.next_bare(&copy) {
                let now = now.max(checkpoint.now);
                let _ = copy.handle(now, input, &mut |_: Action<NoPayload>| {});
                copy.check_invariants();
            }
        }
    }
    assert!(refused > 5 * RUNS && accepted > RUNS, "{refused} refused, {accepted} accepted");
}

/// Changes one thing.
fn damage(checkpoint: &mut PoolCheckpoint, chance: &mut SplitMix) {
    let some = |chance: &mut SplitMix| Instant::from_nanos(chance.below(200));
    let connection = |checkpoint: &PoolCheckpoint, chance: &mut SplitMix| {
        (!checkpoint.connections.is_empty())
            .then(|| chance.below(checkpoint.connections.len() as u64) as usize)
    };
    let other = RandomRun::with_late_replies(chance.number(), 0);
    match chance.below(19) {
        0 => checkpoint.options = other.options,
        1 => checkpoint.status = [STATUS[0], STATUS[1], STATUS[2]][chance.below(3) as usize],
        2 => checkpoint.generation = [0, 1, u64::MAX, chance.below(9)][chance.below(4) as usize],
        3 => checkpoint.was_cleared = !checkpoint.was_cleared,
        4 => checkpoint.populate_after = Some(some(chance)),
        5 => checkpoint.inherited = chance.below(9),
        6 => checkpoint.last_waiter = None,
        7 => checkpoint.last_connection = [0, u64::MAX, 7][chance.below(3) as usize],
        8 => checkpoint.now = some(chance),
        9 => checkpoint.services.clear(),
        10 => drop(checkpoint.connections.pop()),
        11 => drop(checkpoint.free_slots.pop()),
        12 => checkpoint.free_slots.push(chance.below(5) as u32),
        13 => drop(checkpoint.requests.pop()),
        14 => checkpoint.requests.reverse(),
        15 => checkpoint.connections.reverse(),
        16 => {
            if let Some(at) = connection(checkpoint, chance) {
                checkpoint.connections[at].generation = chance.below(5);
            }
        }
        17 => {
            if let Some(at) = connection(checkpoint, chance) {
                checkpoint.connections[at].expires = Some(some(chance));
            }
        }
        _ => {
            if let Some(at) = connection(checkpoint, chance) {
                checkpoint.connections[at].state = checkpoint.connections[0].state;
            }
        }
    }
}

const STATUS: [cenote_core::pool::Status; 3] = [
    cenote_core::pool::Status::Paused,
    cenote_core::pool::Status::Ready,
    cenote_core::pool::Status::Closed,
];

fn new_pool(run: &RandomRun) -> PoolState<NoPayload> {
    let nobody = &mut |_: Action<NoPayload>| {};
    PoolState::new(Instant::ORIGIN, run.options.clone(), nobody).expect("usable options")
}

fn restore(checkpoint: &PoolCheckpoint) -> PoolState<NoPayload> {
    PoolState::restore(checkpoint, &mut ()).expect("the checkpoint of a pool")
}
