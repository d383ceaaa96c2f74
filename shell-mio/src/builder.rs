use std::sync::Arc;
use std::sync::mpsc::Sender;

use cenote_core::error::ConnectionError;
use cenote_core::uri::ConnectionString;
use cenote_shell::builder::{BuiltPool, FromUri, PoolPlan};
use cenote_shell::trace;

pub use cenote_shell::builder::BuildError;

use crate::connection::MongoConnector;
use crate::connector::Connector;
use crate::desk::Desk;
use crate::event::{PoolEvent, Subscribers};
use crate::event_loop::EventLoop;
use crate::pool::Pool;
use crate::shared::{Audience, Shared};
use crate::{thread, timer};

/// Makes a [`Pool`], and the thread that turns its event loop; or, with
/// [`PoolSource::new`](crate::PoolSource::new), a pool in an application's own loop.
///
/// Who is told of events is told on the thread of whoever uses the pool, or of its loop. On the
/// loop's thread, nothing is opened until it is done.
pub type Builder<K> = cenote_shell::builder::Builder<Pool<K>>;

impl<K: Connector> BuiltPool for Pool<K> {
    type Connector = K;
    type EventSender = Sender<PoolEvent>;

    fn build(plan: PoolPlan<K>) -> Result<Self, BuildError> {
        let (event_loop, poll) = thread::event_loop()?;
        let pool = Self::new(build_on(&event_loop, plan)?);
        // If there is none, the pool goes as it came.
        pool.shared().start_thread(event_loop, poll)?;
        Ok(pool)
    }

    fn send(sender: &Sender<PoolEvent>, event: PoolEvent) {
        drop(sender.send(event));
    }
}

/// Makes the pool; somebody else turns the loop.
pub(crate) fn build_on<K: Connector>(
    event_loop: &EventLoop,
    mut plan: PoolPlan<K>,
) -> Result<Arc<Shared<K>>, BuildError> {
    let begun = plan.begin(concat!("cenote-mio ", env!("CARGO_PKG_VERSION")))?;
    let (state, first, traces) = begun;
    let measured = plan.measure(std::time::Instant::now);
    let PoolPlan { address, connector, subscribers, log, watcher, overseer, .. } = plan;
    let subscribers = Subscribers::new(subscribers, log);
    let audience = Audience { subscribers, watcher, overseer, traces };
    let desk = Desk::new(state, first, event_loop.clone());
    let shared = Shared::new(Arc::new(address), connector, audience, desk);
    timer::start(&shared, event_loop);
    trace::watch(&shared);
    let pool = Arc::downgrade(&shared);
    measured.observe(move || Some(pool.upgrade()?.snapshot()));
    Ok(shared)
}

impl FromUri for MongoConnector {
    fn from_uri(uri: &ConnectionString) -> Result<Self, ConnectionError> {
        Self::new(uri)
    }
}
