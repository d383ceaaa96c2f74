//! One world, from its beginning to its end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use turmoil::Sim;

use crate::worlds::app::{self, Log};
use crate::worlds::chaos::{APP, Chaos};
use crate::worlds::client_clock::ClientClock;
use crate::worlds::endpoint::{Host, NAME, PATIENCE};
use crate::worlds::plan::Plan;

/// How finely the simulated time goes on.
const TICK: Duration = Duration::from_millis(1);

/// No world takes longer.
const LIMIT: Duration = Duration::from_secs(120);

/// What came of it.
pub(crate) struct Lived {
    pub(crate) asked: u64,
    pub(crate) got: u64,
    /// Commands that were not given up and failed.
    pub(crate) failed_commands: u64,
    pub(crate) events: Vec<String>,
    /// What sort of event each of them is, and the faults that affected a connection.
    pub(crate) kinds: Vec<&'static str>,
}

/// Lives through a plan.
///
/// # Errors
///
/// What should have been otherwise.
pub(crate) fn live(plan: &Plan) -> Result<Lived, String> {
    let mut sim = turmoil::Builder::new()
        .rng_seed(plan.seed)
        .tick_duration(TICK)
        .simulation_duration(LIMIT)
        .max_message_latency(plan.latency)
        .enable_random_order()
        .build();
    let host = Host::new(plan.seed);
    let process = host.clone();
    sim.host(NAME, move || process.clone().run());
    let log = Arc::<Mutex<Log>>::default();
    let (own, heard) = (plan.clone(), Arc::clone(&log));
    let clock = ClientClock::default();
    let own_clock = clock.clone();
    sim.client(APP, async move { app::live(own, heard, own_clock).await.map_err(Into::into) });
    let mut chaos = Chaos::new(plan, clock);
    loop {
        chaos.advance(&mut sim, &host);
        let is_over = sim.step().map_err(|error| {
            let log = log.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let last = log.events.iter().rev().take(30).rev();
            format!("{error}\nthe last events:\n{}", last.cloned().collect::<Vec<_>>().join("\n"))
        })?;
        if is_over {
            break;
        }
    }
    forget(&mut sim, &host)?;
    drop(sim);
    let log = log.lock().map_err(|_| "a panic among the events".to_owned())?;
    let (events, mut kinds) = (log.events.clone(), log.kinds.clone());
    kinds.extend(chaos.kinds);
    let Log { asked, got, failed_commands, .. } = *log;
    Ok(Lived { asked, got, failed_commands, events, kinds })
}

/// The server notices, too, that all clients are gone.
fn forget(sim: &mut Sim<'_>, host: &Host) -> Result<(), String> {
    let limit = sim.elapsed() + 2 * PATIENCE;
    while host.open() > 0 {
        if sim.elapsed() > limit {
            return Err(format!("{} connections are open at the server for ever", host.open()));
        }
        sim.step().map_err(|error| error.to_string())?;
    }
    Ok(())
}
