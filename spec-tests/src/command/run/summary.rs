use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::arguments::Plan;
use super::deployment::Deployment;
use super::latency::Quantiles;
use super::record::Recorded;
use super::resources::Growth;
use super::seen::Connections;
use super::tally::{Counts, Tally};
use super::timeline::Incident;
use cenote_check::Report;

/// How it went: what `--json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// Whether there is nothing to complain of.
    pub(super) good: bool,
    pub(super) server: String,
    pub(super) deployment: Deployment,
    /// Whether the server is the built-in mock server.
    pub(super) embedded: bool,
    pub(super) shell: &'static str,
    pub(super) tasks: u32,
    /// None is without limit.
    pub(super) max_pool_size: Option<u32>,
    pub(super) stopped_by: Stopped,
    pub(super) seconds: f64,
    pub(super) operations: Operations,
    pub(super) check_outs: CheckOuts,
    pub(super) check_out_wait: Quantiles,
    pub(super) operation_time: Quantiles,
    pub(super) establishment: Quantiles,
    pub(super) connections: Lives,
    /// Of check-outs and operations, by reason.
    pub(super) failures: BTreeMap<String, u64>,
    pub(super) troubles: Vec<Incident>,
    pub(super) events: Events,
    pub(super) recorded: Option<Recorded>,
    pub(super) left: Left,
    /// Where the operating system tells.
    pub(super) growth: Option<Growth>,
}

/// What ended the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Stopped {
    Time,
    Operations,
    Signal,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Operations {
    pub(super) good: u64,
    pub(super) failed: u64,
    /// Those whose caller gave up in the middle.
    pub(super) given_up: u64,
    /// Those that got a reply to another command; they have failed.
    pub(super) foreign_replies: u64,
    pub(super) per_second: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckOuts {
    pub(super) asked: u64,
    pub(super) delivered: u64,
    pub(super) failed: u64,
    /// Those whose caller gave up.
    pub(super) given_up: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lives {
    pub(super) created: u64,
    pub(super) established: u64,
    /// By reason.
    pub(super) closed: BTreeMap<&'static str, u64>,
    pub(super) pool_cleared: u64,
}

/// What the checker says.
#[derive(Debug, Serialize)]
pub(super) struct Events {
    pub(super) judged: u64,
    /// How often a rule was broken.
    pub(super) broken: u64,
    /// Check-outs that the events tell.
    #[serde(rename = "checkOuts")]
    pub(super) check_outs: u64,
    pub(super) findings: Vec<String>,
    pub(super) file: Option<PathBuf>,
}

/// What is left at the end, where there should be nothing.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Left {
    /// Tasks that did not come to their end.
    pub(super) tasks: usize,
    /// Whether all pools closed.
    pub(super) closed: bool,
    /// As the pools count them.
    pub(super) connections: u32,
    /// As the operating system counts them, where it does.
    pub(super) sockets: Option<usize>,
}

/// What a summary is made of.
pub(super) struct Told<'a> {
    pub(super) plan: &'a Plan,
    pub(super) server: String,
    pub(super) deployment: Deployment,
    pub(super) embedded: bool,
    pub(super) max_pool_size: Option<u32>,
    pub(super) stopped: Stopped,
    pub(super) worked: Duration,
    pub(super) tally: &'a Tally,
    pub(super) connections: Connections,
    pub(super) incidents: Vec<Incident>,
    pub(super) left: Left,
    pub(super) report: Report,
    pub(super) growth: Option<Growth>,
    pub(super) recorded: Option<Recorded>,
}

impl Summary {
    pub(super) fn new(told: Told<'_>) -> Self {
        let Told { plan, tally, connections, left, report, .. } = told;
        let Counts { asked, delivered, good, given_up: [check_outs, operations], .. } =
            tally.counts();
        let [check_out_wait, operation_time] = tally.quantiles();
        let seconds = told.worked.as_secs_f64();
        let mut summary = Self {
            good: true,
            server: told.server,
            deployment: told.deployment,
            embedded: told.embedded,
            shell: plan.shell.name(),
            tasks: plan.tasks,
            max_pool_size: told.max_pool_size,
            stopped_by: told.stopped,
            seconds,
            operations: Operations {
                good,
                failed: delivered.saturating_sub(good + operations),
                given_up: operations,
                foreign_replies: tally.foreign_replies(),
                per_second: good as f64 / seconds.max(f64::MIN_POSITIVE),
            },
            check_outs: CheckOuts {
                asked,
                delivered,
                failed: asked.saturating_sub(delivered + check_outs),
                given_up: check_outs,
            },
            check_out_wait,
            operation_time,
            establishment: connections.establishments,
            connections: Lives {
                created: report.connections,
                established: connections.established,
                closed: connections.closed,
                pool_cleared: connections.cleared,
            },
            failures: tally.reasons(),
            troubles: told.incidents,
            events: Events {
                judged: report.events,
                broken: report.broken,
                check_outs: report.check_outs,
                findings: report.findings.iter().map(ToString::to_string).collect(),
                file: plan.events.clone(),
            },
            recorded: told.recorded,
            left,
            growth: told.growth,
        };
        summary.good = summary.complaints().is_empty();
        summary
    }

    /// Everything that does not hold.
    pub(super) fn complaints(&self) -> Vec<String> {
        let Self { left, events, check_outs, .. } = self;
        let first = events.findings.first().map_or("", String::as_str);
        let checks = [
            (left.tasks == 0, format!("{} tasks hang", left.tasks)),
            (left.closed, "the pool does not close".to_owned()),
            (left.connections == 0, format!("{} connections are left", left.connections)),
            (
                left.sockets.is_none_or(|count| count == 0),
                format!("{} sockets are left", left.sockets.unwrap_or_default()),
            ),
            (events.broken == 0, format!("rules are broken {} times: {first}", events.broken)),
            (
                events.check_outs == check_outs.asked,
                format!(
                    "{} check-outs were asked for, and {} told",
                    check_outs.asked, events.check_outs
                ),
            ),
            (
                self.operations.foreign_replies == 0,
                format!(
                    "{} operations got a reply to another command",
                    self.operations.foreign_replies
                ),
            ),
            (
                self.operations.good > 0 || self.stopped_by == Stopped::Signal,
                "no operation went well".to_owned(),
            ),
        ];
        let complaints = checks.into_iter().filter_map(|(holds, what)| (!holds).then_some(what));
        complaints.chain(self.growth.iter().flat_map(Growth::complaints)).collect()
    }
}
