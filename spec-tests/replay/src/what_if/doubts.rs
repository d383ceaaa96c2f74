//! What a trace shows of its program and its server, and where it leaves open what would have happened.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use super::request::nanos;
use super::{Assumptions, Change, Fit, Loop, Outcome, Prediction, ServerLimit, Setting, Workload};
use crate::text::{counted, grouped};

/// What a trace shows of its program or its server, and predictions take over.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// So many connections look leaked, and one use in this many.
    Leaks(usize, u64),
    /// The server is the limit: with more in use each takes longer.
    Server(ServerLimit),
    /// So many requests followed a failed one at once.
    Retries(usize),
    /// So many requests were made during a use that ended with them.
    Nested(usize),
    /// So often nothing happened for a while, and then several uses ended at once.
    Stalls(usize),
    /// So many requests have no end in the events, although later ones were served.
    Unended(u64),
}

impl Finding {
    /// In a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Leaks(..) => "leaks",
            Self::Server(_) => "server",
            Self::Retries(_) => "retries",
            Self::Nested(_) => "nested",
            Self::Stalls(_) => "stalls",
            Self::Unended(_) => "no end",
        }
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Leaks(leaked, one_in) => write!(
                f,
                "{} leaked (cenote explain --leaks lists them): one use in {} leaks, is assumed to go on so, and no size \
                 cures that",
                counted(leaked as u64, "connection looks", "connections look"),
                grouped(one_in)
            ),
            Self::Server(limit) => write!(
                f,
                "finishes no more than {} uses a second, from {} on: with more in use each takes longer, and is \
                 assumed to",
                grouped(limit.per_second.round() as u64),
                counted(limit.connections.into(), "connection in use", "connections in use")
            ),
            Self::Retries(retries) => write!(
                f,
                "{} came at once after one that failed: it is assumed to be tried again, if it fails",
                counted(retries as u64, "request", "requests")
            ),
            Self::Nested(nested) => write!(
                f,
                "{} came during a use that ended with it: that use is assumed to wait for it",
                counted(nested as u64, "request", "requests")
            ),
            Self::Stalls(stalls) => write!(
                f,
                "{} nothing happened for a while, and then several uses ended at once: the program is assumed to \
                 stand still then",
                counted(stalls as u64, "time", "times")
            ),
            Self::Unended(unended) => write!(
                f,
                "{} no end in the events: taken to have given up when a later one was served",
                counted(unended, "check-out has", "check-outs have")
            ),
        }
    }
}

/// What the trace of a prediction does not show, although it makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Whether callers come again.
    Callers,
    /// What happens in less time than passes between two readings of its clock.
    Clock,
    /// When connections leak.
    Leaks,
    /// What callers do that wait for longer than any did.
    Patience,
    /// Whether uses take longer with more connections in use.
    Server,
    /// How connections are used.
    Uses,
}

impl Doubt {
    /// All.
    pub const ALL: [Self; 6] =
        [Self::Callers, Self::Clock, Self::Leaks, Self::Patience, Self::Server, Self::Uses];

    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Callers => "callers",
            Self::Clock => "clock",
            Self::Leaks => "leaks",
            Self::Patience => "patience",
            Self::Server => "server",
            Self::Uses => "uses",
        }
    }
}

/// What the trace cannot show.
impl Display for Doubt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Callers => "whether callers come again (assume it with --callers)",
            Self::Clock => "what is short: its clock is coarse",
            Self::Leaks => "when connections leak",
            Self::Patience => "how long callers wait, and whether they try again: hardly any had to",
            Self::Uses => "how connections are used: hardly any was checked in",
            Self::Server => {
                "whether the server is as fast with so many connections in use (record with a larger pool)"
            }
        })
    }
}

/// With less evidence of a closed loop, if there is some, either loop may be true.
const UNSURE: f64 = 20.0;

/// Of maxPoolSize, on average.
const FULL: f64 = 0.9;

/// A server's limit that is nearer to the largest number in use is not seen.
const NEARLY: f64 = 0.9;

/// Where that is in doubt, uses may grow more than in proportion.
const STEEP: f64 = 1.1;

/// Fewer than one in this many failures show nothing of their callers.
const RARE: u64 = 500;

/// Fewer uses show nothing of the others.
const FEW_USES: usize = 64;

/// A clock with fewer readings in a usual use tells little of it.
const COARSE: u32 = 4;

/// Of what is assumed otherwise.
const DRAWS: u64 = 3;

impl Workload {
    /// What it shows, and its predictions take over.
    pub fn findings(&self, fit: &Fit) -> Vec<Finding> {
        let retries = Some(self.retries.len()).filter(|it| *it > 0 && fit.better == Loop::Open);
        let stalls = Some(self.stalls.count()).filter(|it| *it > 0);
        let nested = Some(self.nested.len()).filter(|it| *it > 0);
        let leaks = self.leaks.map(|(_, rate)| Finding::Leaks(self.leaked(), rate.recip() as u64));
        let findings = [
            leaks,
            ServerLimit::of(self).map(Finding::Server),
            retries.map(Finding::Retries),
            nested.map(Finding::Nested),
            stalls.map(Finding::Stalls),
            Some(self.unended).filter(|it| *it > 0).map(Finding::Unended),
        ];
        findings.into_iter().flatten().collect()
    }

    /// What would have happened by these assumptions, and by others that the trace does not rule out: a range if that is of
    /// use, and a doubt if it is not. Without a `fit` the loop is certain.
    pub fn foresee(&self, change: &Change, assumed: &Assumptions, fit: Option<&Fit>) -> Prediction {
        let mut prediction = self.predict(change, assumed);
        for (doubt, other) in self.alternatives(assumed, fit) {
            let other = self.predict(change, &Assumptions { draws: DRAWS, ..other });
            if !differ(&prediction, &other) {
                continue;
            }
            let mut both = prediction.clone();
            both.outcomes.extend(other.outcomes);
            if is_narrow(&both) {
                prediction = both;
            } else if !prediction.doubts.contains(&doubt) {
                prediction.doubts.push(doubt);
            }
        }
        if self.leaks.is_some() && prediction.doubts.is_empty() && !is_narrow(&prediction) {
            prediction.doubts.push(Doubt::Leaks);
        }
        if self.hides_patience(&prediction) {
            prediction.doubts.push(Doubt::Patience);
        }
        let lengths = self.uses().map(|it| nanos(self.requests[it as usize].used()));
        let mut lengths: Vec<_> = lengths.collect();
        lengths.sort_unstable();
        let uses = lengths.len();
        let usual = lengths.get(uses / 2).map(|&it| Duration::from_nanos(it));
        if usual.is_some_and(|usual| self.tick > usual / COARSE) {
            prediction.doubts.push(Doubt::Clock);
        }
        if uses < FEW_USES && 2 * uses < self.counted().len() {
            prediction.doubts.push(Doubt::Uses);
        }
        prediction
    }

    /// Other assumptions that the trace does not rule out.
    fn alternatives(&self, assumed: &Assumptions, fit: Option<&Fit>) -> Vec<(Doubt, Assumptions)> {
        let mut others = Vec::new();
        let unsure = match (self.nested.len(), self.stalls.count()) {
            (1.., _) => f64::INFINITY,
            (0, 1..) => 10.0 * UNSURE,
            (0, 0) => UNSURE,
        };
        if let Some(fit) = fit.filter(|fit| (0.0..unsure).contains(&fit.evidence)) {
            let callers = if assumed.callers.is_some() { None } else { Some(fit.callers) };
            others.push((Doubt::Callers, Assumptions { callers, ..*assumed }));
        }
        if self.leaks.is_some() {
            let otherwise = |leaks| (Doubt::Leaks, Assumptions { leaks, ..*assumed });
            others.extend([0.0, 2.0].map(otherwise));
        }
        if let Some(server) = assumed.server.or_else(|| self.hidden_limit()) {
            let server = Some(server);
            others.push((Doubt::Server, Assumptions { server, growth: STEEP, ..*assumed }));
        }
        others
    }

    /// Whether callers fail, or wait for longer than any did without a limit, and hardly any failed in the trace.
    fn hides_patience(&self, prediction: &Prediction) -> bool {
        let failed = |it: &Outcome| it.timed_out + it.failed + it.shed;
        let (recorded, few) = (self.recorded(), self.recorded().requests() / RARE);
        let is_limited = self.options().wait_queue_timeout.is_some()
            || self.counted().iter().any(|request| self.limits.of(request).is_some());
        let waits_longer = prediction.median(|it| it.wait(990)) > recorded.wait(1000);
        failed(recorded) <= few
            && (prediction.median(failed) > failed(recorded) + few.min(5)
                || waits_longer && !is_limited)
    }

    /// A limit that the server may have, although the trace does not show it.
    fn hidden_limit(&self) -> Option<u32> {
        let size = Setting::MaxPoolSize.of(self.options()) as f64;
        let is_full = size > 0.0 && self.recorded().mean_in_use > FULL * size;
        let (least, most) = (ServerLimit::least(self), self.recorded().most_in_use);
        (is_full || f64::from(least) <= NEARLY * f64::from(most)).then_some(least)
    }
}

/// Whether its ranges are of use: none ends at more than three times its beginning.
fn is_narrow(prediction: &Prediction) -> bool {
    let is_narrow = |of: fn(&Outcome) -> f64, few: f64| {
        let (least, most) = prediction.range(of);
        most <= (3.0 * least).max(few)
    };
    is_narrow(|it| it.timed_out as f64, 3.0)
        && is_narrow(|it| it.served as f64, 0.0)
        && is_narrow(|it| it.wait(990).as_secs_f64(), 0.000_1)
}

/// Whether they are not the same answer.
fn differ(one: &Prediction, other: &Prediction) -> bool {
    let differ = |of: fn(&Outcome) -> f64, part: f64, few: f64| {
        let (one, other) = (one.median(of), other.median(of));
        (one - other).abs() > (part * one).max(few)
    };
    differ(|it| it.timed_out as f64, 0.15, 4.0)
        || differ(|it| it.served as f64, 0.1, 0.0)
        || differ(|it| it.wait(990).as_secs_f64(), 0.3, 0.000_1)
}
