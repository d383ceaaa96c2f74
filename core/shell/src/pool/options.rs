//! The options of a running pool.

use std::sync::Arc;

use cenote_core::pool::{Input, InvalidOptions, PoolOptions};

use super::driver::PoolDriver;
use crate::connection::Connector;
use crate::runtime::{Runtime, platform};

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// The options as they were set.
    #[must_use]
    pub fn options(&self) -> PoolOptions {
        self.lock().state.options().clone()
    }

    /// Changes options of the running pool.
    ///
    /// # Errors
    ///
    /// Options that contradict each other; nothing changes then.
    ///
    /// # Panics
    ///
    /// When `loadBalanced` changes.
    pub fn set_options(self: &Arc<Self>, options: PoolOptions) -> Result<(), InvalidOptions> {
        options.validate()?;
        let options = platform::with_jitter_seed_from_os(options);
        let options = self.leak_detector.with_default_threshold(options);
        self.leak_detector.set_options(&options);
        self.feed(Input::SetOptions { options: Box::new(options) });
        Ok(())
    }
}
