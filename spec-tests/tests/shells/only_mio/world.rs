//! Pools of an endpoint, as this shell has them.

use bson::rawdoc;
use cenote_check::EventGuard;
use cenote_core::error::ConnectionError;
use cenote_core::pool::CheckOutError;
use cenote_mio::{Builder, Connector, EventLoop, Pool};

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

pub(crate) fn ping(pool: &Pool) -> bool {
    let mut connection = pool.check_out().expect("a connection");
    let reply = connection.command("admin", &rawdoc! { "ping": 1 });
    reply.expect("a reply").get_f64("ok").is_ok_and(|ok| ok == 1.0)
}

/// Why no connection can be established.
pub(crate) fn refusal(pool: &Pool) -> ConnectionError {
    let error = pool.check_out().expect_err("it fails");
    let CheckOutError::EstablishFailed { cause } = error.error() else { panic!("{error}") };
    cause.clone()
}

/// A builder of a pool whose events keep the rules.
pub(crate) fn checked<C: Connector<EventLoop>>(builder: Builder<C>) -> Builder<C> {
    let guard = EventGuard::new();
    builder.on_event(move |told| guard.hear(&told.event, &told.address))
}
