//! Other options while the pool runs.

use crate::pool::event::CloseReason;
use crate::pool::options::{PoolOptions, Settings};
use crate::pool::sink::ActionSink;
use crate::pool::state::PoolState;
use crate::pool::state::lists::List;
use crate::pool::types::PoolTypes;

impl<S: PoolTypes> PoolState<S> {
    /// Applies other options. Maintenance that runs from now on begins with what is stale, which it
    /// has left alone so far. A smaller maximum closes what is available above it, oldest first; a
    /// larger one is used by the requests that wait and by the minimum right after this.
    // BG-10
    pub(super) fn set_options(&mut self, options: PoolOptions, out: &mut impl ActionSink<S>) {
        let settings = Settings::new(&options).expect("permitted only if valid");
        (self.options, self.settings) = (options, settings);
        self.prune_stale(out);
        while self.has_surplus() {
            let Some(id) = self.connections.first(List::Available) else { break };
            let reason = self.perished(id).unwrap_or(CloseReason::Idle);
            self.close_available(id, reason, None, out);
        }
    }
}
