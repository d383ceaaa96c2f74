//! The tokio shell and the endpoint in simulated worlds: one thread, virtual time, a network that
//! drops, holds and delays, and a server that crashes and misbehaves, all of it by a seed.
//!
//! `CENOTE_WORLDS=FROM..TO cargo test -p cenote-shell --test shell worlds` runs other worlds than the usual
//! ones; a world that fails says how to have it again.

mod app;
mod chaos;
mod client_clock;
mod connector;
mod endpoint;
mod impatient;
mod plan;
mod recovery;
mod world;

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use self::plan::Plan;

/// Enough to meet every fault in every combination of two, within seconds.
const USUAL: Range<u64> = 0..40;

#[test]
fn everything_asked_is_answered_and_everything_opened_is_closed() {
    let worlds = asked_for().unwrap_or(USUAL);
    let (mut asked, mut got, mut seen) = (0, 0, BTreeMap::<_, u64>::new());
    for seed in worlds.clone() {
        let lived = live(&Plan::new(seed));
        (asked, got) = (asked + lived.asked, got + lived.got);
        lived.kinds.iter().for_each(|kind| *seen.entry(*kind).or_default() += 1);
    }
    println!("worlds {worlds:?}: {asked} requests, {got} of them served; events:\n{seen:#?}");
    if worlds.end - worlds.start >= USUAL.end {
        assert!(got > asked / 10 && got < asked * 9 / 10, "neither heaven nor hell");
        let missing: Vec<_> = KINDS.iter().filter(|kind| !seen.contains_key(*kind)).collect();
        assert!(missing.is_empty(), "never seen: {missing:?}");
    }
}

/// Events, how connections and requests end, and faults: all must be met somewhere.
const KINDS: [&str; 25] = [
    "ConnectionPoolCreated",
    "ConnectionPoolReady",
    "ConnectionPoolCleared",
    "ConnectionPoolClosed",
    "ConnectionCreated",
    "ConnectionReady",
    "closed: error",
    "closed: idle",
    "closed: poolClosed",
    "closed: stale",
    "ConnectionCheckOutStarted",
    "ConnectionCheckedOut",
    "ConnectionCheckedIn",
    "ConnectionPendingResponseFailed",
    "ConnectionPendingResponseStarted",
    "ConnectionPendingResponseSucceeded",
    "failed: connectionError",
    "failed: timeout",
    "interrupted",
    "fault: crossed replies",
    "fault: hostile texts",
    "fault: idle FIN",
    "fault: idle RST",
    "fault: paused client",
    "fault: unasked reply",
];

/// Deadlines of callers pass in a pause; those of the server's replies do not count.
#[test]
fn a_client_that_was_stopped_does_not_blame_a_healthy_server() {
    let (mut pauses, mut got) = (0, 0);
    for seed in 0..20 {
        let plan = Plan::only_pauses(seed);
        pauses += plan.troubles.len();
        let lived = live(&plan);
        got += lived.got;
        // A check-out that waits for too long says otherwise.
        let is_blamed = |event: &&String| event.contains("timed out");
        let blamed = lived.events.iter().find(is_blamed);
        assert_eq!((lived.failed_commands, blamed), (0, None), "world {seed}: {plan:#?}");
    }
    assert!(pauses > 20 && got > 200, "{pauses} pauses, {got} requests");
}

/// The events without the numbers of requests, which the shell draws.
fn told(lived: &world::Lived) -> Vec<&str> {
    lived
        .events
        .iter()
        .map(|event| {
            let event = event.split("expected a reply").next().unwrap_or(event);
            event.split("request ID=").next().unwrap_or(event)
        })
        .collect()
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in [1, 7, 42] {
        let [one, other] = [(); 2].map(|()| live(&Plan::new(seed)));
        assert_eq!(told(&one), told(&other), "world {seed}");
    }
    assert_ne!(live(&Plan::new(1)).events, live(&Plan::new(2)).events);
}

fn live(plan: &Plan) -> world::Lived {
    let seed = plan.seed;
    let outcome = catch_unwind(AssertUnwindSafe(|| world::live(plan)));
    let failure = match outcome {
        Ok(Ok(lived)) => return lived,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
                .unwrap_or_else(|| "a panic".to_owned())
        }
    };
    panic!(
        "world {seed}: {failure}\n{plan:#?}\nagain: CENOTE_WORLDS={seed}..{} cargo test -p cenote-shell \
         --test shell worlds::everything",
        seed + 1
    );
}

/// `CENOTE_WORLDS`, as `FROM..TO`.
fn asked_for() -> Option<Range<u64>> {
    let text = std::env::var("CENOTE_WORLDS").ok()?;
    let range =
        text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    Some(range.unwrap_or_else(|| panic!("CENOTE_WORLDS is {text:?}, but has to be FROM..TO")))
}
