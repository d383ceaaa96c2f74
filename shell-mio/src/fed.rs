//! What is fed under somebody else's lock.

use std::sync::{Arc, MutexGuard};

use cenote_core::pool::Input;

use crate::connector::Connector;
use crate::desk::{Desk, Mio};
use crate::shared::Shared;
use crate::woken::Woken;

/// An input whose consequences wait for another lock to be given back.
#[must_use]
pub(crate) struct Fed<K: Connector> {
    shared: Arc<Shared<K>>,
    is_timed: bool,
    woken: Woken,
}

impl<K: Connector> Fed<K> {
    pub(crate) fn settle(self) {
        let Self { shared, is_timed, woken } = self;
        shared.settle(shared.lock(), is_timed, woken);
    }
}

impl<K: Connector> Shared<K> {
    /// Feeds one input under a lock of the caller's: nothing is told or done yet, and nobody woken,
    /// before the caller has given that lock back and calls [`Fed::settle`]. So a server's
    /// description and its pool change at once (SD-04, SD-05).
    pub(crate) fn feed_within(self: &Arc<Self>, input: Input<Mio<K>>) -> Fed<K> {
        self.feed_locked(self.lock(), input)
    }

    /// As [`feed_within`](Self::feed_within), for who has this lock, too.
    pub(crate) fn feed_locked(
        self: &Arc<Self>,
        mut desk: MutexGuard<'_, Desk<K>>,
        input: Input<Mio<K>>,
    ) -> Fed<K> {
        let moment = self.moment(&desk, false);
        let mut woken = Woken::default();
        desk.handle(moment.now, input, moment.wants_events, &mut woken);
        Fed { shared: Arc::clone(self), is_timed: moment.is_timed, woken }
    }
}
