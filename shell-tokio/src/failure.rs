//! Connections that fail: [`cenote_shell::failure`].

use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::pool::{ConnId, Input};
use cenote_shell::failure::{self, ClearRequest, ConnectionStatus, DeferredEffects, FailingPool};

pub use cenote_shell::failure::Failure;
pub(crate) use cenote_shell::failure::FailureHandler;

use crate::connector::Connector;
use crate::shared::Shared;

/// Shows a failure to whoever watches the server, if anybody does. Never under the lock.
pub(crate) fn show<K: Connector>(shared: &Arc<Shared<K>>, id: ConnId, error: &ConnectionError) {
    failure::show(shared.watcher.as_ref(), shared, id, error);
}

impl<K: Connector> FailingPool for Shared<K> {
    fn address(&self) -> &ServerAddress {
        &self.address
    }

    fn standing(&self, id: ConnId) -> ConnectionStatus {
        ConnectionStatus::of(&self.lock().state, id)
    }

    fn clear(
        self: Arc<Self>,
        id: ConnId,
        judge: &dyn Fn(ConnectionStatus) -> Option<ClearRequest>,
    ) -> Option<DeferredEffects> {
        let desk = self.lock();
        let ClearRequest { cause, interrupt, service } =
            judge(ConnectionStatus::of(&desk.state, id))?;
        let fed = self.feed_locked(desk, Input::Clear { cause, interrupt, service });
        Some(Box::new(move || fed.settle()))
    }
}
