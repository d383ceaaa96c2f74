//! The whole of a state but for its payloads, as plain data: from here a replay can begin.

use alloc::vec::Vec;

use super::action::PoolTypes;
use super::connections::{Connection, Doing};
use super::id::{ConnId, ServiceId, WaiterId};
use super::input::Purpose;
use super::lists::List;
use super::options::PoolOptions;
use super::state::{PoolState, Status};
use super::time::Instant;
use super::wait_queue::Summary;

/// Everything that a pool remembers, except payloads.
///
/// Taken with [`PoolState::image`] or [`PoolState::image_into`], turned back into a machine with
/// [`PoolState::restore`]. The restored machine has the same
/// [fingerprint](PoolState::fingerprint), and the same inputs have the same consequences.
///
/// ```
/// use cenote_core::pool::{NoPayload, Input, Instant, PoolOptions, PoolState};
///
/// let mut pool = PoolState::<NoPayload>::new(Instant::ORIGIN, PoolOptions::default(), &mut |_| {})?;
/// pool.handle(Instant::from_nanos(5), Input::Ready, &mut |_| {})?;
/// let restored = PoolState::<NoPayload>::restore(&pool.image(), &mut ())?;
/// assert_eq!(restored.fingerprint(), pool.fingerprint());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolCheckpoint {
    /// The options as they were set last.
    pub options: PoolOptions,
    /// The state (PS-15 … PS-17).
    pub status: Status,
    /// The pool's generation.
    pub generation: u64,
    /// Whether the pool as a whole was ever cleared. What with is a payload.
    pub was_cleared: bool,
    /// Until when the minimum is left alone after a failed establishment (T-37).
    pub populate_after: Option<Instant>,
    /// Connections up to this number were inherited through a fork.
    pub inherited: u64,
    /// The id of the last request; `None` before the first.
    pub last_waiter: Option<WaiterId>,
    /// The number of the connection that was created last; 0 before the first.
    pub last_connection: u64,
    /// The time of the last input.
    pub now: Instant,
    /// How often `now` ran backwards.
    pub clock_regressions: u64,
    /// The services behind a load balancer, in the order of their ids.
    pub services: Vec<ServiceImage>,
    /// The connections: pending, available, in use, and in use and reported, each kind in its
    /// order of time.
    pub connections: Vec<ConnectionImage>,
    /// The slots without a connection, in the order in which they will be used.
    pub free_slots: Vec<u32>,
    /// The requests without an outcome, in the order of their ids: first those that own a pending
    /// connection, then those that wait.
    pub requests: Vec<RequestImage>,
}

/// A service behind a load balancer, in a [`PoolCheckpoint`]; it has at least one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceImage {
    /// Its id.
    pub id: ServiceId,
    /// Its generation.
    pub generation: u64,
    /// Whether it was ever cleared.
    pub was_cleared: bool,
}

/// One connection in a [`PoolCheckpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionImage {
    /// Its id.
    pub id: ConnId,
    /// The generation of the pool, or of its service, to which it belongs.
    pub generation: u64,
    /// Its service, in load-balanced mode and from its hello on.
    pub service: Option<ServiceId>,
    /// Since when it exists.
    pub created: Instant,
    /// The end of its lifetime, from its establishment on and if there is one.
    pub expires: Option<Instant>,
    /// Whether that end came while it was in use, so that no timer waits for it any more.
    pub expiry_met: bool,
    /// What it does.
    pub state: ImagedState,
}

/// What a connection does, in a [`PoolCheckpoint`] (CO-13 … CO-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImagedState {
    /// Being established; the request that owns it, if there is one, names it.
    Pending {
        /// Whether hello is done, as far as the shell told.
        handshaken: bool,
    },
    /// Waiting in the pool.
    Available {
        /// Since when.
        since: Instant,
    },
    /// Checked out.
    InUse {
        /// Since when.
        since: Instant,
        /// What for.
        purpose: Purpose,
        /// Whether it was interrupted and only waits to be checked in.
        interrupted: bool,
        /// Whether it was reported as held too long.
        reported: bool,
    },
}

/// One request without an outcome, in a [`PoolCheckpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestImage {
    /// Its id.
    pub id: WaiterId,
    /// Since when it waits.
    pub started: Instant,
    /// When it stops waiting, if it does.
    pub deadline: Option<Instant>,
    /// Whether its caller set that deadline, so that it covers establishment, too (CS-02).
    pub deadline_is_callers: bool,
    /// What it was asked for.
    pub purpose: Purpose,
    /// The pending connection that was started for it; `None` while it waits in the queue.
    pub owns: Option<ConnId>,
}

/// An empty image, to be filled by [`PoolState::image_into`]: that of no pool in particular.
impl Default for PoolCheckpoint {
    fn default() -> Self {
        Self {
            options: PoolOptions::default(),
            status: Status::Paused,
            generation: 0,
            was_cleared: false,
            populate_after: None,
            inherited: 0,
            last_waiter: None,
            last_connection: 0,
            now: Instant::ORIGIN,
            clock_regressions: 0,
            services: Vec::new(),
            connections: Vec::new(),
            free_slots: Vec::new(),
            requests: Vec::new(),
        }
    }
}

impl<S: PoolTypes> PoolState<S> {
    /// Everything but the payloads, as plain data. Costs as much as the pool is large, and
    /// allocates as much.
    pub fn image(&self) -> PoolCheckpoint {
        let mut image = PoolCheckpoint::default();
        self.image_into(&mut image);
        image
    }

    /// The same into an image whose memory is used again: allocates only where the pool is larger
    /// than it was.
    pub fn image_into(&self, image: &mut PoolCheckpoint) {
        image.options.clone_from(&self.options);
        image.status = self.status;
        image.generation = self.generation;
        image.was_cleared = self.cleared_by.is_some();
        image.populate_after = self.populate_after;
        image.inherited = self.inherited;
        image.last_waiter = self.last_waiter;
        image.last_connection = self.connections.last_number();
        image.now = self.now;
        image.clock_regressions = self.clock_regressions;
        image.services.clear();
        image.services.extend(self.services.iter().map(|(id, generation, _)| ServiceImage {
            id,
            generation,
            was_cleared: self.services.cleared_by(id).is_some(),
        }));
        image.connections.clear();
        for list in List::ALL {
            let connections = self.connections.iter(list);
            image.connections.extend(connections.map(|(id, at)| image_of(id, list, at)));
        }
        image.free_slots.clear();
        image.free_slots.extend(self.connections.free_slots());
        image.requests.clear();
        let owners = self.owners.iter();
        image.requests.extend(owners.map(|(request, id)| request.summary().image(Some(*id))));
        image.requests.extend(self.queue.iter().map(|request| request.image(None)));
    }
}

fn image_of<C>(id: ConnId, list: List, connection: &Connection<C>) -> ConnectionImage {
    let state = match &connection.doing {
        Doing::Pending { owner: _, handshaken } => ImagedState::Pending { handshaken: *handshaken },
        Doing::Available { since, conn: _ } => ImagedState::Available { since: *since },
        &Doing::InUse { since, purpose, interrupted } => {
            let reported = list == List::Overdue;
            ImagedState::InUse { since, purpose, interrupted, reported }
        }
    };
    ConnectionImage {
        id,
        generation: connection.generation,
        service: connection.service,
        created: connection.created,
        expires: connection.expires,
        expiry_met: connection.expiry_met,
        state,
    }
}

impl Summary {
    const fn image(self, owns: Option<ConnId>) -> RequestImage {
        let Self { id, started, deadline, deadline_is_callers, purpose } = self;
        RequestImage { id, started, deadline, deadline_is_callers, purpose, owns }
    }
}
