//! Any bytes as calls of the C library: right ones, wrong ones, with handles that are freed, foreign or made up.
//!
//! Every call returns the status that it has to. Payloads and waiters come back exactly as often as they were given, causes
//! are counted, and in the end nothing is left.

use std::collections::BTreeSet;
use std::ptr;

use cenote_c::action::{Action, ActionKind};
use cenote_c::cause::{Cause, CauseOptions, cenote_cause_release, cenote_cause_retain};
use cenote_c::input::*;
use cenote_c::options::{NOT_SET, Options};
use cenote_c::pool::{NEVER, Pool, cenote_pool_free, cenote_set_events};
use cenote_c::status::Status;
use cenote_c::trace::{cenote_trace_start, cenote_trace_stop};
use cenote_c::{checked, text::TextKind};

/// Takes any bytes, and panics when something is wrong.
pub fn c_library(data: &[u8]) {
    let mut bytes = Bytes(data);
    let mut run = Run::default();
    run.new_pool(&mut bytes);
    while !bytes.0.is_empty() {
        run.step(&mut bytes);
    }
    run.end();
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    /// The next one; 0 when there are no more.
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// One in eight.
    fn rarely(&mut self) -> bool {
        self.next() >= 224
    }

    fn word(&mut self) -> usize {
        (0..size_of::<usize>()).fold(0, |word, _| word << 8 | usize::from(self.next()))
    }

    fn option(&mut self) -> i64 {
        match self.next() {
            0..=63 => NOT_SET,
            64..=250 => i64::from(self.next()),
            _ => -i64::from(self.next()),
        }
    }

    fn service(&mut self) -> Option<[u8; 12]> {
        match self.next() % 4 {
            0 => None,
            service => Some([service; 12]),
        }
    }
}

#[derive(Default)]
struct Run {
    pools: Vec<Held>,
    causes: Vec<(*mut Cause, u32)>,
    now: u64,
    numbers: usize,
}

/// A pool, and what it has of ours.
struct Held {
    handle: *mut Pool,
    is_freed: bool,
    request: u64,
    waiters: BTreeSet<usize>,
    payloads: BTreeSet<usize>,
}

impl Run {
    fn new_pool(&mut self, bytes: &mut Bytes<'_>) {
        let options = Self::options(bytes);
        let address =
            ["db1.example.com", "[::1]:27018", "a:b:c", ""][usize::from(bytes.next() % 4)];
        match checked::pool_new(address, &options, self.now) {
            Ok(handle) => self.pools.push(Held {
                handle,
                is_freed: false,
                request: 0,
                waiters: BTreeSet::new(),
                payloads: BTreeSet::new(),
            }),
            Err(status) => {
                let expected = [Status::BadSize, Status::BadOptions, Status::BadText];
                assert!(expected.contains(&status), "{status:?}: {}", checked::last_error());
            }
        }
    }

    fn options(bytes: &mut Bytes<'_>) -> Options {
        let mut options = Options::default();
        options.fields().for_each(|(_, field)| *field = bytes.option());
        options.max_log_text = bytes.option();
        if bytes.rarely() {
            options.size = u32::from(bytes.next());
        }
        options
    }

    /// A pool that was made, perhaps freed; or none.
    fn pool(&self, bytes: &mut Bytes<'_>) -> Result<usize, *mut Pool> {
        let number = usize::from(bytes.next());
        match self.pools.len() {
            count if number < 240 && count > 0 => Ok(number % count),
            _ if number == 255 => {
                Err(self.causes.first().map_or(ptr::null_mut(), |it| it.0.cast()))
            }
            _ => Err(ptr::without_provenance_mut(bytes.word())),
        }
    }

    fn cause(&self, bytes: &mut Bytes<'_>) -> (*mut Cause, bool) {
        let number = usize::from(bytes.next());
        match self.causes.len() {
            count if number < 240 && count > 0 => {
                let (cause, references) = self.causes[number % count];
                (cause, references > 0)
            }
            _ => (ptr::without_provenance_mut(bytes.word()), false),
        }
    }

    fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.next() % 8 {
            0 => self.of_causes(bytes),
            1 if self.pools.len() < 3 => self.new_pool(bytes),
            _ => self.of_pool(bytes),
        }
    }

    fn of_causes(&mut self, bytes: &mut Bytes<'_>) {
        let kind = bytes.next() % 4;
        if kind == 0 && self.causes.len() < 8 {
            let options = CauseOptions {
                size: CauseOptions::default().size + u32::from(bytes.rarely()),
                stage: u32::from(bytes.next() % 9),
                kind: u32::from(bytes.next() % 8),
                has_code: u32::from(bytes.next() % 2),
                code: i32::from(bytes.next()),
                after: u64::from(bytes.next()),
                has_topology_version: u32::from(bytes.next() % 2),
                counter: i64::from(bytes.next()),
                ..CauseOptions::default()
            };
            let text = String::from_utf8_lossy(&bytes.0[..bytes.0.len().min(6)]).into_owned();
            let is_valid = options.size == CauseOptions::default().size
                && options.stage < 8
                && options.kind < 7;
            let made = checked::cause_new(options, &text, Some(&text), &text);
            assert_eq!(made.is_ok(), is_valid);
            self.causes.extend(made.map(|cause| (cause, 1)));
            return;
        }
        let (cause, is_alive) = self.cause(bytes);
        let status =
            if kind == 1 { cenote_cause_retain(cause) } else { cenote_cause_release(cause) };
        assert_eq!(status, if is_alive { Status::Ok } else { Status::BadHandle });
        for held in self.causes.iter_mut().filter(|held| is_alive && held.0 == cause) {
            if kind == 1 { held.1 += 1 } else { held.1 -= 1 }
        }
        let _ = checked::cause_text(cause, u32::from(bytes.next() % 12));
    }

    fn of_pool(&mut self, bytes: &mut Bytes<'_>) {
        if !bytes.rarely() {
            self.now += u64::from(bytes.next());
        }
        let (pool, now) = (self.pool(bytes), self.now);
        let handle = pool.map_or_else(|wild| wild, |index| self.pools[index].handle);
        let connection = u64::from(bytes.next() % 32);
        let given = self.number();
        let (mut waiter, mut payload, mut frees) = (None, None, false);
        let status = match bytes.next() % 32 {
            0..=3 => {
                let request = pool.map_or(0, |index| self.pools[index].request) + 1;
                waiter = Some(given);
                let deadline = if bytes.rarely() { now + 5 } else { NEVER };
                let purpose = u32::from(bytes.next() % 4);
                cenote_check_out(handle, now, request, given, deadline, purpose)
            }
            4 => cenote_cancel(handle, now, u64::from(bytes.next())),
            5..=8 => {
                payload = Some(given);
                cenote_established(handle, now, connection, given)
            }
            9..=11 => {
                payload = Some(given);
                cenote_check_in(handle, now, connection, given)
            }
            12 => {
                payload = Some(given);
                cenote_check_in_errored(handle, now, connection, given, self.cause(bytes).0)
            }
            13 => {
                payload = Some(given);
                let cause = self.cause(bytes).0;
                cenote_check_in_pending_response(handle, now, connection, given, 7, cause)
            }
            14 => cenote_establish_failed(handle, now, connection, self.cause(bytes).0),
            15 => cenote_idle_closed_by_peer(handle, now, connection, self.cause(bytes).0),
            16 => {
                payload = Some(given);
                cenote_drained(handle, now, connection, given)
            }
            17 => cenote_drain_failed(handle, now, connection, self.cause(bytes).0),
            18 => cenote_drain_progress(handle, now, connection),
            19 => cenote_retire_connections(handle, now),
            20 => cenote_release_idle(handle, now),
            21 => cenote_ready(handle, now),
            22 => {
                let (cause, interrupt) = (self.cause(bytes).0, bytes.rarely());
                checked::clear(handle, now, cause, interrupt, bytes.service())
            }
            23 => cenote_timer(handle, now),
            24 => cenote_repurpose(handle, now, connection, u32::from(bytes.next() % 4)),
            25 if bytes.rarely() => {
                let clears = u64::from(bytes.next() % 4);
                checked::handshaken_late(handle, now, connection, bytes.service(), clears)
            }
            25 => checked::handshaken(handle, now, connection, bytes.service()),
            26 => checked::set_options(handle, now, &Self::options(bytes)),
            27 => cenote_set_events(handle, u32::from(bytes.next() % 2)),
            28 if bytes.rarely() => cenote_close(handle, now),
            29 if bytes.rarely() => cenote_reset_after_fork(handle, now),
            30 if bytes.rarely() => {
                frees = true;
                cenote_pool_free(handle)
            }
            31 => Self::trace(handle, bytes),
            _ => {
                Self::look(handle, connection, self.cause(bytes).0);
                Status::Ok
            }
        };
        assert_ne!(status, Status::Panicked, "{}", checked::last_error());
        assert_ne!(status, Status::Busy);
        let Ok(index) = pool else { return };
        let held = &mut self.pools[index];
        assert!(!held.is_freed || status != Status::Misuse);
        if status == Status::Ok && !held.is_freed {
            held.request += u64::from(waiter.is_some());
            held.waiters.extend(waiter);
            held.payloads.extend(payload);
            held.is_freed = frees;
        }
        if !bytes.rarely() {
            held.pull(u32::from(bytes.next() % 4));
        }
    }

    fn trace(handle: *mut Pool, bytes: &mut Bytes<'_>) -> Status {
        match bytes.next() % 3 {
            0 => cenote_trace_start(handle, u32::from(bytes.next() % 2)),
            1 => cenote_trace_stop(handle),
            _ => checked::trace_read(handle, usize::from(bytes.next())).err().unwrap_or(Status::Ok),
        }
    }

    /// Whatever can be asked.
    fn look(handle: *mut Pool, connection: u64, cause: *const Cause) {
        let generation = checked::generation_of(handle, connection);
        let info = checked::connection(handle, connection);
        assert_eq!(info.map(|it| it.generation), generation);
        let _ = checked::verdict(handle, connection, cause, Some(([1; 12], 2)));
        let _ = checked::monitor_verdict(cause);
        let _ = checked::generation(handle, Some([1; 12]));
        let available = checked::next_available(handle).map(|(number, _)| number);
        if let Ok(number) = available {
            assert_eq!(checked::connection(handle, number).map(|it| it.state), Ok(1));
        }
        let deadline = checked::next_deadline(handle);
        assert!(deadline.is_err() || checked::needs_now(handle).is_ok());
        let _ = checked::fingerprint(handle);
    }

    fn end(&mut self) {
        for held in &mut self.pools {
            if held.is_freed {
                assert_eq!(cenote_pool_free(held.handle), Status::BadHandle);
                continue;
            }
            assert_eq!(cenote_close(held.handle, self.now), Status::Ok);
            held.pull(0);
            assert!(held.waiters.is_empty(), "each request has its outcome");
            let left = checked::snapshot(held.handle).expect("a pool");
            // Those that are in use, or drained, have their payload with the driver.
            assert!(held.payloads.is_empty(), "{:?} of {left:?}", held.payloads);
            assert_eq!(left.total, left.in_use);
            assert_eq!(cenote_pool_free(held.handle), Status::Ok);
        }
        for &(cause, references) in &self.causes {
            if references > 0 {
                assert_eq!(checked::cause_users(cause), Ok(0), "no pool is left");
            }
            for _ in 0..references {
                assert_eq!(cenote_cause_release(cause), Status::Ok);
            }
            assert_eq!(cenote_cause_release(cause), Status::BadHandle);
        }
    }
}

impl Held {
    /// Pulls actions, all or a few.
    fn pull(&mut self, at_most: u32) {
        for count in 1.. {
            let action = match checked::next_action(self.handle) {
                Ok(action) => action,
                Err(status) => {
                    assert!(self.is_freed && status == Status::BadHandle, "{status:?}");
                    return;
                }
            };
            if action.kind == ActionKind::None as u32 {
                return;
            }
            self.take(&action);
            if count == at_most {
                return;
            }
        }
    }

    fn take(&mut self, action: &Action) {
        let is = |kind: ActionKind| action.kind == kind as u32;
        if is(ActionKind::Deliver) {
            assert!(self.waiters.remove(&action.waiter), "each request has one outcome");
        }
        let has_payload = is(ActionKind::CloseSocket)
            || is(ActionKind::StartDrain)
            || (is(ActionKind::Deliver) && action.error == 0);
        if has_payload {
            assert!(self.payloads.remove(&action.payload), "a payload moves");
        }
        for kind in 0..10 {
            let text = checked::action_text(self.handle, kind);
            match text {
                Ok(_) | Err(Status::Nothing) => {}
                Err(Status::BadValue) if kind == 9 => {}
                Err(status) => panic!("{status:?}: {}", checked::last_error()),
            }
            let is_log = kind == TextKind::Log as u32;
            assert!(!is_log || text.is_ok() == is(ActionKind::EmitEvent));
        }
        let cause = checked::action_cause(self.handle);
        assert_eq!(cause.is_ok(), action.has_cause);
        if let Ok(cause) = cause {
            assert_eq!(cenote_cause_release(cause), Status::Ok);
        }
    }
}
