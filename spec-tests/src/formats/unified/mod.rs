//! Plays files of the unified test format, as far as they are about pools and monitors, on all runtimes.
//!
//! These files are about whole drivers. What they need of one besides the shell's client is here, in the
//! least form that makes them runnable: `client` says what.
//!
//! ```text
//! format        what a file may say; whatever is not known is refused
//! exceptions    tests that do not concern this project, with the reason
//! └ driver      tests that need more of a driver than there is here
//! venue         the servers: endpoints of their own for each test
//! world         what has a name
//! ├ act         what operations do
//! └ client      the client of a shell, with operations
//! expect        what must have come of it
//! ```
//!
//! The stricter of two readings is taken, as in [`cmap`](crate::formats::cmap): surplus events and messages are
//! failures, and so is a connection that has not come home, or a rule that the pool's events break.

mod act;
mod client;
mod driver;
mod exceptions;
mod expect;
mod extended_json;
mod format;
#[cfg(test)]
mod tests;
mod venue;
mod world;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cenote_conform::{Document, Unreadable};

use self::expect::matching;
use self::format::{File, Requirement, Serverless, Test, Topology};
use self::venue::{Needs, Venue};
use self::world::World;
use super::cpu_time;
use super::outcome::Outcome;
use super::play::NO_TEST;
use super::target::Target;

/// Plays what was read from a file, its tests in their order.
///
/// # Errors
///
/// When it is not of this format to the last key.
pub fn play_document(document: &Document, target: Target) -> Result<Vec<Outcome>, Unreadable> {
    let file: File = document.parse()?;
    if file.tests.is_empty() {
        return Err(document.refuse("tests", NO_TEST));
    }
    if let Some(index) = file.tests.iter().position(|test| test.operations.is_empty()) {
        let reason = "a test that does nothing shows nothing";
        return Err(document.refuse(&format!("tests/{index}/operations"), reason));
    }
    let compared = matching::check(&document.value()["tests"]);
    compared.map_err(|what| document.refuse_in("tests", &what))?;
    let outcome = |test: &Test| {
        let verdict = exceptions::judge(document.path(), test, || play(&file, test, target));
        let (file, description) = (document.path().to_owned(), test.description.clone());
        Outcome { file, target, description, verdict }
    };
    Ok(file.tests.iter().map(outcome).collect())
}

/// How long a test may take: longer than any wants, but not for ever, whatever the pool does.
const PATIENCE: Duration = Duration::from_secs(120);

fn play(file: &File, test: &Test, target: Target) -> Result<(), String> {
    cpu_time::play(|| play_within(PATIENCE, file, test, target))
}

fn play_within(patience: Duration, file: &File, test: &Test, target: Target) -> Result<(), String> {
    let topology = topology(file, test)?;
    let mut requirements = file.run_on_requirements.iter().chain(&test.run_on_requirements);
    let needs = Needs {
        by_password: requirements.any(|it| it.auth == Some(true)),
        members: file.tests.iter().any(Test::looks_at_topology),
    };
    let venue = Venue::start(topology, needs)?;
    venue.fill(&file.initial_data)?;
    let world = Arc::new(World::new(target, venue, act::perform));
    let watch = Watch::begin(&world, patience);
    let played = play_in(&world, file, test);
    let mut complaints: Vec<String> = played.err().into_iter().collect();
    complaints.extend(world.end());
    if watch.had_to_end_it() {
        complaints
            .insert(0, format!("the test was still waiting after {} ms", patience.as_millis()));
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
}

/// A thread that closes the pools when a test takes too long: nothing else ends a wait for a connection.
struct Watch {
    is_over: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Watch {
    fn begin(world: &Arc<World>, patience: Duration) -> Self {
        let (is_over, over) = channel();
        let world = Arc::clone(world);
        let thread = thread::spawn(move || {
            let is_late = over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
            if is_late {
                world.break_off();
            }
            is_late
        });
        Self { is_over, thread }
    }

    /// The test is over. Says whether it had to be ended.
    fn had_to_end_it(self) -> bool {
        drop(self.is_over);
        self.thread.join().unwrap_or(true)
    }
}

fn play_in(world: &Arc<World>, file: &File, test: &Test) -> Result<(), String> {
    world.create(&file.create_entities)?;
    for (index, operation) in test.operations.iter().enumerate() {
        act::perform(world, operation).map_err(|what| format!("operation {index}: {what}"))?;
    }
    for expected in &test.expect_events {
        let client = world.client(&expected.client)?;
        expected.judge(&*client.get()?, |told| client.observes(told))?;
    }
    for expected in &test.expect_log_messages {
        expected.judge(world.client(&expected.client)?.logged()?)?;
    }
    world.venue.judge(&test.outcome)
}

/// The first that is good for the file and for the test.
fn topology(file: &File, test: &Test) -> Result<Topology, String> {
    use Topology::{LoadBalanced, ReplicaSet, Sharded, Single};
    let is_good = |topology: &Topology| {
        [&file.run_on_requirements, &test.run_on_requirements]
            .iter()
            .all(|any| any.is_empty() || any.iter().any(|one| one.allows(*topology)))
    };
    let topologies = [Single, ReplicaSet, Sharded, LoadBalanced];
    topologies.into_iter().find(is_good).ok_or_else(|| "no topology is good for it".to_owned())
}

impl Requirement {
    fn allows(&self, topology: Topology) -> bool {
        self.topologies.as_ref().is_none_or(|them| them.contains(&topology))
            && self.auth != Some(false)
            && self.auth_mechanism.as_deref().is_none_or(|name| name == "MONGODB-OIDC")
            && self.serverless != Some(Serverless::Require)
    }
}
