//! Pools of an endpoint, as this shell has them.

use bson::rawdoc;
use cenote_check::EventGuard;
use cenote_tokio::{Builder, Connector, Pool, Tokio};

use crate::world::{Events, subscriber};

/// A ready pool, and everything that it told.
pub(crate) fn pool(uri: &str) -> (Pool, Events) {
    let (subscriber, events) = subscriber();
    let builder = Pool::builder(uri).expect("a connection string");
    let pool = builder.on_event(move |told| subscriber(&told.event, &told.address)).build();
    let pool = pool.expect("good options");
    pool.ready();
    (pool, events)
}

pub(crate) async fn ping(pool: &Pool) -> bool {
    let mut connection = pool.check_out().await.expect("a connection");
    let reply = connection.command("admin", &rawdoc! { "ping": 1 }).await;
    reply.expect("a reply").get_f64("ok").is_ok_and(|ok| ok == 1.0)
}

/// A builder of a pool whose events keep the rules.
pub(crate) fn checked<C: Connector<Tokio>>(builder: Builder<C>) -> Builder<C> {
    let guard = EventGuard::new();
    builder.on_event(move |told| guard.hear(&told.event, &told.address))
}
