//! Where the time of establishments went.

use std::collections::BTreeMap;
use std::time::Duration;

use cenote_core::error::Stage;
use cenote_core::pool::{Action, Input, Instant};
use cenote_core::trace::StageRecord;

use super::statistics::{Quantiles, Sample};
use crate::step_reader::View;
use crate::text::span;

/// The stages of establishments, as far as they were recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Stages {
    /// The stage of each connection that is being established, and since when.
    present: BTreeMap<u64, (Stage, Instant)>,
    ended: BTreeMap<Stage, Sample<Duration>>,
}

impl Stages {
    /// Takes a step. Only what ends in a step that `counts` is counted.
    pub(super) fn add(&mut self, view: &View<'_>, counts: bool) {
        if view.step.lost_before.is_some() {
            self.present.clear();
        }
        let is_entered = |record: &&StageRecord| {
            record.failed.is_none() && view.holders.connections.contains_key(&record.connection)
        };
        for record in view.step.stages.iter().filter(is_entered) {
            let before = self.present.insert(record.connection, (record.stage, record.at));
            self.end(before, record.at, counts);
        }
        if let Input::EstablishSucceeded { id, .. } | Input::EstablishFailed { id, .. } =
            &view.step.input
        {
            let last = self.present.remove(&id.number());
            self.end(last, view.step.at, counts);
        }
        for action in view.actions {
            if let Action::AbortEstablish { id } = action {
                self.present.remove(&id.number());
            }
        }
    }

    fn end(&mut self, stage: Option<(Stage, Instant)>, now: Instant, counts: bool) {
        if let Some((stage, since)) = stage.filter(|_| counts) {
            self.ended.entry(stage).or_default().add(now.saturating_since(since));
        }
    }

    /// The median of each stage, in their order; `None` if none was recorded.
    pub(super) fn line(&self) -> Option<String> {
        let medians = self.ended.iter().filter_map(|(stage, sample)| {
            let median = Quantiles::of(sample.items().iter().copied()).median()?;
            Some(format!("{stage} {}", span(median)))
        });
        let medians: Vec<_> = medians.collect();
        (!medians.is_empty()).then(|| format!("{} at the median", medians.join(", ")))
    }
}
