use std::sync::mpsc::Sender;

use cenote_shell::builder::{self, BuiltPool, PoolPlan};

use crate::event_loop::{EventLoop, Owner};
use crate::loop_thread::new_event_loop;
use crate::pool::Pool;
use crate::{BuildError, Connector, MongoConnector, PoolEvent};

/// Makes a [`Pool`] and the thread of its event loop; or, with [`PoolSource::new`](crate::PoolSource::new),
/// a pool in an application's own loop.
///
/// Subscribers run on the threads that use the pool, and on that of its event loop, which opens no
/// connections meanwhile.
///
/// ```no_run
/// use cenote_mio::{Builder, Pool};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let pool: Pool = Builder::from_uri("mongodb://db.example.com/?maxPoolSize=20")?
///     .map_options(|options| options.with_min_pool_size(2))
///     .on_event(|event| println!("{event}"))
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub type Builder<K = MongoConnector> = builder::Builder<Pool<K>>;

impl<K: Connector<EventLoop>> BuiltPool for Pool<K> {
    type Connector = K;
    type EventSender = Sender<PoolEvent>;

    fn build(plan: PoolPlan<K>) -> Result<Self, BuildError> {
        let (event_loop, poll) = new_event_loop(Owner::Pool)?;
        let pool = Self::start(plan, event_loop.clone())?;
        pool.thread().start(event_loop, poll)?;
        Ok(pool)
    }

    fn send(sender: &Sender<PoolEvent>, event: PoolEvent) {
        drop(sender.send(event));
    }
}
