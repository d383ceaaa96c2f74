//! Inputs that the pool decides at once, recorded: each entry point is that of [`PoolState`](crate::pool::PoolState), and says in
//! addition that the input has to be fed to [`handle`](Recorder::handle) while everything is recorded in a journal.
//!
//! What is recorded is apart, so that a pool without a recorder costs no more than itself.

use crate::pool::{ActionSink, ConnId, Instant, PoolTypes, Purpose, WaiterId};

use super::cause::TraceCause;
use super::compact::{CompactInput, Mark};
use super::recorder::Recorder;
use super::recording::Recording;

impl<S: PoolTypes<Cause: TraceCause>> Recorder<S> {
    /// As [`PoolState::check_out_at_once`](crate::pool::PoolState::check_out_at_once).
    #[inline(always)]
    pub fn check_out_at_once(
        &mut self,
        now: Instant,
        id: WaiterId,
        purpose: Purpose,
        out: &mut impl ActionSink<S>,
    ) -> Option<(ConnId, S::Conn)> {
        match self.is_recording() {
            false => self.pool.check_out_at_once(now, id, purpose, out),
            true => self.check_out_recorded(now, id, purpose, out),
        }
    }

    /// As [`PoolState::check_in_at_once`](crate::pool::PoolState::check_in_at_once).
    ///
    /// # Errors
    ///
    /// The payload: feed `handle` with it.
    #[inline(always)]
    pub fn check_in_at_once(
        &mut self,
        now: Instant,
        id: ConnId,
        conn: S::Conn,
        out: &mut impl ActionSink<S>,
    ) -> Result<(), S::Conn> {
        match self.is_recording() {
            false => self.pool.check_in_at_once(now, id, conn, out),
            true => self.check_in_recorded(now, id, conn, out),
        }
    }

    /// As [`PoolState::enqueue_at_once`](crate::pool::PoolState::enqueue_at_once).
    ///
    /// # Errors
    ///
    /// The waiter: feed `handle` with it.
    #[inline(always)]
    pub fn enqueue_at_once(
        &mut self,
        now: Instant,
        id: WaiterId,
        waiter: S::Waiter,
        deadline: Option<Instant>,
        purpose: Purpose,
        out: &mut impl ActionSink<S>,
    ) -> Result<Option<Instant>, S::Waiter> {
        match self.is_recording() {
            false => self.pool.enqueue_at_once(now, id, waiter, deadline, purpose, out),
            true => self.enqueue_recorded(now, id, waiter, deadline, purpose, out),
        }
    }

    /// As [`PoolState::hand_over_at_once`](crate::pool::PoolState::hand_over_at_once).
    ///
    /// # Errors
    ///
    /// The payload: feed `handle` with it.
    #[inline(always)]
    pub fn hand_over_at_once(
        &mut self,
        now: Instant,
        id: ConnId,
        conn: S::Conn,
        out: &mut impl ActionSink<S>,
    ) -> Result<(S::Waiter, S::Conn), S::Conn> {
        match self.is_recording() {
            false => self.pool.hand_over_at_once(now, id, conn, out),
            true => self.hand_over_recorded(now, id, conn, out),
        }
    }

    /// As [`PoolState::cancel_at_once`](crate::pool::PoolState::cancel_at_once), while nothing is recorded.
    #[inline]
    pub fn cancel_at_once(
        &mut self,
        now: Instant,
        id: WaiterId,
        out: &mut impl ActionSink<S>,
    ) -> Option<S::Waiter> {
        if self.is_recording() { None } else { self.pool.cancel_at_once(now, id, out) }
    }

    #[inline(never)]
    fn check_out_recorded(
        &mut self,
        now: Instant,
        id: WaiterId,
        purpose: Purpose,
        out: &mut impl ActionSink<S>,
    ) -> Option<(ConnId, S::Conn)> {
        let mark = self.record(now, CompactInput::check_out(id, None, purpose)?)?;
        let decided = self.pool.check_out_at_once(now, id, purpose, out);
        self.take_back_unless(decided.is_some(), mark);
        decided
    }

    #[inline(never)]
    fn check_in_recorded(
        &mut self,
        now: Instant,
        id: ConnId,
        conn: S::Conn,
        out: &mut impl ActionSink<S>,
    ) -> Result<(), S::Conn> {
        let Some(mark) = self.record(now, CompactInput::CheckIn(id)) else { return Err(conn) };
        let decided = self.pool.check_in_at_once(now, id, conn, out);
        self.take_back_unless(decided.is_ok(), mark);
        decided
    }

    #[inline(never)]
    fn enqueue_recorded(
        &mut self,
        now: Instant,
        id: WaiterId,
        waiter: S::Waiter,
        deadline: Option<Instant>,
        purpose: Purpose,
        out: &mut impl ActionSink<S>,
    ) -> Result<Option<Instant>, S::Waiter> {
        let input = CompactInput::check_out(id, deadline, purpose);
        let Some(mark) = input.and_then(|it| self.record(now, it)) else { return Err(waiter) };
        let decided = self.pool.enqueue_at_once(now, id, waiter, deadline, purpose, out);
        self.take_back_unless(decided.is_ok(), mark);
        decided
    }

    #[inline(never)]
    fn hand_over_recorded(
        &mut self,
        now: Instant,
        id: ConnId,
        conn: S::Conn,
        out: &mut impl ActionSink<S>,
    ) -> Result<(S::Waiter, S::Conn), S::Conn> {
        let Some(mark) = self.record(now, CompactInput::CheckIn(id)) else { return Err(conn) };
        let decided = self.pool.hand_over_at_once(now, id, conn, out);
        self.take_back_unless(decided.is_ok(), mark);
        decided
    }

    /// Records an input that may be decided at once. Returns what the flight recorder was before; `None` if there is none,
    /// or no room.
    fn record(&mut self, now: Instant, input: CompactInput) -> Option<Mark> {
        let Recording::Flight(flight) = &mut self.recording else { return None };
        let mark = flight.mark();
        flight.record_compact(now, input).then_some(mark)
    }

    fn take_back_unless(&mut self, is_decided: bool, mark: Mark) {
        if let (false, Recording::Flight(flight)) = (is_decided, &mut self.recording) {
            flight.take_back(mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::pool::{Action, Health, Input, NoPayload, PoolOptions, PoolState};
    use crate::trace::TraceInfo;

    type Pool = Recorder<NoPayload>;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn feed(pool: &mut Pool, now: u64, input: Input<NoPayload>) -> Vec<Action<NoPayload>> {
        let mut actions = Vec::new();
        pool.handle(at(now), input, &mut actions).expect("legal");
        actions
    }

    fn request(id: u64) -> Input<NoPayload> {
        let purpose = Purpose::Other;
        Input::CheckOutRequested { id: WaiterId(id), waiter: (), deadline: None, purpose }
    }

    fn check_in(id: ConnId) -> Input<NoPayload> {
        Input::CheckedIn { id, conn: (), health: Health::Healthy }
    }

    /// With one connection, which is available.
    fn warm() -> (Pool, ConnId) {
        let options = PoolOptions::default().with_max_pool_size(1);
        let pool = PoolState::new(Instant::ORIGIN, options, &mut |_| {}).expect("options");
        let mut pool = Recorder::new(pool).with_flight_recorder(4 << 10);
        feed(&mut pool, 1, Input::Ready);
        let start = |action| {
            let Action::StartEstablish { id, .. } = action else { return None };
            Some(id)
        };
        let id = feed(&mut pool, 2, request(1)).into_iter().find_map(start).expect("its first");
        feed(&mut pool, 3, Input::EstablishSucceeded { id, conn: () });
        feed(&mut pool, 4, check_in(id));
        (pool, id)
    }

    fn recorded(pool: &Pool) -> Vec<u8> {
        let recording = pool.flight_recording().expect("a flight recorder");
        recording.write_to(&TraceInfo::default(), Vec::new()).expect("memory")
    }

    /// What the pool does not decide at once leaves no record.
    #[test]
    fn a_recording_is_the_same_by_either_way() {
        let (mut quick, id) = warm();
        let out = &mut |_: Action<NoPayload>| {};
        let other = Purpose::Other;
        assert!(quick.check_out_at_once(at(5), WaiterId(2), other, out).is_some());
        assert!(quick.check_out_at_once(at(6), WaiterId(3), other, out).is_none(), "it is in use");
        assert!(quick.enqueue_at_once(at(7), WaiterId(3), (), None, other, out).is_ok());
        assert!(quick.check_in_at_once(at(8), id, (), out).is_err(), "one waits");
        assert!(quick.hand_over_at_once(at(9), id, (), out).is_ok());
        assert!(quick.hand_over_at_once(at(10), id, (), out).is_err(), "none waits");
        assert!(quick.check_in_at_once(at(11), id, (), out).is_ok());
        assert!(quick.check_out_at_once(at(12), WaiterId(4), Purpose::Cursor, out).is_none());

        let (mut general, id) = warm();
        feed(&mut general, 5, request(2));
        feed(&mut general, 7, request(3));
        feed(&mut general, 9, check_in(id));
        feed(&mut general, 11, check_in(id));
        assert_eq!(recorded(&quick), recorded(&general));
        assert_eq!(quick.fingerprint(), general.fingerprint());
    }
}
