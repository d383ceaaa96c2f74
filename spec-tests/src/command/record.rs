//! `cenote record`

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cenote_core::trace::JournalOptions;
use cenote_replay::record;
use cenote_replay::topology::record::fail_over;
use cenote_replay::traffic::Scene;

use super::Failure;
use super::input::at;

/// Arguments of `cenote record`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The file to write; for --case fail-over, the folder
    out: PathBuf,
    /// Seed of the random numbers; the same seed gives the same file
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of inputs
    #[arg(long, default_value_t = 10_000)]
    steps: u64,
    /// maxPoolSize of the pool
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// Number of tasks that use the pool [default: twice the number of connections]
    #[arg(long)]
    tasks: Option<u64>,
    /// Fail one in N operations and establishments; 0 fails none
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    failure_every: u64,
    /// Leak one check-out in N; 0 leaks none
    #[arg(long, value_name = "N", default_value_t = 0)]
    leak_every: u64,
    /// End with a double check-in: a bug for `cenote replay --shrink misuse` to find
    #[arg(long)]
    check_in_twice: bool,
    /// Average time to establish a connection, in milliseconds
    #[arg(long, default_value_t = 8)]
    establish_ms: u64,
    /// Record an incident of some seconds of virtual time, for practice: see "A pool problem at night" in
    /// the documentation
    #[arg(
        long,
        value_enum,
        conflicts_with_all = [
            "check_in_twice", "steps", "connections", "tasks", "failure_every", "leak_every",
            "establish_ms"
        ]
    )]
    case: Option<Case>,
    /// Write a fingerprint after every N inputs
    #[arg(long, value_name = "N", default_value_t = 256)]
    fingerprint_every: u64,
    /// Record actions as well
    #[arg(long)]
    actions: bool,
}

/// An incident.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Case {
    /// More requests than the pool has connections for
    TooSmall,
    /// The same in a pool that sheds requests and bounds its queue
    Shedding,
    /// Connections that are never checked in
    Leak,
    /// Many new connections at once
    Storm,
    /// The same in a pool that backs off, at a server that refuses connections
    Overloaded,
    /// Operations that take much longer for a while
    SlowServer,
    /// A clear because a monitor failed
    Cleared,
    /// A replica set that fails over: a folder with the traces of the topology and of three pools
    FailOver,
}

impl Case {
    /// That of one pool; `None` if there are several.
    fn scene(self, seed: u64) -> Option<Scene> {
        Some(match self {
            Self::TooSmall => Scene::too_small(seed),
            Self::Shedding => Scene::shedding(seed),
            Self::Leak => Scene::leak(seed),
            Self::Storm => Scene::storm(seed),
            Self::Overloaded => Scene::overloaded(seed),
            Self::SlowServer => Scene::slow_server(seed),
            Self::Cleared => Scene::cleared(seed),
            Self::FailOver => return None,
        })
    }
}

/// Writes a trace.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Failure> {
    write(arguments).map_err(at(&arguments.out))?;
    Ok(true)
}

fn write(arguments: &Arguments) -> io::Result<()> {
    let journal = JournalOptions::default()
        .with_actions(arguments.actions)
        .with_fingerprint_every(arguments.fingerprint_every);
    let scene = arguments.case.map(|case| case.scene(arguments.seed));
    if let Some(None) = scene {
        return write_client(arguments, journal);
    }
    let file = File::create(&arguments.out)?;
    if let Some(Some(scene)) = scene {
        return record::traffic(scene, u64::MAX, journal, file).map(drop);
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

/// The traces of a client, in a folder.
fn write_client(arguments: &Arguments, journal: JournalOptions) -> io::Result<()> {
    fs::create_dir_all(&arguments.out)?;
    for (name, trace) in fail_over(arguments.seed, journal)? {
        fs::write(arguments.out.join(name), trace)?;
    }
    Ok(())
}
