//! How [`Pool::warm_up`](crate::pool::Pool::warm_up) makes connections, and when it stops. It holds what it
//! gets until the end, so that it must not wait for another warm-up that does the same.

use cenote_core::pool::Snapshot;

/// How many more connections to check out now, of those that are still `wanted`, while `waiting` check-outs
/// have no answer yet: not more than can be established at once, so that check-outs of others are not queued
/// behind all of them, and none where no connection is available and there is no room for another one.
#[must_use]
pub fn to_ask(pool: &Snapshot, wanted: u32, waiting: u32) -> u32 {
    let room = pool.max_pool_size.map_or(u32::MAX, |max| max.saturating_sub(pool.total));
    let at_once = pool.max_connecting.saturating_sub(waiting);
    wanted.min(room.saturating_add(pool.available)).min(at_once)
}

/// Whether waiting is in vain: everything is in use, nothing is being established and no late reply is being read
/// for a request, so that a connection could only come from another user, possibly another warm-up that waits. To be
/// checked before each wait.
#[must_use]
pub fn is_in_vain(pool: &Snapshot) -> bool {
    pool.pending == 0 && pool.owners == 0 && pool.max_pool_size == Some(pool.in_use)
}
