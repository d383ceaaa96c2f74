use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::pool::{ConnId, Input};

use super::driver::PoolDriver;
use crate::connection::Connector;
use crate::failure::{ClearRequest, ConnectionStatus, DeferredEffects, FailingPool};
use crate::runtime::Runtime;

impl<R: Runtime, K: Connector<R>> FailingPool for PoolDriver<R, K> {
    fn address(&self) -> &ServerAddress {
        self.address()
    }

    fn connection_status(&self, id: ConnId) -> ConnectionStatus {
        ConnectionStatus::of(&self.lock().state, id)
    }

    fn clear(
        self: Arc<Self>,
        id: ConnId,
        judge: &dyn Fn(ConnectionStatus) -> Option<ClearRequest>,
    ) -> Option<DeferredEffects> {
        let inner = self.lock();
        let ClearRequest { cause, interrupt, service } =
            judge(ConnectionStatus::of(&inner.state, id))?;
        Some(self.feed_locked_within(inner, Input::Clear { cause, interrupt, service }))
    }
}
