use std::sync::Arc;

use cenote_core::client::{Candidate, ServerStatus, is_hopeless};

use super::watch::Watch;
use crate::drainer::Drainer;
use crate::event_loop::EventLoop;
use crate::pool::Pool;

/// One host: its pool, and who watches it.
pub(super) struct Server {
    pub(super) pool: Pool,
    pub(super) watching: Watching,
}

pub(super) enum Watching {
    Monitor(Arc<Watch>),
    /// There is nothing to watch (LB-40).
    LoadBalancer,
}

impl Server {
    pub(super) fn status(&self) -> ServerStatus {
        let description = self.watch().map(|watch| watch.description());
        let address = Arc::clone(&self.pool.shared().address);
        ServerStatus::new(address, description, self.pool.snapshot())
    }

    /// What it is now.
    pub(super) fn candidate(&self) -> Candidate {
        self.watch().map_or(Candidate::LOAD_BALANCER, |watch| watch.candidate())
    }

    pub(super) fn is_hopeless(&self) -> bool {
        self.watch().is_some_and(|watch| is_hopeless(&watch.description()))
    }

    pub(super) fn request_check(&self) {
        self.watch().into_iter().for_each(Watch::request_check);
    }

    pub(super) fn watch(&self) -> Option<&Arc<Watch>> {
        match &self.watching {
            Watching::Monitor(watch) => Some(watch),
            Watching::LoadBalancer => None,
        }
    }

    /// Whether this thread is telling somebody of the server or its pool.
    pub(super) fn is_telling(&self) -> bool {
        Drainer::is_here(self.pool.shared()) || self.watch().is_some_and(Drainer::is_here)
    }

    /// Nobody turns this loop any more.
    pub(super) fn end_loop(&self, event_loop: &EventLoop) {
        self.watch().into_iter().for_each(|watch| watch.end_loop());
        self.pool.shared().end_loop(event_loop);
    }
}
