//! Predictions and advice for programs.

use std::time::Duration;

use cenote_replay::what_if::{
    Advice, Change, Finding, Goal, Need, Outcome, Prediction, ServerLimit, Setting,
};
use serde_json::{Value, json};

use super::predict::Case;

impl Case {
    pub(super) fn predictions_as_json(&self, predictions: &[(&Change, Prediction)]) -> Value {
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

    pub(super) fn advice_as_json(&self, goal: Goal, advice: Option<&Advice>) -> Value {
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
