//! Prints predictions and advice as tables.

use std::io::{self, Write};
use std::time::Duration;

use cenote_core::pool::PoolOptions;
use cenote_replay::text::{counted, grouped, paragraph, span};
use cenote_replay::what_if::{
    ASSUMED_OPENING, Advice, Assumptions, Change, Doubt, Goal, Loop, Need, Outcome, Prediction,
    Setting,
};

use super::predict::Case;
use crate::command::output::{printable, table, wrapped};

impl Case {
    /// The trace, and what is assumed about its callers and its server.
    pub(super) fn introduce(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { workload, fit, .. } = self;
        let requests = counted(workload.recorded().requests(), "request", "requests");
        let address = workload.address().unwrap_or("a pool");
        let mut text = String::new();
        let mut tell = |name: &str, told: &str| paragraph(&mut text, &format!("{name:<11}"), told);
        let pool = format!("{}: {requests} in {}", printable(address), span(workload.duration()));
        tell(if self.are_events { "events" } else { "trace" }, &pool);
        tell("options", &options(workload.options()));
        let assumed = match self.by {
            Loop::Open => "come whatever happens to others (an open loop)".to_owned(),
            Loop::Closed => format!(
                "{} that come again some time after their last request ended (a closed loop)",
                grouped(fit.callers)
            ),
        };
        let why = if !self.is_chosen {
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

    pub(super) fn print(
        &self,
        predictions: &[(&Change, Prediction)],
        out: &mut impl Write,
    ) -> io::Result<()> {
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

    pub(super) fn print_advice(
        &self,
        goal: Goal,
        advice: &Advice,
        out: &mut impl Write,
    ) -> io::Result<()> {
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
