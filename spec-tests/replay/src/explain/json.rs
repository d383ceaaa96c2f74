//! The findings as one JSON object. Times and durations are seconds.

use std::time::Duration;

use cenote_core::pool::Instant;
use serde_json::{Value, json};

use super::analysis::{Group, Members, Use};
use super::clears::Clear;
use super::statistics::Quantiles;
use super::summary::Findings;
use super::wait::{Outcome, Wait};
use crate::json::seconds;
use crate::topology::Reason;

impl Findings {
    /// Everything that was found, with at most this many of the longest waits.
    pub fn json(&self, slowest: usize) -> Value {
        let groups = self.groups.iter().map(|(group, members)| self.group_json(group, members));
        let slowest = self.slowest.iter().take(slowest).map(|wait| self.wait_json(wait));
        let leaked = self.leaks.leaked().collect();
        let held = self.leaks.held().filter(|it| !self.leaks.looks_leaked(it)).collect();
        let uses =
            |uses: Vec<&Use>| uses.into_iter().map(|it| self.use_json(it)).collect::<Vec<_>>();
        json!({
            "address": self.address,
            "steps": self.steps,
            "start": self.moment(self.start),
            "end": self.moment(self.leaks.end),
            "requests": {
                "servedAtOnce": self.analysis.counts.at_once,
                "servedAfterWait": self.analysis.counts.after_wait,
                "failed": self.analysis.counts.failed,
                "waitingAtEnd": self.waiting,
                "withoutEnd": self.unended,
                "waitingAtMost": self.analysis.waiting_max,
            },
            "waits": quantiles(&self.waits),
            "uses": quantiles(&self.uses),
            "groups": groups.collect::<Vec<_>>(),
            "slowest": slowest.collect::<Vec<_>>(),
            "leaks": {
                "longerThan": self.leaks.limit.as_secs_f64(),
                "limitFrom": self.leaks.source,
                "leaked": uses(leaked),
                "inUseAtEnd": uses(held),
                "onlySlow": uses(self.leaks.slow().collect()),
            },
            "clears": self.analysis.clears.all.iter().map(|it| self.clear_json(it)).collect::<Vec<_>>(),
            "refusedInputs": self.analysis.refused,
            "lostInputs": self.analysis.lost,
        })
    }

    fn group_json(&self, group: &Group, members: &Members) -> Value {
        let outcome = if matches!(group, Group::Failed(..)) { "failed" } else { "served" };
        json!({
            "outcome": outcome,
            "reason": self.reason(group, members),
            "count": members.count,
            "first": self.moment(members.first),
            "last": self.moment(members.last),
            "longest": self.wait_json(&members.longest),
            "cause": self.cause(group, members),
            "follows": self.followed(group, members).map(|it| self.reason_json(&it)),
        })
    }

    fn wait_json(&self, wait: &Wait) -> Value {
        let (outcome, connection) = match &wait.outcome {
            Outcome::Served(number) => ("served", Some(*number)),
            Outcome::Failed(failure) => (failure.word(), None),
            Outcome::Waiting => ("waits", None),
        };
        json!({
            "request": wait.waiter.0,
            "place": wait.place.as_deref(),
            "from": self.moment(wait.asked),
            "step": wait.asked_step,
            "waited": wait.duration().as_secs_f64(),
            "ahead": wait.ahead,
            "outcome": outcome,
            "connectionId": connection,
            "limit": wait.limit.map(|limit| limit.as_secs_f64()),
            "inTheWay": wait.in_the_way(),
        })
    }

    fn use_json(&self, it: &Use) -> Value {
        json!({
            "connectionId": it.connection,
            "request": it.holder.map(|holder| holder.0),
            "place": it.place.as_deref(),
            "from": self.moment(it.since),
            "step": it.step,
            "held": it.held(self.leaks.end).as_secs_f64(),
            "reported": it.reported.map(|at| self.moment(at)),
            "checkedIn": it.until.map(|(at, _)| self.moment(at)),
        })
    }

    fn clear_json(&self, clear: &Clear) -> Value {
        json!({
            "number": clear.number,
            "at": self.moment(clear.at),
            "step": clear.step,
            "cause": clear.cause,
            "because": clear.because.as_ref().map(|it| self.reason_json(it)),
            "interrupts": clear.interrupts,
            "serviceId": clear.service,
            "failedAfterWait": clear.cleared.count,
            "failedAtOnce": clear.refused,
            "interrupted": clear.interrupted.count,
            "closed": clear.closed.count,
            "ready": clear.ready.map(|at| self.moment(at)),
            "established": clear.established,
        })
    }

    fn reason_json(&self, reason: &Reason) -> Value {
        json!({ "at": self.moment(reason.at), "change": reason.text })
    }

    /// Seconds since the origin, and the wall-clock time if there is one.
    fn moment(&self, at: Instant) -> Value {
        match self.clock.iso(at) {
            Some(time) => json!({ "at": seconds(at), "time": time }),
            None => json!({ "at": seconds(at) }),
        }
    }
}

fn quantiles(quantiles: &Quantiles) -> Value {
    let at = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    json!({
        "median": at(quantiles.median()),
        "p99": at(quantiles.at(99)),
        "longest": at(quantiles.longest()),
    })
}
