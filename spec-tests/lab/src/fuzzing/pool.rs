//! Fuzzing of the pool.
//!
//! Bytes are interpreted by position: the first twelve are the options, every further four are one
//! step. So a mutation changes one thing and leaves the rest of the run as it is, and every input
//! is meaningful.

use std::time::Duration;

use cenote_core::pool::{Maintenance, PoolOptions, Purpose, ReuseOrder};

use crate::lockstep::{Clock, Op, Pick, Step, run};

/// Runs the machine and the model, and compares everything.
///
/// # Panics
///
/// If a check fails, with the script that shows it.
pub fn pool_vs_model(data: &[u8]) {
    let (options, steps) = decode(data);
    run(&options, &steps).unwrap_or_else(|failure| panic!("{failure}"));
}

/// Decodes a run. Missing bytes at the end are zeros.
pub fn decode(data: &[u8]) -> Run {
    let (head, tail) = data.split_at(data.len().min(OPTIONS_LEN));
    let mut options = [0; OPTIONS_LEN];
    options[..head.len()].copy_from_slice(head);
    let steps = tail.chunks(STEP_LEN).take(STEPS_MAX).map(|chunk| {
        let mut bytes = [0; STEP_LEN];
        bytes[..chunk.len()].copy_from_slice(chunk);
        decode_step(bytes)
    });
    (decode_options(options), steps.collect())
}

/// A run of about `steps` steps, decoded from the bytes.
pub(crate) fn decode_run(mut byte: impl FnMut() -> u8, steps: usize) -> Run {
    let options = decode_options(std::array::from_fn(|_| byte()));
    // The first step is Ready, because most runs would otherwise end early.
    let ready = Step { clock: Clock::Forward(0), op: Op::Ready };
    let rest = (1..steps).map(|_| decode_step(std::array::from_fn(|_| byte())));
    (options, std::iter::once(ready).chain(rest).collect())
}

/// The same run as before pools had late replies and late hellos: traces of the first version are made of such runs.
pub(crate) fn without_late_replies((mut options, mut steps): Run) -> Run {
    let make_older = |options: &mut PoolOptions| {
        options.experimental_pending_response = None;
        options.unanswered_threshold = None;
        options.max_wait_queue_size = None;
        options.codel_target = None;
        options.codel_interval = None;
        options.overload_backoff = None;
        options.adaptive_connecting = None;
        options.predictive_min_pool_size = None;
    };
    make_older(&mut options);
    for step in &mut steps {
        match &mut step.op {
            Op::CheckInLate(_)
            | Op::Drained(_)
            | Op::DrainFail(_)
            | Op::DrainRead(_)
            | Op::Retire
            | Op::Release => step.op = Op::Timer,
            Op::SetOptions(options) => make_older(options),
            Op::Handshake { clears_ago, .. } => *clears_ago = None,
            Op::Fail { overloaded, .. } => *overloaded = false,
            Op::CheckOut { .. }
            | Op::CheckOutUnderOldId
            | Op::Cancel(_)
            | Op::CancelUnknown
            | Op::CheckIn { .. }
            | Op::Repurpose { .. }
            | Op::Succeed(_)
            | Op::PeerClose(_)
            | Op::Ready
            | Op::Close
            | Op::Timer
            | Op::Fork
            | Op::Clear { .. } => {}
        }
    }
    (options, steps)
}

/// The options of a pool, and what happens to it.
pub type Run = (PoolOptions, Vec<Step>);

/// Few connections and times of a few nanoseconds, so that events coincide.
fn decode_options(bytes: [u8; OPTIONS_LEN]) -> PoolOptions {
    let [max, min, connecting, idle, wait, lifetime, seed, held, pause, order, balanced, late] =
        bytes;
    let mut options = PoolOptions::default();
    options.max_pool_size = some(max, 6);
    options.min_pool_size = some(min, 4);
    options.max_connecting = some(connecting, 4);
    options.max_idle_time = nanos(idle, 8);
    options.wait_queue_timeout = nanos(wait, 8);
    options.max_lifetime = nanos(lifetime, 60);
    options.jitter_seed = some(seed, 16).map(u64::from);
    options.leak_detection_threshold = nanos(held, 8);
    options.maintenance = match pause % 8 {
        0 => None,
        1 => Some(Maintenance::Never),
        other => Some(Maintenance::PauseAfterFailure(Duration::from_nanos(u64::from(other) - 2))),
    };
    options.reuse_order = match order % 3 {
        0 => None,
        1 => Some(ReuseOrder::MostRecentlyUsed),
        _ => Some(ReuseOrder::LeastRecentlyUsed),
    };
    options.load_balanced = match balanced % 3 {
        0 => None,
        1 => Some(false),
        _ => Some(true),
    };
    options.unanswered_threshold = nanos(late / 4, 8);
    options.max_wait_queue_size = some(seed / 16, 4);
    options.codel_target = nanos(order / 3, 5);
    options.codel_interval = nanos(order / 15, 7);
    options.overload_backoff = nanos(balanced / 3, 7);
    options.adaptive_connecting = some(pause / 8, 3).map(|number| number != 0);
    options.predictive_min_pool_size = some(idle / 8, 3).map(|number| number != 0);
    options.experimental_pending_response = match late % 4 {
        0 => None,
        1 => Some(false),
        _ => Some(true),
    };
    options
}

fn decode_step([clock, kind, which, how]: [u8; STEP_LEN]) -> Step {
    Step { clock: decode_clock(clock), op: decode_op(kind, which, how) }
}

fn decode_clock(byte: u8) -> Clock {
    match byte % 16 {
        nanos @ 0..=9 => Clock::Forward(u64::from(nanos)),
        10 => Clock::Forward(u64::from(byte) + 20),
        11 | 12 => Clock::Back(u64::from(byte / 16)),
        13 => Clock::ShortOfDeadline,
        _ => Clock::ToDeadline,
    }
}

/// Operations that keep a pool busy are more frequent than those that end it.
fn decode_op(kind: u8, which: u8, how: u8) -> Op {
    let service = (how % 4).checked_sub(1);
    match kind % 32 {
        0..=6 => Op::CheckOut {
            deadline: (how % 16).checked_sub(8).map(u64::from),
            purpose: decode_purpose(which),
        },
        7 => Op::CheckOutUnderOldId,
        8 | 9 => Op::Cancel(which),
        10 => Op::CancelUnknown,
        11..=15 => Op::CheckIn { conn: decode_pick(how, which, Pick::InUse), errored: how >= 192 },
        16 => Op::Repurpose {
            conn: decode_pick(how, which, Pick::InUse),
            purpose: decode_purpose(how / 16),
        },
        17 | 18 => Op::Handshake {
            conn: decode_pick(how / 4, which, Pick::Pending),
            service,
            clears_ago: [None, None, Some(0), Some(1)][usize::from(how / 64)],
        },
        19..=22 => Op::Succeed(decode_pick(how, which, Pick::Pending)),
        23 => Op::Fail { conn: decode_pick(how, which, Pick::Pending), overloaded: how >= 128 },
        24 => Op::PeerClose(decode_pick(how, which, Pick::Available)),
        25 | 26 => Op::Ready,
        27 => Op::Timer,
        28 | 29 => Op::Clear { interrupt: how >= 128, service },
        30 => decode_rare(which, how),
        _ => decode_late_reply(which, how),
    }
}

/// Operations about late replies, and credentials that change.
fn decode_late_reply(which: u8, how: u8) -> Op {
    match how / 16 {
        0..=5 => Op::CheckInLate(decode_pick(how, which, Pick::InUse)),
        6..=9 => Op::Drained(decode_pick(how, which, Pick::Draining)),
        10 | 11 => Op::DrainFail(decode_pick(how, which, Pick::Draining)),
        12 | 13 => Op::DrainRead(decode_pick(how, which, Pick::Draining)),
        14 => Op::Release,
        _ => Op::Retire,
    }
}

/// Operations that end or change the whole pool.
fn decode_rare(which: u8, how: u8) -> Op {
    if which.is_multiple_of(4) {
        return if how.is_multiple_of(2) { Op::Close } else { Op::Fork };
    }
    let mut bytes = [0; OPTIONS_LEN];
    // Two bytes choose among many sets of options, as for a new pool.
    for (index, byte) in bytes.iter_mut().enumerate() {
        let index = u8::try_from(index).expect("a short array");
        *byte = which.wrapping_mul(index + 3) ^ how.wrapping_mul(7 * index + 1) >> (index % 3);
    }
    Op::SetOptions(Box::new(decode_options(bytes)))
}

/// Mostly a connection in a state in which the operation is valid.
fn decode_pick(kind: u8, place: u8, usual: fn(u8) -> Pick) -> Pick {
    match kind % 16 {
        0 => Pick::Pending(place),
        1 => Pick::Available(place),
        2 => Pick::InUse(place),
        3 => Pick::Closed(place),
        4 => Pick::Number(u64::from(place)),
        5 => Pick::WrongSlot(place),
        _ => usual(place),
    }
}

fn decode_purpose(byte: u8) -> Purpose {
    match byte % 3 {
        0 => Purpose::Other,
        1 => Purpose::Cursor,
        _ => Purpose::Transaction,
    }
}

fn some(byte: u8, limit: u8) -> Option<u32> {
    (byte % limit).checked_sub(1).map(u32::from)
}

fn nanos(byte: u8, limit: u8) -> Option<Duration> {
    some(byte, limit).map(|nanos| Duration::from_nanos(u64::from(nanos)))
}

const OPTIONS_LEN: usize = 12;
const STEP_LEN: usize = 4;
/// Longer runs find nothing new and slow down the fuzzer.
const STEPS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use cenote_core::pool::OptionSpec;

    use super::*;

    /// An option that is never drawn is never tested.
    #[test]
    fn each_option_is_drawn() {
        let mut drawn = std::collections::BTreeSet::new();
        for byte in 0..=u8::MAX {
            let mut options = decode_options([byte; OPTIONS_LEN]);
            drawn.extend(options.each().filter(|(_, it)| it.is_set()).map(|(spec, _)| spec.name));
        }
        assert_eq!(drawn.len(), OptionSpec::TABLE.len(), "{drawn:?}");
    }
}
