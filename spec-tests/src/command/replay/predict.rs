//! `cenote predict FILE`: what other options would have done.

use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::slice;

use cenote_replay::what_if::{
    Assumptions, Change, Finding, Fit, Goal, Grid, Loop, Prediction, ServerLimit, Setting, Workload,
};

use super::chosen::Chosen;
use super::draw::draw_beside;
use super::explain::of_events;
use super::printed;
use super::sources::Sources;
use crate::command::Failure;
use crate::command::input::{at, open};
use crate::command::output::{expect_different, shown};

/// Arguments of `cenote predict`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("question").args(["what_if", "advise"]).required(true))]
pub(in crate::command) struct Arguments {
    /// Events of a pool of any driver, one JSON object per line, or its log of the component `connection`; `-` is standard
    /// input. Or a trace of Cenote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What other options would have done, as in 'maxPoolSize=20,40; maxConnecting=2,8': every combination, beside what
    /// happened. Options: maxPoolSize, minPoolSize, maxConnecting, waitQueueTimeoutMS, maxIdleTimeMS
    #[arg(long, value_name = "OPTIONS")]
    what_if: Option<Grid>,
    /// The smallest pools that keep a goal: 'p99 wait < 5 ms', 'max wait < 1 s' or 'time-outs < 1 %'
    #[arg(long, value_name = "GOAL", conflicts_with = "html")]
    advise: Option<Goal>,
    /// How callers come: open, whatever happens to others; or closed, some time after their last request
    /// ended [default: what fits better]
    #[arg(long, value_name = "LOOP")]
    callers: Option<Loop>,
    /// Of a trace: draw it beside what would have happened with one value per option
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// One JSON object, with each draw
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cenote predict events.jsonl --what-if 'maxPoolSize=8,16,32'
  cenote predict events.jsonl --advise 'p99 wait < 5 ms'
  cenote predict incident.bson --what-if 'maxPoolSize=40' --html both.html";

/// Predicts, or advises.
pub(in crate::command) fn run(given: &Arguments) -> Result<bool, Failure> {
    printed(|out| {
        expect_different(&[("the trace", Some(&given.file)), ("--html", given.html.as_deref())])?;
        let case = Case::read(given)?;
        match (&given.what_if, given.advise) {
            (Some(grid), _) => predict(given, &case, grid, out)?,
            (None, Some(goal)) => advise(given, &case, goal, out)?,
            (None, None) => {}
        }
        Ok(case.is_good)
    })
}

/// Predicts each combination of the options.
fn predict(
    given: &Arguments,
    case: &Case,
    grid: &Grid,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let changes = grid.changes(case.workload.options())?;
    let only = match (&given.html, &changes[..]) {
        (None, _) => None,
        (Some(path), [change]) => Some((path, change)),
        (Some(_), changes) => {
            let count = changes.len();
            return Err(format!(
                "--html shows one prediction beside the trace, not {count}: give each option of --what-if one value"
            )
            .into());
        }
    };
    let predictions: Vec<_> = changes.iter().map(|change| (change, case.predict(change))).collect();
    if given.json {
        writeln!(out, "{:#}", case.predictions_as_json(&predictions))?;
    } else {
        case.introduce(out)?;
        case.print(&predictions, out)?;
    }
    if let Some((path, change)) = only {
        let recorded = case.workload.record(change, &case.assumptions(), Vec::new())?;
        draw_beside(&case.chosen, &recorded, &change.to_string(), path)?;
        // JSON is the only thing on standard output.
        if !given.json {
            writeln!(out, "drawn beside the trace in {}", shown(path))?;
        }
    }
    Ok(())
}

/// Advises the smallest pools that keep a goal; none where half of the pool is leaked.
fn advise(given: &Arguments, case: &Case, goal: Goal, out: &mut impl Write) -> Result<(), Failure> {
    let advice = (!case.is_leaked()).then(|| case.workload.advise(goal, case.by, SEED));
    if given.json {
        writeln!(out, "{:#}", case.advice_as_json(goal, advice.as_ref()))?;
        return Ok(());
    }
    case.introduce(out)?;
    match &advice {
        Some(advice) => case.print_advice(goal, advice, out)?,
        None => writeln!(out, "goal       {goal}: no advice, since no size cures a leak")?,
    }
    Ok(())
}

/// The same prediction each time.
const SEED: u64 = 0;

/// A trace, or the events of a pool, and what is assumed about its callers.
pub(super) struct Case {
    chosen: Chosen,
    pub(super) are_events: bool,
    pub(super) workload: Workload,
    pub(super) fit: Fit,
    pub(super) by: Loop,
    /// Whether that was asked for.
    pub(super) is_chosen: bool,
    pub(super) findings: Vec<Finding>,
    is_good: bool,
}

impl Case {
    fn read(given: &Arguments) -> Result<Self, Failure> {
        let path = &given.file;
        let are_events = of_events(slice::from_ref(path))?.is_some();
        if given.html.is_some() && are_events {
            return Err(at(path)("--html draws a trace, and these are events"));
        }
        if given.html.is_some() && !path.is_file() && !path.is_dir() {
            return Err(at(path)("--html reads the trace twice: give it as a file"));
        }
        let mut chosen = Chosen::default();
        let (workload, is_good) = if are_events {
            (Workload::read_events(BufReader::new(open(path)?)).map_err(at(path))?, true)
        } else {
            let sources = Sources::find(slice::from_ref(path))?;
            sources.expect_none(&[
                ("--what-if", given.what_if.is_some()),
                ("--advise", given.advise.is_some()),
            ])?;
            let is_topology_good = chosen.load(&sources)?;
            if let [pool] = sources.pools.as_slice() {
                chosen.trace.clone_from(pool);
            }
            let (workload, is_good) = chosen.read(Workload::read)?;
            (workload, is_good && is_topology_good)
        };
        if workload.recorded().requests() == 0 {
            return Err(at(path)("there are no requests, so nothing can be predicted"));
        }
        workload.options().validate().map_err(at(path))?;
        let fit = Fit::of(&workload);
        let by = given.callers.unwrap_or(fit.better);
        let findings = workload.findings(&fit);
        let is_chosen = given.callers.is_some();
        Ok(Self { chosen, are_events, workload, fit, by, is_chosen, findings, is_good })
    }

    /// At least half of the pool is: a larger one would be, later.
    fn is_leaked(&self) -> bool {
        let size = Setting::MaxPoolSize.of(self.workload.options()) as usize;
        self.workload.leaked() > 0 && 2 * self.workload.leaked() >= size
    }

    pub(super) fn server(&self) -> Option<ServerLimit> {
        let limit =
            |found: &Finding| if let Finding::Server(it) = found { Some(*it) } else { None };
        self.findings.iter().find_map(limit)
    }

    fn assumptions(&self) -> Assumptions {
        Assumptions { seed: SEED, ..Assumptions::new(&self.workload, self.by, &self.fit) }
    }

    fn predict(&self, change: &Change) -> Prediction {
        let fit = Some(&self.fit).filter(|_| !self.is_chosen);
        self.workload.foresee(change, &self.assumptions(), fit)
    }
}
