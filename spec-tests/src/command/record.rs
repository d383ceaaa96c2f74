//! `cenote record`

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cenote_core::trace::JournalOptions;
use thiserror::Error;

use crate::replay::record;
use crate::replay::traffic::Scene;

/// What `cenote record` can be told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The file to write
    out: PathBuf,
    /// Where all chance comes from; the same seed gives the same file
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many inputs
    #[arg(long, default_value_t = 10_000)]
    steps: u64,
    /// maxPoolSize of the pool
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// How many tasks use the pool; by default twice as many as there are connections
    #[arg(long)]
    tasks: Option<u64>,
    /// One of so many operations or establishments fails; 0: none
    #[arg(long, default_value_t = 20_000)]
    failure_every: u64,
    /// One of so many check-outs is never checked in; 0: none
    #[arg(long, default_value_t = 0)]
    leak_every: u64,
    /// At the end a connection is checked in twice: a bug for `cenote replay --shrink misuse` to find
    #[arg(long, conflicts_with = "random")]
    check_in_twice: bool,
    /// How long establishing a connection takes, on average, in milliseconds
    #[arg(long, default_value_t = 8)]
    establish_ms: u64,
    /// Random inputs to a tiny pool, legal and not, instead of traffic
    #[arg(long)]
    random: bool,
    /// A fingerprint after so many inputs
    #[arg(long, default_value_t = 256)]
    fingerprint_every: u64,
    /// Record actions, too
    #[arg(long)]
    actions: bool,
}

/// A file that cannot be written.
#[derive(Debug, Error)]
#[error("{}: {source}", path.display())]
pub struct Unwritable {
    path: PathBuf,
    source: io::Error,
}

/// Writes a trace.
///
/// # Errors
///
/// When the file cannot be written.
pub fn run(arguments: &Arguments) -> Result<bool, Unwritable> {
    let path = arguments.out.clone();
    match write(arguments) {
        Ok(()) => Ok(true),
        Err(source) => Err(Unwritable { path, source }),
    }
}

fn write(arguments: &Arguments) -> io::Result<()> {
    let journal = JournalOptions::default()
        .with_actions(arguments.actions)
        .with_fingerprint_every(arguments.fingerprint_every);
    let file = File::create(&arguments.out)?;
    if arguments.random {
        let steps = usize::try_from(arguments.steps).unwrap_or(usize::MAX);
        return record::random(arguments.seed, steps, journal, file).map(drop);
    }
    let scene = Scene::new(arguments.seed, arguments.connections);
    let scene = Scene {
        tasks: arguments.tasks.unwrap_or(scene.tasks),
        failure_every: arguments.failure_every,
        leak_every: arguments.leak_every,
        checks_in_twice: arguments.check_in_twice,
        establish_time: Duration::from_millis(arguments.establish_ms),
        ..scene
    };
    record::traffic(scene, arguments.steps, journal, file).map(drop)
}
