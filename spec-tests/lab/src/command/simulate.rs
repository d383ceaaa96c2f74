//! `cenote-lab simulate`

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use thiserror::Error;

use super::{interrupts, print};
use crate::lockstep::panic_message;
use crate::shrink::Fault;
use crate::simulate::{Coverage, Failure, Report, SeededPlan, WorldKind};

/// Arguments of `cenote-lab simulate`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Seed of the first world; each next world has the next seed
    #[arg(long, allow_negative_numbers = true, default_value_t = 0)]
    seed: u64,
    /// Number of worlds
    #[arg(long, allow_negative_numbers = true, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Number of inputs before faults stop, or the world ends; recovery takes as many more as it needs
    #[arg(long, allow_negative_numbers = true, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    steps: u64,
    /// Establish and use connections in real conversations over virtual sockets, with authentication. Slower
    #[arg(long, conflicts_with = "deployment")]
    wire: bool,
    /// A client among the servers of a deployment, which hold elections, are split and reconfigured, come and go,
    /// and answer wrongly. Counts the inputs of the topology and of all monitors and pools
    #[arg(long)]
    deployment: bool,
    /// Skip the reference model, which takes half of the time
    #[arg(long)]
    without_model: bool,
    /// Folder for the trace of a failing world: world-SEED.bson or wire-SEED.bson; none with --deployment
    #[arg(long, default_value = ".")]
    out: PathBuf,
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
}

impl Arguments {
    const fn kind(&self) -> WorldKind {
        match (self.wire, self.deployment) {
            (_, true) => WorldKind::Deployment,
            (true, false) => WorldKind::Wire,
            (false, false) => WorldKind::Direct,
        }
    }
}

/// What keeps it from being simulated.
#[derive(Debug, Error)]
pub enum NotSimulated {
    /// More worlds than there are seeds.
    #[error("--seed {seed} --runs {runs}: the last seed would be beyond {}", u64::MAX)]
    Seeds {
        /// As it was given.
        seed: u64,
        /// As it was given.
        runs: u64,
    },
    /// Nothing can be written there.
    #[error("{}: no trace can be written there: {reason}; --out names another folder", path.display())]
    File {
        /// Where.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// Signals cannot be heard, or nothing can be printed.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Lives through the worlds until one goes wrong, of which a trace is written.
///
/// # Errors
///
/// [`NotSimulated`].
pub fn run(arguments: &Arguments) -> Result<bool, NotSimulated> {
    let &Arguments { seed, runs, .. } = arguments;
    let last = seed.checked_add(runs - 1).ok_or(NotSimulated::Seeds { seed, runs })?;
    expect_folder(&arguments.out)?;
    let is_interrupted = interrupts()?;
    if !arguments.json {
        announce(arguments, last)?;
    }
    let (began, cpu_before) = (Instant::now(), cpu_time());
    let mut reached =
        Reached { seed, worlds: 0, inputs: 0, coverage: Coverage::default(), began, cpu_before };
    for seed in seed..=last {
        if is_interrupted.load(Ordering::Relaxed) {
            break;
        }
        reached.seed = seed;
        let plan = SeededPlan::new(arguments.kind(), seed, arguments.steps);
        match silently(|| plan.run(!arguments.without_model, &is_interrupted)) {
            Ok(report) => reached.add(&report),
            Err(failure) => {
                tell_failure(arguments, &plan, &failure, &reached)?;
                return Ok(false);
            }
        }
    }
    tell_success(arguments, &reached, is_interrupted.load(Ordering::Relaxed))?;
    Ok(true)
}

/// A panic of the machine is told as a failure, and shrinking provokes it again and again.
fn silently<T>(run: impl FnOnce() -> T) -> T {
    let loud = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    panic::set_hook(loud);
    outcome.unwrap_or_else(|panic| {
        eprintln!("cenote-lab: panicked: {}", panic_message(panic.as_ref()));
        panic::resume_unwind(panic)
    })
}

/// How far it has come.
struct Reached {
    /// Of the last world that has begun.
    seed: u64,
    worlds: u64,
    inputs: u64,
    coverage: Coverage,
    began: Instant,
    /// Of this thread, where the operating system tells.
    cpu_before: Option<Duration>,
}

impl Reached {
    fn add(&mut self, report: &Report) {
        self.worlds += u64::from(report.is_whole);
        self.inputs += report.inputs;
        self.coverage.add(&report.coverage);
    }

    /// Per second of CPU time if the operating system reports it, otherwise per second of wall-clock time.
    fn per_second(&self) -> f64 {
        let cpu = self.cpu_before.and_then(|before| cpu_time()?.checked_sub(before));
        let time = cpu.unwrap_or_else(|| self.began.elapsed()).max(Duration::from_nanos(1));
        self.inputs as f64 / time.as_secs_f64()
    }
}

/// How long this thread has had a processor.
fn cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn expect_folder(folder: &Path) -> Result<(), NotSimulated> {
    let written = fs::create_dir_all(folder).and_then(|()| {
        // Whether something can be written there is better known now than after an hour.
        tempfile::tempfile_in(folder).map(drop)
    });
    written.map_err(|reason| NotSimulated::File { path: folder.to_owned(), reason })
}

fn announce(arguments: &Arguments, last: u64) -> io::Result<()> {
    let &Arguments { seed, runs, steps, without_model, .. } = arguments;
    let judges = if without_model { "without the model" } else { "with the model" };
    let kind = match arguments.kind() {
        WorldKind::Direct => "",
        WorldKind::Wire => "on the wire, ",
        WorldKind::Deployment => "deployments, ",
    };
    // Before the first world, whatever becomes of it.
    print(format_args!("seeds {seed} to {last}, {kind}{steps} inputs each, judged {judges}\n"))?;
    if runs == 1 {
        print(format_args!("{}\n", SeededPlan::new(arguments.kind(), seed, steps)))?;
    }
    Ok(())
}

/// What was written about a world that went wrong.
struct Trace {
    path: PathBuf,
    /// How many inputs it has.
    steps: usize,
    /// What it shows by itself.
    fault: Option<Fault>,
}

/// The trace of a world that went wrong, if it goes wrong again.
fn write_trace(arguments: &Arguments, plan: &SeededPlan) -> Result<Option<Trace>, NotSimulated> {
    let kind = if arguments.wire { "wire" } else { "world" };
    let path = arguments.out.join(format!("{kind}-{}.bson", plan.seed()));
    let failed = |reason| NotSimulated::File { path: path.clone(), reason };
    let evidence = plan.evidence(!arguments.without_model).map_err(failed)?;
    let Some(evidence) = evidence else { return Ok(None) };
    let file = File::create(&path).map_err(failed)?;
    evidence.history.write(file).map_err(failed)?;
    Ok(Some(Trace { path, steps: evidence.history.inputs.len(), fault: evidence.fault }))
}

/// What went wrong comes first: shrinking takes its time, and may fail.
fn tell_failure(
    arguments: &Arguments,
    plan: &SeededPlan,
    failure: &Failure,
    reached: &Reached,
) -> io::Result<()> {
    let repeat = command(arguments, plan);
    let trace = || {
        silently(|| write_trace(arguments, plan)).unwrap_or_else(|error| {
            eprintln!("cenote-lab: {error}");
            None
        })
    };
    if arguments.json {
        let trace = trace().map(|trace| {
            json!({
                "path": trace.path.display().to_string(),
                "steps": trace.steps,
                "shows": trace.fault.as_ref().map(ToString::to_string),
            })
        });
        let failure = json!({
            "seed": plan.seed(),
            "inputs": failure.inputs,
            "complaint": failure.complaint,
            "plan": plan.to_string(),
            "repeat": repeat,
            "trace": trace,
        });
        return print(format_args!("{:#}\n", json(arguments, reached, &failure, false)));
    }
    print(format_args!("\n{plan}\n\nwrong {failure}\n\nonce more:      {repeat}\n"))?;
    let Reached { worlds, inputs, .. } = reached;
    print(format_args!("before that:    {worlds} worlds, {inputs} inputs, no failure\n"))?;
    if let Some(Trace { path, steps, fault }) = trace() {
        let shows = match fault {
            Some(fault) => format!("shrunk, shows {fault}"),
            None => "whole, for the pool alone does not show it".to_owned(),
        };
        let path = path.display();
        print(format_args!("what happened:  cenote replay '{path}' ({steps} steps, {shows})\n"))?;
    }
    Ok(())
}

fn tell_success(arguments: &Arguments, reached: &Reached, is_interrupted: bool) -> io::Result<()> {
    if arguments.json {
        let report = json(arguments, reached, &serde_json::Value::Null, is_interrupted);
        return print(format_args!("{report:#}\n"));
    }
    let (Reached { seed, worlds, inputs, coverage, .. }, each) = (reached, reached.per_second());
    let ended =
        if is_interrupted { format!("interrupted at seed {seed}, after ") } else { String::new() };
    print(format_args!("{coverage}\n"))?;
    let line = format!("{worlds} worlds, {inputs} inputs, {each:.0} a second of CPU");
    print(format_args!("{ended}{line}: no failure\n"))
}

fn json(
    arguments: &Arguments,
    reached: &Reached,
    failure: &serde_json::Value,
    is_interrupted: bool,
) -> serde_json::Value {
    let coverage: BTreeMap<_, BTreeMap<_, _>> = reached
        .coverage
        .groups()
        .map(|(group, situations)| (group, situations.into_iter().collect()))
        .collect();
    let &Arguments { seed, runs, steps, wire, deployment, without_model, .. } = arguments;
    json!({
        "asked": {
            "seed": seed, "runs": runs, "steps": steps, "wire": wire, "deployment": deployment,
            "model": !without_model,
        },
        "lastSeed": reached.seed,
        "worlds": reached.worlds,
        "inputs": reached.inputs,
        "seconds": reached.began.elapsed().as_secs_f64(),
        "inputsPerSecond": reached.per_second(),
        "coverage": coverage,
        "interrupted": is_interrupted,
        "failure": failure,
    })
}

fn command(arguments: &Arguments, plan: &SeededPlan) -> String {
    let &Arguments { steps, without_model, .. } = arguments;
    let kind = match arguments.kind() {
        WorldKind::Direct => "",
        WorldKind::Wire => " --wire",
        WorldKind::Deployment => " --deployment",
    };
    let without = if without_model { " --without-model" } else { "" };
    format!("cenote-lab simulate{kind} --seed {} --runs 1 --steps {steps}{without}", plan.seed())
}
