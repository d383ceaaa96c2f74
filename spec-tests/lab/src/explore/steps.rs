//! The steps from a state: all valid ones, and some invalid ones of every kind.

use cenote_core::pool::{NoPayload, PoolState, Purpose};

use super::Configuration;
use crate::lockstep::{Clock, Op, Pick, Step};

/// All steps from a state. `requests` is the number of check-outs so far.
pub(super) fn steps(
    configuration: &Configuration,
    machine: &PoolState<NoPayload>,
    requests: u64,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut add = |clock, op| steps.push(Step { clock, op });
    let mut now = |op| add(Clock::Forward(0), op);
    requests_ops(configuration, machine, requests, &mut now);
    connections_ops(configuration, machine, &mut now);
    pool_ops(configuration, machine, &mut now);
    add(Clock::Back(1), Op::CancelUnknown);
    // The time of a refused input does not count either.
    add(Clock::Forward(1), Op::CheckIn { conn: Pick::Number(0), errored: false });
    if configuration.timed {
        // Time passes without an effect: an unknown request is cancelled.
        add(Clock::Forward(1), Op::CancelUnknown);
        if machine.next_deadline().is_some_and(|deadline| deadline.at > machine.now()) {
            add(Clock::ToDeadline, Op::CancelUnknown);
            add(Clock::ToDeadline, Op::Timer);
            add(Clock::ShortOfDeadline, Op::Timer);
        }
    }
    steps
}

fn requests_ops(
    configuration: &Configuration,
    machine: &PoolState<NoPayload>,
    requests: u64,
    add: &mut impl FnMut(Op),
) {
    if requests < configuration.requests {
        for &deadline in &configuration.deadlines {
            add(Op::CheckOut { deadline, purpose: Purpose::Other });
        }
    }
    if requests > 0 {
        add(Op::CheckOutUnderOldId);
    }
    for place in 0..machine.waiters().count() {
        add(Op::Cancel(u8::try_from(place).expect("few requests")));
    }
}

fn connections_ops(
    configuration: &Configuration,
    machine: &PoolState<NoPayload>,
    add: &mut impl FnMut(Op),
) {
    for number in interesting_numbers(machine) {
        let conn = Pick::Number(number);
        add(Op::CheckIn { conn, errored: false });
        add(Op::CheckIn { conn, errored: true });
        add(Op::Succeed(conn));
        add(Op::Fail { conn, overloaded: false });
        if configuration.options.overload_backoff.is_some() {
            add(Op::Fail { conn, overloaded: true });
        }
        add(Op::PeerClose(conn));
        if configuration.keeps_late_replies() {
            add(Op::CheckInLate(conn));
            add(Op::Drained(conn));
            add(Op::DrainFail(conn));
            add(Op::DrainRead(conn));
        }
        add(Op::Repurpose { conn, purpose: Purpose::Cursor });
        for service in services(configuration) {
            for clears_ago in lateness(configuration) {
                add(Op::Handshake { conn, service, clears_ago });
            }
        }
    }
    if machine.connections().next().is_some() {
        add(Op::Succeed(Pick::WrongSlot(0)));
        add(Op::CheckIn { conn: Pick::WrongSlot(0), errored: false });
    }
}

/// How late a `Handshaken` may be: in load-balanced mode also by a clear of a service.
fn lateness(configuration: &Configuration) -> impl Iterator<Item = Option<i8>> {
    let told = if configuration.services == 0 { 0..0 } else { -1..2 };
    std::iter::once(None).chain(told.map(Some))
}

/// The existing connections, the first and the last closed one, and two that never existed.
fn interesting_numbers(machine: &PoolState<NoPayload>) -> Vec<u64> {
    let mut numbers: Vec<u64> =
        machine.connections().map(|connection| connection.id.number()).collect();
    let created = machine.snapshot().connections_created;
    let mut closed = (1..=created).filter(|number| !numbers.contains(number));
    let (first, last) = (closed.next(), closed.next_back());
    numbers.extend(first.into_iter().chain(last).chain([0, created + 1]));
    numbers
}

fn pool_ops(
    configuration: &Configuration,
    machine: &PoolState<NoPayload>,
    add: &mut impl FnMut(Op),
) {
    for op in [Op::Ready, Op::Close, Op::Timer, Op::Fork] {
        add(op);
    }
    if configuration.keeps_late_replies() {
        add(Op::Retire);
        add(Op::Release);
    }
    for service in services(configuration) {
        add(Op::Clear { interrupt: false, service });
        add(Op::Clear { interrupt: true, service });
    }
    for options in configuration.all_options() {
        if options != machine.options() {
            add(Op::SetOptions(Box::new(options.clone())));
        }
    }
    let misfit = configuration.options.clone().with_load_balanced(configuration.services == 0);
    add(Op::SetOptions(Box::new(misfit)));
}

/// Each service, and none; without a load balancer, an unknown one, too.
fn services(configuration: &Configuration) -> impl Iterator<Item = Option<u8>> {
    std::iter::once(None).chain((0..configuration.services.max(1)).map(Some))
}
