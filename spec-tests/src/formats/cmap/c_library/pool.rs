//! The pool: it owns the time, and the server's replies on their way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cenote_c::checked;
use cenote_c::input::{
    cenote_cancel, cenote_check_in, cenote_check_in_errored, cenote_check_out, cenote_close,
    cenote_ready, cenote_reset_after_fork, cenote_timer,
};
use cenote_c::options::Options;
use cenote_c::pool::{NEVER, Pool, cenote_pool_free};
use cenote_c::status::Status;
use cenote_conform::{
    CheckOutRequest, Counts, Log, LogMessage, OperationError, Progress, Recorder, Reply, Setup,
    SimulatedServer,
};
use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{PoolOptions, ServiceId};

use super::convert::nanos;

/// A connection that is checked out.
pub(in crate::formats::cmap) struct CConnection {
    pub(super) id: u64,
    pub(super) socket: usize,
}

/// A pool of the library, and all that a driver has around it.
pub(in crate::formats::cmap) struct CPool {
    pub(super) handle: *mut Pool,
    pub(super) address: Arc<ServerAddress>,
    pub(super) now: u64,
    pub(super) options: PoolOptions,
    pub(super) server: SimulatedServer,
    /// Replies of the server, in the order in which they arrive.
    pub(super) replies: BTreeMap<(u64, u64), (u64, Result<(), ConnectionError>)>,
    pub(super) hellos: u64,
    check_outs: u64,
    /// By the number that C gets.
    pub(super) waiters: BTreeMap<usize, Reply<CConnection>>,
    /// By the number that C gets.
    pub(super) causes: Vec<ConnectionError>,
    pub(super) interrupted: BTreeSet<u64>,
    /// Sockets that are open, by the number that C gets.
    pub(super) sockets: BTreeSet<usize>,
    pub(super) log: Option<Log>,
    pub(super) messages: Vec<LogMessage>,
    pub(super) recorder: Recorder,
}

impl CPool {
    pub(super) fn new(setup: Setup) -> Result<Self, String> {
        let max_log_text = setup.log.as_ref().map(|log| log.settings().max_document_length);
        let mut options = Options::of_core(&setup.options);
        if let Some(length) = max_log_text {
            options.max_log_text = length as i64;
        }
        let address = setup.address();
        let handle = checked::pool_new(&address.to_string(), &options, 0);
        let mut pool = Self {
            handle: handle.map_err(|_| checked::last_error())?,
            address: Arc::new(address),
            now: 0,
            server: SimulatedServer::new(&setup),
            options: setup.options,
            replies: BTreeMap::new(),
            hellos: 0,
            check_outs: 0,
            waiters: BTreeMap::new(),
            causes: Vec::new(),
            interrupted: BTreeSet::new(),
            sockets: BTreeSet::new(),
            log: setup.log,
            messages: Vec::new(),
            recorder: setup.recorder,
        };
        pool.perform();
        Ok(pool)
    }

    pub(super) fn is_load_balanced(&self) -> bool {
        self.options.load_balanced == Some(true)
    }

    fn feed(&mut self, input: impl FnOnce(*mut Pool, u64) -> Status) {
        self.must(input(self.handle, self.now));
        self.perform();
    }

    fn next(&self) -> Option<u64> {
        self.next_reply().into_iter().chain(self.next_timer()).min()
    }

    fn next_reply(&self) -> Option<u64> {
        self.replies.keys().next().map(|&(at, _)| at)
    }

    fn next_timer(&self) -> Option<u64> {
        let (at, reason) = checked::next_deadline(self.handle).expect("a pool");
        assert_eq!(at == NEVER, reason == 0);
        // What is overdue happens now.
        (at != NEVER).then(|| at.max(self.now))
    }

    /// Checks in what cannot be checked in.
    fn must_reject(&self, id: u64) -> Result<(), OperationError> {
        let counts = || format!("{:?}", checked::snapshot(self.handle));
        let before = counts();
        let status = cenote_check_in(self.handle, self.now, id, id as usize);
        if status == Status::Misuse && counts() == before {
            return Ok(());
        }
        let what = format!("a connection that is not in use here was checked in: {status:?}");
        Err(OperationError::Failed(what))
    }

    /// The id of no connection here.
    const FOREIGN: u64 = 4711;
}

impl cenote_conform::Pool for CPool {
    type Connection = CConnection;
    type Waiter = u64;

    fn check_out(&mut self, request: CheckOutRequest, reply: Reply<CConnection>) -> u64 {
        self.check_outs += 1;
        let (id, waiter) = (self.check_outs, 1000 + self.check_outs as usize);
        let deadline = request.timeout.map_or(NEVER, |timeout| self.now + nanos(timeout));
        self.waiters.insert(waiter, reply);
        let purpose = request.purpose as u32;
        self.feed(|pool, now| cenote_check_out(pool, now, id, waiter, deadline, purpose));
        id
    }

    fn check_in(&mut self, connection: CConnection, error: Option<ConnectionError>) {
        let CConnection { id, socket } = connection;
        let was_interrupted = self.interrupted.remove(&id);
        let is_new = error.is_some();
        let interrupted = || ConnectionError::network(Stage::Operation, "interrupted by the pool");
        match error.or_else(|| was_interrupted.then(interrupted)) {
            None => self.feed(|pool, now| cenote_check_in(pool, now, id, socket)),
            Some(error) => self.with_cause(error, |pool, cause| {
                if is_new {
                    pool.show_to_sdam(id, cause);
                }
                pool.feed(|handle, now| cenote_check_in_errored(handle, now, id, socket, cause));
            }),
        }
    }

    fn ready(&mut self) {
        self.feed(|pool, now| cenote_ready(pool, now));
    }

    fn clear(&mut self, cause: ConnectionError, interrupt: bool) {
        self.with_cause(cause, |pool, cause| {
            pool.feed(|handle, now| checked::clear(handle, now, cause, interrupt, None));
        });
    }

    fn close(&mut self) {
        self.feed(|pool, now| cenote_close(pool, now));
    }

    fn counts(&mut self) -> Result<Counts, OperationError> {
        let now = checked::snapshot(self.handle).expect("a pool");
        Ok(Counts {
            total: now.total.into(),
            available: now.available.into(),
            pending: now.pending.into(),
            in_use: now.in_use.into(),
            waiting: now.waiting,
        })
    }

    fn cancel(&mut self, id: u64) -> Result<(), OperationError> {
        self.feed(|pool, now| cenote_cancel(pool, now, id));
        Ok(())
    }

    fn service_id(
        &mut self,
        connection: &CConnection,
    ) -> Result<Option<ServiceId>, OperationError> {
        Ok(self.service(connection.id).map(ServiceId))
    }

    fn clear_service(
        &mut self,
        cause: ConnectionError,
        service: ServiceId,
    ) -> Result<(), OperationError> {
        self.with_cause(cause, |pool, cause| {
            pool.feed(|handle, now| checked::clear(handle, now, cause, false, Some(service.0)));
        });
        Ok(())
    }

    fn set_options(&mut self, options: PoolOptions) -> Result<(), OperationError> {
        let of_c = Options::of_core(&options);
        self.options = options;
        self.feed(|pool, now| checked::set_options(pool, now, &of_c));
        Ok(())
    }

    fn check_in_foreign(
        &mut self,
        connection: CConnection,
    ) -> Result<Option<CConnection>, OperationError> {
        self.must_reject(Self::FOREIGN)?;
        Ok(Some(connection))
    }

    fn connection_id(&self, connection: &CConnection) -> Option<u64> {
        Some(connection.id)
    }

    fn check_in_again(&mut self, connection_id: u64) -> Result<(), OperationError> {
        self.must_reject(connection_id)
    }

    fn reset_after_fork(&mut self) -> Result<(), OperationError> {
        self.feed(|pool, now| cenote_reset_after_fork(pool, now));
        Ok(())
    }

    fn log_messages(&mut self) -> Result<Vec<LogMessage>, OperationError> {
        Ok(self.messages.clone())
    }

    fn wait(&mut self, _: &Progress, limit: Duration) {
        let until = self.now + nanos(limit);
        let Some(at) = self.next().filter(|at| *at <= until) else {
            self.now = until;
            return;
        };
        self.now = at;
        if self.next_reply() == Some(at) {
            let (_, (id, result)) = self.replies.pop_first().expect("a reply is next");
            self.established(id, result);
        } else {
            self.feed(|pool, now| cenote_timer(pool, now));
            assert!(self.next_timer().is_none_or(|left| left > at), "the timer leaves nothing due");
        }
    }

    fn virtual_time(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.now))
    }

    fn finish(&mut self) -> Result<(), String> {
        let left = checked::snapshot(self.handle).expect("a pool");
        match self.next() {
            Some(at) => Err(format!("a closed pool still has something to do at {at}: {left:?}")),
            None if left.total != 0 || left.actions != 0 => {
                Err(format!("something is left in a closed pool: {left:?}"))
            }
            None if !self.sockets.is_empty() => Err("a socket was never closed".to_owned()),
            None => Ok(()),
        }
    }
}

impl Drop for CPool {
    fn drop(&mut self) {
        let status = cenote_pool_free(self.handle);
        if !std::thread::panicking() {
            assert_eq!(status, Status::Ok);
        }
    }
}
