//! What a pool remembers.

pub(in crate::pool) mod connections;
pub(in crate::pool) mod demand;
pub(in crate::pool) mod lists;
pub(in crate::pool) mod pacing;
pub(in crate::pool) mod pending_responses;
pub(in crate::pool) mod request;
pub(in crate::pool) mod services;
pub(in crate::pool) mod verify;
pub(in crate::pool) mod wait_queue;

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::event::Event;
use super::id::{ConnId, WaiterId};
use super::options::{InvalidOptions, PoolOptions, Settings};
use super::sink::{ActionSink, emit};
use super::status::Status;
use super::time::Instant;
use super::types::PoolTypes;
use connections::Connections;
use demand::Demand;
use lists::List;
use pacing::Pacing;
use pending_responses::PendingResponses;
use request::Request;
use services::Services;
use wait_queue::WaitQueue;

/// MongoDB's connection pool as a state machine.
///
/// Inputs go in through [`handle`](Self::handle) with the time at which they happen; actions come
/// out through a sink, in one ordered stream that is complete when `handle` returns. The same
/// options, times and inputs always give the same actions, whatever the payloads are: there is no
/// clock, no entropy, no I/O, no thread, no lock and no global inside.
///
/// * [`new`](Self::new) or [`new_ready`](Self::new_ready), and [`handle`](Self::handle) take part in the life of the pool;
/// * [`next_deadline`](Self::next_deadline) and [`needs_now`](Self::needs_now) tell what the shell
///   has to provide;
/// * [`snapshot`](Self::snapshot), [`connections`](Self::connections), [`waiters`](Self::waiters),
///   [`services`](Self::services), [`is_stale`](Self::is_stale) and the like let one look;
/// * [`fingerprint`](Self::fingerprint) and [`check_invariants`](Self::check_invariants) are for
///   tests and replay.
///
/// Nothing here blocks. Once the pool has been as large and as busy as it gets, nothing allocates,
/// except that requests which time out share one allocation for the snapshot in their error.
// PS-14
pub struct PoolState<S: PoolTypes> {
    pub(in crate::pool) options: PoolOptions,
    pub(in crate::pool) settings: Settings,
    pub(in crate::pool) status: Status,
    /// Of the pool; in load-balanced mode it stays 0 but for forks, and services have their own.
    pub(in crate::pool) generation: u64,
    pub(in crate::pool) services: Services<S::Cause>,
    pub(in crate::pool) connections: Connections<S::Conn>,
    pub(in crate::pool) queue: WaitQueue<S::Waiter>,
    pub(in crate::pool) pending_responses: PendingResponses<S::Cause>,
    /// The requests that own a pending or draining connection, in the order in which they came.
    pub(in crate::pool) owners: Vec<(Request<S::Waiter>, ConnId)>,
    /// When the first of those that own a pending connection may wait no longer.
    pub(in crate::pool) owners_due: Option<Instant>,
    /// As in traces before version 3: the shell ended an establishment with its caller's time, and one that was stale went
    /// on.
    pub(in crate::pool) old_rules: bool,
    /// What the most recent clear of the whole pool was fed with.
    pub(in crate::pool) cleared_by: Option<S::Cause>,
    /// Until when the minimum is left alone after a failed establishment.
    pub(in crate::pool) populate_after: Option<Instant>,
    /// Since when the oldest wait is not below the target of shedding. `None` if it is, if none waits, or without
    /// shedding.
    pub(in crate::pool) standing_since: Option<Instant>,
    /// What is known of establishing and using connections, for a pool that decides when to establish them.
    pub(in crate::pool) pacing: Pacing,
    /// What a predictive minimum follows.
    pub(in crate::pool) demand: Option<Demand>,
    /// Connections up to this number were inherited through a fork.
    pub(in crate::pool) inherited: u64,
    /// Pending connections up to this number were reported as unanswered.
    pub(in crate::pool) reported: u64,
    pub(in crate::pool) last_waiter: Option<WaiterId>,
    pub(in crate::pool) now: Instant,
    pub(in crate::pool) clock_regressions: u64,
}

impl<S: PoolTypes> PoolState<S> {
    /// Makes a pool: paused, in generation 0, empty, and emits `ConnectionPoolCreated`.
    ///
    /// # Errors
    ///
    /// When no pool can work with these options; then nothing is emitted.
    // EV-10, EV-24, PCR-02, PCR-04, PCR-05
    pub fn new(
        now: Instant,
        options: PoolOptions,
        out: &mut impl ActionSink<S>,
    ) -> Result<Self, InvalidOptions> {
        let settings = Settings::new(&options)?;
        emit(out, || Event::ConnectionPoolCreated { options: Box::new(options.clone()) });
        Ok(Self {
            options,
            settings,
            status: Status::Paused,
            generation: 0,
            services: Services::new(),
            connections: Connections::new(),
            queue: WaitQueue::new(),
            pending_responses: PendingResponses::new(),
            owners: Vec::new(),
            owners_due: None,
            old_rules: false,
            cleared_by: None,
            populate_after: None,
            standing_since: None,
            pacing: Pacing::default(),
            demand: settings.predicts.then(|| Demand::new(now)),
            inherited: 0,
            reported: 0,
            last_waiter: None,
            now,
            clock_regressions: 0,
        })
    }

    /// Moves time forward, never back.
    // DU-01
    #[inline]
    pub(in crate::pool) fn advance(&mut self, now: Instant) {
        if now < self.now {
            self.clock_regressions += 1;
        } else {
            if self.demand.is_some() {
                self.observe_demand(now);
            }
            self.now = now;
        }
    }

    /// Until `now` a connection was needed for each use, and for each request without an outcome.
    #[inline(never)]
    fn observe_demand(&mut self, now: Instant) {
        let in_use = self.connections.in_use() - self.connections.len(List::Draining);
        let needed = in_use as usize + self.queue.len() + self.owners.len();
        if let Some(demand) = &mut self.demand {
            demand.observe(needed as u64, self.now, now);
        }
        self.follow_demand();
    }

    /// Keeps as many connections ahead of need as `minPoolSize` says, or as is predicted if that is more.
    pub(in crate::pool) fn follow_demand(&mut self) {
        self.settings.min_total = self.predicted_minimum(&self.settings);
    }

    pub(in crate::pool) fn predicted_minimum(&self, settings: &Settings) -> u32 {
        let min = self.options.min_pool_size.unwrap_or(0).min(Settings::UNLIMITED);
        self.demand.map_or(min, |demand| demand.predicted.clamp(min, settings.max_total))
    }
}

/// Where the payloads can be copied, as in exploration and simulation, so can the whole machine:
/// the copy goes its own way from here on. By hand, so that it does not ask for `Clone` of the
/// shell.
impl<S: PoolTypes> Clone for PoolState<S>
where
    S::Conn: Clone,
    S::Waiter: Clone,
{
    fn clone(&self) -> Self {
        let Self {
            options,
            settings,
            status,
            generation,
            services,
            connections,
            queue,
            pending_responses,
            owners,
            owners_due,
            old_rules,
            cleared_by,
            populate_after,
            standing_since,
            pacing,
            demand,
            inherited,
            reported,
            last_waiter,
            now,
            clock_regressions,
        } = self;
        Self {
            options: options.clone(),
            settings: *settings,
            status: *status,
            generation: *generation,
            services: services.clone(),
            connections: connections.clone(),
            queue: queue.clone(),
            pending_responses: pending_responses.clone(),
            owners: owners.clone(),
            owners_due: *owners_due,
            old_rules: *old_rules,
            cleared_by: cleared_by.clone(),
            populate_after: *populate_after,
            standing_since: *standing_since,
            pacing: *pacing,
            demand: *demand,
            inherited: *inherited,
            reported: *reported,
            last_waiter: *last_waiter,
            now: *now,
            clock_regressions: *clock_regressions,
        }
    }
}
