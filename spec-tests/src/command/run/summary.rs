use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::deployment::Deployment;
use super::latency::Quantiles;
use super::record::Recorded;
use super::resources::Growth;
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

#[derive(Clone, Debug, Default, Serialize)]
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

impl Operations {
    pub(super) fn of(tally: &Tally, seconds: f64) -> Self {
        let Counts { delivered, good, given_up: [_, given_up], .. } = tally.counts();
        Self {
            good,
            failed: delivered.saturating_sub(good + given_up),
            given_up,
            foreign_replies: tally.foreign_replies(),
            per_second: good as f64 / seconds.max(f64::MIN_POSITIVE),
        }
    }
}

impl CheckOuts {
    pub(super) fn of(tally: &Tally) -> Self {
        let Counts { asked, delivered, given_up: [given_up, _], .. } = tally.counts();
        Self { asked, delivered, failed: asked.saturating_sub(delivered + given_up), given_up }
    }
}

impl Events {
    pub(super) fn of(report: &Report, file: Option<PathBuf>) -> Self {
        let findings = report.findings.iter().map(ToString::to_string).collect();
        let Report { events: judged, broken, check_outs, .. } = *report;
        Self { judged, broken, check_outs, findings, file }
    }
}

impl Summary {
    pub(super) fn judged(self) -> Self {
        Self { good: self.complaints().is_empty(), ..self }
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
