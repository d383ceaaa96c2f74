//! Looks at the sockets of idle connections, so that one that the peer has closed is not handed out.
//! `maxIdleTimeMS` is the machine's.
//!
//! A check-out looks at the connection that it would get, and the pool's timer looks at all that are idle: twice a
//! second, and every two seconds while all of them have been idle for long.

use std::sync::Arc;
use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{ConnId, ConnectionState, Input, Instant};

use super::driver::PoolDriver;
use super::inner::PoolInner;
use super::types::InputContext;
use super::types::PooledSocket;
use crate::connection::Connector;
use crate::runtime::contain;
use crate::runtime::wake_list::WakeList;
use crate::runtime::{Runtime, yield_once};
use crate::trace::PanicGuard;

/// How long an idle connection that the peer has closed stays in a pool without check-outs.
pub(super) const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// The same in a pool whose connections have all been idle for [`QUIET_AFTER`], so that a thousand pools which are hardly
/// used cost little.
const QUIET_SWEEP_INTERVAL: Duration = Duration::from_secs(2);

const QUIET_AFTER: Duration = Duration::from_secs(10);

/// How many sockets are looked at before the lock is released.
const AT_A_TIME: usize = 16;

/// A middlebox may drop a connection that has been idle for this long, without a word. A connection in use was heard of a
/// moment ago: its timeout is that of a slow command, and says nothing of others.
const LONG_IDLE: Duration = Duration::from_secs(1);

/// The looks that found a connection idle, since anything came on it.
#[derive(Clone, Copy)]
pub(super) struct IdleLooks {
    first: Instant,
    last: Instant,
}

/// An idle connection that must not be used any more, and why.
pub(super) type IdleFault = (ConnId, ConnectionError);

/// The look at the connection that a check-out would get now.
pub(super) enum IdleLook {
    /// It is still to be taken.
    Due,
    /// The connection may be used.
    Fine,
    /// The connection has to be closed, and the next one looked at.
    Broken(IdleFault),
}

impl<R: Runtime, K: Connector<R>> PoolDriver<R, K> {
    /// Closes connections that a check-out would get now and must not.
    #[inline(always)]
    pub(super) fn close_broken(
        &self,
        inner: &mut PoolInner<R, K>,
        look: IdleLook,
        context: InputContext,
        wakes: &mut WakeList<R::Waiter>,
    ) {
        let mut found = match look {
            IdleLook::Fine => return,
            IdleLook::Due => None,
            IdleLook::Broken(fault) => Some(fault),
        };
        while let Some((id, cause)) = found.take().or_else(|| self.next_fault(inner)) {
            self.close_faulty(inner, id, cause, context, wakes);
        }
    }

    /// Looks at the connection that a check-out would get now. What is found has to be closed: another look may not find
    /// it again, because this one has read it.
    #[inline(always)]
    pub(super) fn next_fault(&self, inner: &mut PoolInner<R, K>) -> Option<IdleFault> {
        if !K::LOOKS_AT_IDLE {
            return None;
        }
        let (id, socket) = inner.state.next_available()?;
        Some((id, self.idle_fault(socket)?))
    }

    /// Closes each idle connection that must not be used any more, a few at a time: callers take the lock, and other tasks
    /// run, between them. Returns the time until the next look.
    pub(super) async fn sweep(self: &Arc<Self>) -> Duration {
        let (idle, is_quiet) = self.idle_connections();
        for (turn, ids) in idle.chunks(AT_A_TIME).enumerate() {
            if turn > 0 {
                yield_once().await;
            }
            self.sweep_some(ids);
        }
        if is_quiet { QUIET_SWEEP_INTERVAL } else { SWEEP_INTERVAL }
    }

    fn sweep_some(self: &Arc<Self>, ids: &[ConnId]) {
        let mut probes = Vec::new();
        self.close_some(ids, |id, socket, now| {
            let first = self.idle_looks(socket).map_or(now, |idle| idle.first);
            socket.idle = Some(IdleLooks { first, last: now });
            let probe = contain(|| self.connector().idle_probe(&socket.connection)).flatten();
            let Some(probe) = probe else { return self.idle_fault(socket) };
            probes.push((id, probe));
            None
        });
        // Without the lock.
        let is_silent = |probe| contain(probe).unwrap_or(false);
        let others = probes.into_iter().filter_map(|(id, probe)| (!is_silent(probe)).then_some(id));
        let others: Vec<_> = others.collect();
        self.close_some(&others, |_, socket, _| self.idle_fault(socket));
    }

    /// Closes the connections that have been idle for as long as one that was idle for long, and then timed out: if that was
    /// dropped by a middlebox, so are they, and each would cost its caller a timeout.
    pub(super) fn close_as_idle_as(self: &Arc<Self>, timed_out: &mut PooledSocket<R, K>) {
        let Some(IdleLooks { first, last }) = self.idle_looks(timed_out) else { return };
        if last.saturating_since(first) < LONG_IDLE {
            return;
        }
        let (idle, _) = self.idle_connections();
        // As a rule those that check-outs would get next are the last.
        for ids in idle.rchunks(AT_A_TIME) {
            self.close_some(ids, |_, socket, _| {
                let is_as_idle = self.idle_looks(socket).is_some_and(|idle| idle.first <= first);
                let reason = "unused for as long as a connection that timed out without a reply";
                is_as_idle.then(|| ConnectionError::network(Stage::Operation, reason))
            });
        }
    }

    /// `None` if something has come since. After a panic the connector knows nothing of the connection.
    fn idle_looks(&self, socket: &mut PooledSocket<R, K>) -> Option<IdleLooks> {
        let ask = || self.connector().has_received(&mut socket.connection);
        if contain(ask).unwrap_or(true) {
            socket.idle = None;
        }
        socket.idle
    }

    /// And whether all connections have been idle for long.
    fn idle_connections(&self) -> (Vec<ConnId>, bool) {
        let inner = self.lock();
        let now = self.now();
        let (mut idle, mut is_quiet) = (Vec::new(), true);
        for connection in inner.state.connections() {
            let is_idle = matches!(connection.state, ConnectionState::Available);
            is_quiet &= is_idle && connection.since + QUIET_AFTER <= now;
            idle.extend(is_idle.then_some(connection.id));
        }
        (idle, is_quiet)
    }

    /// Closes those of these connections that are idle and must not be used any more.
    fn close_some(
        self: &Arc<Self>,
        idle: &[ConnId],
        mut fault: impl FnMut(ConnId, &mut PooledSocket<R, K>, Instant) -> Option<ConnectionError>,
    ) {
        if idle.is_empty() {
            return;
        }
        let panic_guard = PanicGuard::new(&**self);
        let mut inner = self.lock();
        let context = self.context(&inner, true);
        let mut wakes = WakeList::default();
        for id in idle {
            // It may be in use by now, or closed.
            let Some(socket) = inner.state.available_mut(*id) else { continue };
            if let Some(cause) = fault(*id, socket, context.now) {
                self.close_faulty(&mut inner, *id, cause, context, &mut wakes);
            }
        }
        panic_guard.defuse();
        self.release_and_run(inner, context, wakes);
    }

    #[inline]
    fn idle_fault(&self, socket: &mut PooledSocket<R, K>) -> Option<ConnectionError> {
        crate::error::fault(|| self.connector().idle_fault(&mut socket.connection))
    }

    #[cold]
    #[inline(never)]
    fn close_faulty(
        &self,
        inner: &mut PoolInner<R, K>,
        id: ConnId,
        cause: ConnectionError,
        context: InputContext,
        wakes: &mut WakeList<R::Waiter>,
    ) {
        let input = Input::IdleClosedByPeer { id, cause };
        inner.handle(context.now, input, context.wants_events, wakes);
    }
}
