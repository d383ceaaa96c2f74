//! How connections are made before they are needed: what `Pool::warm_up` asks for, and when it stops.
//! It holds what it gets until the end, so that it must not wait for somebody who does the same.

use cenote_core::pool::Snapshot;

/// How many connections more to ask for now, of those that are still `wanted`, while `asking` requests
/// have no answer yet. Not more than can be established at once, so that others who ask meanwhile are not
/// behind all of these; and none where there is neither one that is available nor room for another one.
#[must_use]
pub fn to_ask(pool: &Snapshot, wanted: u32, asking: u32) -> u32 {
    let room = pool.max_pool_size.map_or(u32::MAX, |max| max.saturating_sub(pool.total));
    let at_once = pool.max_connecting.saturating_sub(asking);
    wanted.min(room.saturating_add(pool.available)).min(at_once)
}

/// Everything is in use, and nothing on its way: what was asked for and is not there would only come
/// from somebody else, who may be warming up and waiting, too. To be asked before anything is waited for.
#[must_use]
pub fn is_in_vain(pool: &Snapshot) -> bool {
    pool.pending == 0 && pool.max_pool_size == Some(pool.in_use)
}
