//! One timer for the whole pool.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cenote_core::pool::Input;

use crate::connector::Connector;
use crate::event_loop::EventLoop;
use crate::shared::Shared;

/// How long the loop may wait for events: until a socket's time or the machine's has come. From now
/// on it is woken when that is too long.
pub(crate) fn next<K: Connector>(
    shared: &Arc<Shared<K>>,
    event_loop: &EventLoop,
) -> Option<Duration> {
    let sockets = event_loop.fall_asleep();
    // What is out of the clock's reach is never.
    let machine = shared.lock().armed.and_then(|armed| shared.time_of(armed));
    let at = sockets.into_iter().chain(machine).min()?;
    Some(at.saturating_duration_since(Instant::now()))
}

/// Feeds `Timer` if the machine asked for it.
pub(crate) fn fire<K: Connector>(shared: &Arc<Shared<K>>, event_loop: &EventLoop) {
    event_loop.in_turn(|| {
        let mut desk = shared.lock();
        if desk.armed.is_some_and(|armed| armed <= shared.now()) {
            // What is due after this is set anew by the input itself.
            desk.armed = None;
            shared.feed_under(desk, Input::Timer);
        }
    });
}
