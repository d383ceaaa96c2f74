//! Turns a step into an input, according to the state of the machine.

use std::time::Duration;

use cenote_core::pool::{ConnId, ConnectionState, Health, Input, Instant, PoolState, WaiterId};

use super::Payload;
use super::step::{Clock, Op, Pick, Step, service};

/// What a shell keeps between inputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    /// The highest request id so far.
    pub(crate) last_waiter: u64,
    /// The last time that the clock showed; behind the machine's time if the clock ran backwards.
    pub(crate) clock: Instant,
}

/// Returns the time and the input. `payload` returns the payload of a connection that is in use, or
/// a new one.
pub(crate) fn resolve<S, T>(
    step: &Step,
    machine: &PoolState<S>,
    ids: Ids,
    mut payload: impl FnMut(Option<u64>) -> T,
) -> (Instant, Input<S>)
where
    S: Payload<Conn = T, Waiter = T>,
{
    let now = resolve_clock(step.clock, machine, ids.clock);
    let pick = |pick| resolve_pick(pick, machine);
    // Causes differ by their time.
    let cause = S::cause(now.as_nanos());
    let input = match &step.op {
        Op::CheckOut { deadline, purpose } => Input::CheckOutRequested {
            id: WaiterId(ids.last_waiter + 1),
            waiter: payload(None),
            deadline: deadline.map(|nanos| now + Duration::from_nanos(nanos)),
            purpose: *purpose,
        },
        Op::CheckOutUnderOldId => Input::CheckOutRequested {
            id: WaiterId(ids.last_waiter),
            waiter: payload(None),
            deadline: None,
            purpose: cenote_core::pool::Purpose::Other,
        },
        Op::Cancel(place) => Input::CheckOutCancelled { id: resolve_waiter(*place, machine) },
        Op::CancelUnknown => Input::CheckOutCancelled { id: WaiterId(u64::MAX) },
        Op::CheckIn { conn, errored } => {
            let id = pick(*conn);
            let health = if *errored { Health::Errored(cause) } else { Health::Healthy };
            Input::CheckedIn { id, conn: payload(Some(id.number())), health }
        }
        Op::CheckInLate(conn) => {
            let id = pick(*conn);
            // Differs by connection and time.
            let request_id = (id.number() as i32).wrapping_sub(now.as_nanos() as i32);
            let health = Health::PendingResponse { request_id, cause };
            Input::CheckedIn { id, conn: payload(Some(id.number())), health }
        }
        Op::Drained(conn) => {
            let id = pick(*conn);
            Input::DrainSucceeded { id, conn: payload(Some(id.number())) }
        }
        Op::DrainFail(conn) => Input::DrainFailed { id: pick(*conn), cause },
        Op::DrainRead(conn) => Input::DrainProgress { id: pick(*conn) },
        Op::Retire => Input::RetireConnections,
        Op::Release => Input::ReleaseIdle,
        Op::Repurpose { conn, purpose } => Input::Repurposed { id: pick(*conn), purpose: *purpose },
        Op::Handshake { conn, service: index, clears_ago } => {
            let at_hello =
                |ago: i8| machine.service_clears().saturating_add_signed(-i64::from(ago));
            let clears_at_hello = clears_ago.map(at_hello);
            Input::Handshaken { id: pick(*conn), service: index.map(service), clears_at_hello }
        }
        Op::Succeed(conn) => Input::EstablishSucceeded { id: pick(*conn), conn: payload(None) },
        Op::Fail { conn, overloaded } => {
            Input::EstablishFailed { id: pick(*conn), cause, overloaded: *overloaded }
        }
        Op::PeerClose(conn) => Input::IdleClosedByPeer { id: pick(*conn), cause },
        Op::Ready => Input::Ready,
        Op::Close => Input::Close,
        Op::Timer => Input::Timer,
        Op::Fork => Input::ResetAfterFork,
        Op::Clear { interrupt, service: index } => {
            Input::Clear { cause, interrupt: *interrupt, service: index.map(service) }
        }
        Op::SetOptions(options) => Input::SetOptions { options: options.clone() },
    };
    (now, input)
}

fn resolve_clock<S: Payload>(clock: Clock, machine: &PoolState<S>, last: Instant) -> Instant {
    let deadline = machine.next_deadline().map_or(last, |deadline| deadline.at);
    match clock {
        Clock::Forward(nanos) => last + Duration::from_nanos(nanos),
        Clock::Back(nanos) => Instant::from_nanos(last.as_nanos().saturating_sub(nanos)),
        Clock::ToDeadline => last.max(deadline),
        Clock::ShortOfDeadline => {
            last.max(Instant::from_nanos(deadline.as_nanos().saturating_sub(1)))
        }
    }
}

fn resolve_waiter<S: Payload>(place: u8, machine: &PoolState<S>) -> WaiterId {
    let all: Vec<_> = machine.waiters().map(|waiter| waiter.id).collect();
    nth(&all, place).unwrap_or(WaiterId(u64::from(place)))
}

fn resolve_pick<S: Payload>(pick: Pick, machine: &PoolState<S>) -> ConnId {
    let of_kind = |wanted: fn(&ConnectionState) -> bool| -> Vec<ConnId> {
        let those = machine.connections().filter(|connection| wanted(&connection.state));
        those.map(|connection| connection.id).collect()
    };
    let (those, place) = match pick {
        Pick::Pending(place) => {
            (of_kind(|state| matches!(state, ConnectionState::Pending { .. })), place)
        }
        Pick::Available(place) => {
            let is_available = |state: &_| {
                matches!(
                    state,
                    ConnectionState::Available | ConnectionState::PendingResponse { .. }
                )
            };
            (of_kind(is_available), place)
        }
        Pick::Draining(place) => {
            (of_kind(|state| matches!(state, ConnectionState::Draining { .. })), place)
        }
        Pick::InUse(place) => {
            (of_kind(|state| matches!(state, ConnectionState::InUse { .. })), place)
        }
        Pick::Closed(place) => (closed(machine), place),
        Pick::Number(number) => return by_number(number, machine),
        Pick::WrongSlot(place) => {
            let all = of_kind(|_| true);
            let misplaced = |id: ConnId| ConnId::from_parts(id.number(), id.slot() + 1);
            (all.into_iter().map(misplaced).collect(), place)
        }
    };
    nth(&those, place).unwrap_or_else(|| by_number(u64::from(place), machine))
}

fn closed<S: Payload>(machine: &PoolState<S>) -> Vec<ConnId> {
    let alive: Vec<_> = machine.connections().map(|connection| connection.id.number()).collect();
    let numbers = 1..=machine.snapshot().connections_created;
    let numbers = numbers.filter(|number| !alive.contains(number));
    numbers.map(|number| ConnId::from_parts(number, 0)).collect()
}

fn by_number<S: Payload>(number: u64, machine: &PoolState<S>) -> ConnId {
    let mut ids = machine.connections().map(|connection| connection.id);
    ids.find(|id| id.number() == number).unwrap_or(ConnId::from_parts(number, 0))
}

fn nth<T: Copy>(those: &[T], place: u8) -> Option<T> {
    (!those.is_empty()).then(|| those[usize::from(place) % those.len()])
}
