use std::sync::Arc;
use std::time::Duration;

use cenote_core::error::ConnectionError;
use cenote_core::uri::ConnectionString;
use cenote_shell::builder::{BuiltPool, FromUri, PoolPlan};
use cenote_shell::trace;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;

pub use cenote_shell::builder::BuildError;

use crate::connection::MongoConnector;
use crate::connector::Connector;
use crate::desk::Desk;
use crate::event::{PoolEvent, Subscribers};
use crate::pool::Pool;
use crate::shared::{Audience, Shared};

/// Makes a [`Pool`].
///
/// Its `build` panics outside of a tokio runtime, or in one without time: connections are opened on
/// that one, whoever asks for them. Who is told of events is told on the thread of whoever uses the
/// pool, or on one of the runtime's.
pub type Builder<K> = cenote_shell::builder::Builder<Pool<K>>;

impl<K: Connector> BuiltPool for Pool<K> {
    type Connector = K;
    type EventSender = UnboundedSender<PoolEvent>;

    fn build(mut plan: PoolPlan<K>) -> Result<Self, BuildError> {
        // Panics where there is no time, here and not in the pool's timer when something is due.
        drop(tokio::time::sleep(Duration::ZERO));
        let begun = plan.begin(concat!("cenote-tokio ", env!("CARGO_PKG_VERSION")))?;
        let (state, first, traces) = begun;
        let measured = plan.measure(|| tokio::time::Instant::now().into_std());
        let PoolPlan { address, connector, subscribers, log, watcher, overseer, .. } = plan;
        let subscribers = Subscribers::new(subscribers, log);
        let audience = Audience { subscribers, watcher, overseer, traces };
        let (desk, runtime) = (Desk::new(state, first), Handle::current());
        let shared = Shared::new(Arc::new(address), connector, audience, runtime, desk);
        trace::watch(&shared);
        let pool = Arc::downgrade(&shared);
        measured.observe(move || Some(pool.upgrade()?.snapshot()));
        Ok(Self::start(shared))
    }

    fn send(sender: &UnboundedSender<PoolEvent>, event: PoolEvent) {
        drop(sender.send(event));
    }
}

impl FromUri for MongoConnector {
    fn from_uri(uri: &ConnectionString) -> Result<Self, ConnectionError> {
        Self::new(uri)
    }
}
