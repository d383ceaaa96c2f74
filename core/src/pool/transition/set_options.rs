//! Other options while the pool runs.

use crate::pool::event::CloseReason;
use crate::pool::options::{PoolOptions, Settings};
use crate::pool::sink::ActionSink;
use crate::pool::state::PoolState;
use crate::pool::state::demand::Demand;
use crate::pool::state::lists::List;
use crate::pool::state::pacing::Pacing;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Applies other options. Maintenance that runs from now on begins with what is stale, which it
    /// has left alone so far. A policy that is switched on or off begins with what a new pool knows.
    /// Without pending responses, what is pending one is closed. A smaller maximum closes what is
    /// available above it, oldest first, beginning with what has to receive a late reply; a larger one
    /// is used by the requests that wait and by the minimum right after this.
    // BG-10
    pub(super) fn set_options(&mut self, options: PoolOptions, out: &mut impl ActionSink<S>) {
        let settings = Settings::new(&options).expect("permitted only if valid");
        self.options = options;
        let old = core::mem::replace(&mut self.settings, settings);
        let policies = |settings: &Settings| (settings.adapts, settings.backoff.is_some());
        if policies(&old) != policies(&self.settings) {
            self.pacing = Pacing::default();
        }
        if old.predicts != self.settings.predicts {
            self.demand = self.settings.predicts.then(|| Demand::new(self.now));
        }
        self.follow_demand();
        self.prune_stale(out);
        if !self.settings.pending_response {
            self.close_pending_responses(out);
        }
        for list in [List::PendingResponse, List::DrainingUnowned, List::Available] {
            while self.has_surplus() {
                let Some(id) = self.connections.first(list) else { break };
                let reason = self.perished(id).unwrap_or(CloseReason::Idle);
                if list == List::DrainingUnowned {
                    self.abort_drain(id, reason, None, out);
                } else {
                    self.close_available(id, reason, None, out);
                }
            }
        }
    }
}
