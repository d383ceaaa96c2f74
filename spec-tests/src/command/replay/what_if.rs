//! Predicts what other options would have done, and advises.

use std::io::{self, BufReader, Write};
use std::time::Duration;

use cenote_core::pool::PoolOptions;
use cenote_replay::text::{counted, grouped, paragraph, span};
use cenote_replay::what_if::{
    ASSUMED_OPENING, Advice, Assumptions, Change, Doubt, Finding, Fit, Goal, Grid, Loop, Need,
    Outcome, Prediction, ServerLimit, Setting, Workload,
};
use serde_json::{Value, json};

use super::draw::draw_beside;
use super::{Arguments, read};
use crate::command::Failure;
use crate::command::input::{at, open};
use crate::command::output::{printable, shown, table, wrapped};

/// A trace and what is assumed about its callers.
struct Case {
    workload: Workload,
    fit: Fit,
    by: Loop,
    /// Whether that was asked for.
    is_chosen: bool,
    findings: Vec<Finding>,
    is_good: bool,
}

/// Predicts, or advises.
pub(super) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<bool, Failure> {
    match (&arguments.what_if, arguments.advise) {
        (Some(grid), _) => predict(arguments, grid, out),
        (None, Some(goal)) => advise(arguments, goal, out),
        (None, None) => Ok(true),
    }
}

/// Predicts each combination of the options.
fn predict(arguments: &Arguments, grid: &Grid, out: &mut impl Write) -> Result<bool, Failure> {
    let case = Case::read(arguments)?;
    let changes = grid.changes(case.workload.options())?;
    let only = match (&arguments.html, &changes[..]) {
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
    if arguments.json {
        writeln!(out, "{:#}", case.predictions_as_json(&predictions))?;
    } else {
        case.introduce(arguments, out)?;
        case.print(&predictions, out)?;
    }
    if let Some((path, change)) = only {
        let recorded = case.workload.record(change, &case.assumptions(), Vec::new())?;
        draw_beside(arguments, &recorded, &change.to_string(), path)?;
        // JSON is the only thing on standard output.
        if !arguments.json {
            writeln!(out, "drawn beside the trace in {}", shown(path))?;
        }
    }
    Ok(case.is_good)
}

/// Advises the smallest pools that keep a goal; none where half of the pool is leaked.
fn advise(arguments: &Arguments, goal: Goal, out: &mut impl Write) -> Result<bool, Failure> {
    let case = Case::read(arguments)?;
    let advice = (!case.is_leaked()).then(|| case.workload.advise(goal, case.by, SEED));
    if arguments.json {
        writeln!(out, "{:#}", case.advice_as_json(goal, advice.as_ref()))?;
    } else {
        case.introduce(arguments, out)?;
        match &advice {
            Some(advice) => case.print_advice(goal, advice, out)?,
            None => writeln!(out, "goal       {goal}: no advice, since no size cures a leak")?,
        }
    }
    Ok(case.is_good)
}

/// The same prediction each time.
const SEED: u64 = 0;

impl Case {
    fn read(arguments: &Arguments) -> Result<Self, Failure> {
        let (workload, is_good) = if arguments.are_events {
            let events = BufReader::new(open(&arguments.trace)?);
            (Workload::read_events(events).map_err(at(&arguments.trace))?, true)
        } else {
            read(arguments, Workload::read)?
        };
        if workload.recorded().requests() == 0 {
            let path = &arguments.trace;
            return Err(at(path)("there are no requests, so nothing can be predicted"));
        }
        workload.options().validate().map_err(at(&arguments.trace))?;
        let fit = Fit::of(&workload);
        let by = arguments.callers.unwrap_or(fit.better);
        let findings = workload.findings(&fit);
        Ok(Self { workload, fit, by, is_chosen: arguments.callers.is_some(), findings, is_good })
    }

    /// At least half of the pool is: a larger one would be, later.
    fn is_leaked(&self) -> bool {
        let size = Setting::MaxPoolSize.of(self.workload.options()) as usize;
        self.workload.leaked() > 0 && 2 * self.workload.leaked() >= size
    }

    fn server(&self) -> Option<ServerLimit> {
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

    /// The trace, and what is assumed about its callers and its server.
    fn introduce(&self, arguments: &Arguments, out: &mut impl Write) -> io::Result<()> {
        let Self { workload, fit, .. } = self;
        let requests = counted(workload.recorded().requests(), "request", "requests");
        let address = workload.address().unwrap_or("a pool");
        let mut text = String::new();
        let mut tell = |name: &str, told: &str| paragraph(&mut text, &format!("{name:<11}"), told);
        let pool = format!("{}: {requests} in {}", printable(address), span(workload.duration()));
        tell(if arguments.are_events { "events" } else { "trace" }, &pool);
        tell("options", &options(workload.options()));
        let assumed = match self.by {
            Loop::Open => "come whatever happens to others (an open loop)".to_owned(),
            Loop::Closed => format!(
                "{} that come again some time after their last request ended (a closed loop)",
                grouped(fit.callers)
            ),
        };
        let why = if arguments.callers.is_none() {
            "which fits better"
        } else if self.by == fit.better {
            "as assumed, which also fits better"
        } else {
            "as assumed, although the other fits better"
        };
        tell("callers", &format!("{assumed}, {why}"));
        if workload.others() > 0 {
            let others = counted(workload.others() as u64, "other pool", "other pools");
            let advice = "write those of each pool into a file of its own";
            tell("others", &format!("{others} in these events: {advice}"));
        }
        for finding in &self.findings {
            tell(finding.name(), &finding.to_string());
        }
        if !workload.has_openings() {
            let assumed = span(ASSUMED_OPENING);
            let told = format!("{assumed} to establish a connection: none is seen established");
            tell("assumed", &told);
        }
        if workload.has_gaps() {
            tell("gaps", "only what follows the last gap of the trace counts");
        }
        writeln!(out, "{}", wrapped(&text))
    }

    fn print(&self, predictions: &[(&Change, Prediction)], out: &mut impl Write) -> io::Result<()> {
        let head = "|served|timed out|failed|p50 wait|p99 wait|longest|opened|at once|busy";
        let recorded = Prediction::certain(self.workload.recorded().clone());
        let predicted = predictions.iter().map(|(change, it)| row(&change.to_string(), it));
        let rows = [row("as recorded", &recorded)].into_iter().chain(predicted);
        out.write_all(table(head, rows, str::is_empty).as_bytes())?;
        let meant = format!(
            "waits are those of all requests until their outcome; of {} draws the median, or the least and \
             the most if they are more than a tenth of it apart",
            Assumptions::DRAWS
        );
        let mut text = String::from("\n");
        paragraph(&mut text, "", &meant);
        for doubt in Doubt::ALL {
            let doubted = predictions.iter().filter(|(_, it)| it.doubts().contains(&doubt));
            let doubted: Vec<_> = doubted.map(|(change, _)| change.to_string()).collect();
            if !doubted.is_empty() {
                text.push('\n');
                let doubted = doubted.join(", ");
                paragraph(&mut text, "", &format!("{doubted}: this trace cannot show {doubt}"));
            }
        }
        out.write_all(wrapped(&text).as_bytes())
    }

    fn predictions_as_json(&self, predictions: &[(&Change, Prediction)]) -> Value {
        let predictions = predictions.iter().map(|(change, prediction)| {
            json!({
                "options": change_as_json(change),
                "doubts": prediction.doubts().iter().map(|it| it.name()).collect::<Value>(),
                "draws": draws(prediction),
            })
        });
        let mut told = self.as_json();
        told["predictions"] = predictions.collect();
        told
    }

    fn as_json(&self) -> Value {
        let settings =
            Setting::ALL.map(|it| (it.name().to_owned(), it.of(self.workload.options()).into()));
        json!({
            "address": self.workload.address(),
            "durationMS": millis(self.workload.duration()),
            "options": Value::Object(settings.into_iter().collect()),
            "callers": {
                "assumed": self.by.name(),
                "fitsBetter": self.fit.better.name(),
                "evidence": self.fit.evidence,
                "closed": self.fit.callers,
            },
            "server": server_as_json(self.server()),
            "leaked": self.workload.leaked(),
            "findings": self.findings.iter().map(Finding::name).collect::<Value>(),
            "showsEstablishment": self.workload.has_openings(),
            "hasGaps": self.workload.has_gaps(),
            "recorded": outcome_as_json(self.workload.recorded()),
        })
    }

    fn print_advice(&self, goal: Goal, advice: &Advice, out: &mut impl Write) -> io::Result<()> {
        let recorded = self.workload.recorded();
        let kept = if goal.is_kept(recorded) { "kept" } else { "not kept" };
        let certain = Prediction::certain(recorded.clone());
        writeln!(out, "goal       {goal}, {kept} as recorded: {}\n", typical(goal, &certain))?;
        let quantity = if let Goal::Wait { .. } = goal { "wait" } else { "time-outs" };
        let head =
            format!("|maxPoolSize|maxConnecting|minPoolSize|{quantity}|opened|at once|on average");
        let rows = advice.needs.iter().map(|(situation, need)| {
            let mut row = vec![situation.to_string()];
            if let Need::Pool { change, prediction } = need {
                row.extend(change.values().iter().map(|(_, value)| value.to_string()));
                row.push(typical(goal, prediction));
                row.push(grouped(prediction.median(|outcome| outcome.opened)));
                row.push(prediction.median(|outcome| outcome.peak).to_string());
                row.push(format!("{:.1}", prediction.median(|outcome| outcome.mean_open)));
            } else {
                row.push("no pool".to_owned());
            }
            row
        });
        out.write_all(table(&head, rows, str::is_empty).as_bytes())?;
        let is_server = |need: &Need| matches!(need, Need::Server(_));
        if let Some(limit) =
            advice.server.filter(|_| advice.needs.iter().any(|(_, need)| is_server(need)))
        {
            writeln!(
                out,
                "\nno pool helps where the goal takes more than {}: from there on the server \
                 finishes no more uses, and the wait only moves to the server",
                counted(limit.connections.into(), "connection in use", "connections in use")
            )?;
        }
        for (situation, need) in &advice.needs {
            if let Need::NoPool { prediction } = need {
                writeln!(
                    out,
                    "\n{situation}: with as many connections as are asked for, all established at the start, \
                     the goal is not kept either; {} without a limit",
                    typical(goal, prediction)
                )?;
            }
        }
        Ok(())
    }

    fn advice_as_json(&self, goal: Goal, advice: Option<&Advice>) -> Value {
        let needs = advice.into_iter().flat_map(|advice| &advice.needs).map(|(situation, need)| {
            let mut told = json!({
                "busiestMinute": situation.is_busiest_minute,
                "load": situation.load,
            });
            let (outcome, draws) = match need {
                Need::Pool { change, prediction } => {
                    told["options"] = change_as_json(change);
                    ("pool", draws(prediction))
                }
                Need::Server(_) => ("server", Value::Null),
                Need::NoPool { prediction } => ("none", draws(prediction)),
            };
            told["helps"] = outcome.into();
            told["draws"] = draws;
            told
        });
        let mut told = self.as_json();
        told["goal"] = goal.to_string().into();
        told["isKept"] = goal.is_kept(self.workload.recorded()).into();
        told["advice"] = if advice.is_some() { needs.collect() } else { Value::Null };
        told
    }
}

/// The options that matter, with their values.
fn options(options: &PoolOptions) -> String {
    let shown = |setting: Setting| {
        let (name, value) = (setting.name(), setting.of(options));
        let is_unlimited = value == 0 && setting != Setting::MinPoolSize;
        format!("{name} {}", if is_unlimited { "unlimited".to_owned() } else { value.to_string() })
    };
    Setting::ALL.map(shown).join(", ")
}

fn row(name: &str, prediction: &Prediction) -> Vec<String> {
    let number = |of: fn(&Outcome) -> u64| spread(prediction, of, |it| it as f64, grouped);
    let wait = |thousandths| {
        let of = |outcome: &Outcome| outcome.wait(thousandths);
        spread(prediction, of, |it| it.as_secs_f64(), span)
    };
    vec![
        name.to_owned(),
        number(|outcome| outcome.served),
        number(|outcome| outcome.timed_out),
        number(|outcome| outcome.failed + outcome.shed),
        wait(500),
        wait(990),
        wait(1000),
        number(|outcome| outcome.opened),
        prediction.median(|outcome| outcome.peak).to_string(),
        format!("{:.0} %", 100.0 * prediction.median(Outcome::busy_share)),
    ]
}

/// The median of the draws, or the least and the most if they are more than a tenth of it apart.
fn spread<T: PartialOrd + Copy>(
    prediction: &Prediction,
    of: impl Fn(&Outcome) -> T,
    size: fn(T) -> f64,
    shown: fn(T) -> String,
) -> String {
    let (least, most) = prediction.range(&of);
    let median = prediction.median(of);
    let is_wide = size(most) - size(least) > size(median) / 10.0;
    if !is_wide {
        return shown(median);
    }
    let (least, most) = (shown(least), shown(most));
    // "50 ms", "60 ms": 50–60 ms.
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| format!(" {unit}"));
    let least = match unit(&most) {
        Some(same) => least.strip_suffix(&same).unwrap_or(&least),
        None => &least,
    };
    format!("{least}–{most}")
}

/// The median of what a goal is about.
fn typical(goal: Goal, prediction: &Prediction) -> String {
    // Those that were not served are the worst.
    match goal {
        Goal::Wait { thousandths, .. } => {
            let wait =
                |outcome: &Outcome| outcome.served_within(thousandths).unwrap_or(Duration::MAX);
            let wait = prediction.median(wait);
            if wait == Duration::MAX { NOT_SERVED.to_owned() } else { span(wait) }
        }
        Goal::TimeOuts { .. } => percent(prediction.median(Outcome::time_out_share)),
    }
}

const NOT_SERVED: &str = "too few served";

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn change_as_json(change: &Change) -> Value {
    let values =
        change.values().iter().map(|(setting, value)| (setting.name().to_owned(), (*value).into()));
    Value::Object(values.collect())
}

fn server_as_json(server: Option<ServerLimit>) -> Value {
    server.map_or(Value::Null, |limit| {
        json!({
            "connections": limit.connections,
            "usesPerSecond": limit.per_second,
            "evidence": limit.evidence,
        })
    })
}

fn draws(prediction: &Prediction) -> Value {
    prediction.outcomes().iter().map(outcome_as_json).collect()
}

fn outcome_as_json(outcome: &Outcome) -> Value {
    json!({
        "served": outcome.served,
        "timedOut": outcome.timed_out,
        "shed": outcome.shed,
        "failed": outcome.failed,
        "waiting": outcome.waiting,
        "opened": outcome.opened,
        "connectionsMax": outcome.peak,
        "connectionsMean": outcome.mean_open,
        "inUseMean": outcome.mean_in_use,
        "waitMS": {
            "p50": millis(outcome.wait(500)),
            "p90": millis(outcome.wait(900)),
            "p99": millis(outcome.wait(990)),
            "p99.9": millis(outcome.wait(999)),
            "max": millis(outcome.wait(1000)),
        },
    })
}
