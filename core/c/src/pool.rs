//! A pool behind its handle.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_char;
use std::ptr;
use std::sync::{Arc, Mutex};

use cenote_core::address::ServerAddress;
use cenote_core::log::LogSettings;
use cenote_core::pool::{
    Action, ActionSink, ConnId, Input, Instant, InvalidOptions, PoolOptions, PoolState, PoolTypes,
};
use cenote_core::trace::{Recorder, TraceInfo};

use crate::action::ActionRecord;
use crate::cause::SharedCause;
use crate::options::{Options, options as read_options};
use crate::pointer::{Out, text};
use crate::status::{Failure, Status, call};
use crate::table::Table;
use crate::trace::{Trace, default_info};

/// A pool: the state machine, and the actions that were not pulled yet.
#[derive(Debug)]
pub struct Pool(());

/// No deadline; as a time, the end of it.
pub const NEVER: u64 = u64::MAX;

/// A number or a pointer of the driver: `uintptr_t`.
pub type HandleWord = usize;

/// The payloads of a driver in C: numbers.
pub(crate) enum DriverTypes {}

impl PoolTypes for DriverTypes {
    type Conn = HandleWord;
    type Waiter = HandleWord;
    type Cause = SharedCause;
}

pub(crate) struct Inner {
    pub(crate) machine: Recorder<DriverTypes>,
    pub(crate) address: Arc<ServerAddress>,
    pub(crate) log: LogSettings,
    /// What texts can be asked of the action that was pulled last.
    pub(crate) last_action: ActionRecord,
    pub(crate) outbox: Outbox,
    pub(crate) trace: Trace,
    pub(crate) trace_info: TraceInfo,
}

/// Takes the actions of the machine.
pub(crate) struct Outbox {
    pub(crate) actions: VecDeque<Action<DriverTypes>>,
    pub(crate) wants_events: bool,
    /// The slot of each connection, so that C has CMAP's number alone. Some are of closed connections.
    slots: BTreeMap<u64, u32>,
}

static POOLS: Table<Mutex<Inner>> = Table::new(1, "pool");

impl ActionSink<DriverTypes> for Outbox {
    fn act(&mut self, action: Action<DriverTypes>) {
        if let Action::StartEstablish { id, .. } = &action {
            self.slots.insert(id.number(), id.slot());
        }
        self.actions.push_back(action);
    }

    fn wants_events(&self) -> bool {
        self.wants_events
    }
}

impl Inner {
    /// The machine's id of a connection. One that is closed, or never was, has a slot that none has; the
    /// machine then says which of the two.
    pub(crate) fn id(&self, connection: u64) -> ConnId {
        let slot = self.outbox.slots.get(&connection).copied();
        ConnId::from_parts(connection, slot.unwrap_or(u32::MAX))
    }

    fn handle(&mut self, now: u64, input: Input<DriverTypes>) -> Result<(), Failure> {
        let now = Instant::from_nanos(now);
        let outcome = self.machine.handle(now, input, &mut self.outbox);
        outcome.map_err(|misuse| Failure::new(Status::Misuse, misuse.to_string()))?;
        // Forgetting costs a constant time per connection that was ever made.
        if self.outbox.slots.len() > 2 * self.machine.snapshot().total as usize + 64 {
            let machine = &self.machine;
            let is_known = |number: &u64, slot: &mut u32| {
                machine.generation_of(ConnId::from_parts(*number, *slot)).is_some()
            };
            self.outbox.slots.retain(is_known);
        }
        Ok(())
    }
}

/// Runs a call on a pool, unless another thread is in one.
pub(crate) fn with<R>(
    pool: *const Pool,
    body: impl FnOnce(&mut Inner) -> Result<R, Failure>,
) -> Result<R, Failure> {
    POOLS.with_locked(pool.addr(), body)
}

/// Answers a question about a pool.
pub(crate) fn answer<T>(
    pool: *const Pool,
    out: Result<Out<T>, Failure>,
    ask: impl FnOnce(&mut Inner) -> Result<T, Failure>,
) -> Status {
    call(|| {
        let out = out?;
        out.write(with(pool, ask)?);
        Ok(())
    })
}

/// Feeds one input.
pub(crate) fn feed(
    pool: *mut Pool,
    now: u64,
    input: impl FnOnce(&Inner) -> Result<Input<DriverTypes>, Failure>,
) -> Status {
    call(|| {
        with(pool, |inner| {
            let input = input(inner)?;
            inner.handle(now, input)
        })
    })
}

/// Makes a pool for the server at `address` (`host:port`), which its texts name: paused and empty. Its first
/// action is the event `CENOTE_EVENT_KIND_POOL_CREATED`. Times are nanoseconds of any clock that does not run
/// backwards.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_pool_new(
    address: *const c_char,
    options: *const Options,
    now: u64,
    pool: *mut *mut Pool,
) -> Status {
    // SAFETY: the caller's promise.
    call(|| unsafe { make(address, options, now, pool, PoolState::new) })
}

/// Makes a pool that is ready from the start: for servers without a monitor, such as those behind a load balancer. There
/// is no `CENOTE_EVENT_KIND_POOL_READY`; `minPoolSize` is kept at once. Everything else is as with `cenote_pool_new`.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_pool_new_ready(
    address: *const c_char,
    options: *const Options,
    now: u64,
    pool: *mut *mut Pool,
) -> Status {
    // SAFETY: the caller's promise.
    call(|| unsafe { make(address, options, now, pool, PoolState::new_ready) })
}

/// How the core makes a pool.
type Make = fn(Instant, PoolOptions, &mut Outbox) -> Result<PoolState<DriverTypes>, InvalidOptions>;

/// # Safety
///
/// The pointers are valid, as the header says.
unsafe fn make(
    address: *const c_char,
    options: *const Options,
    now: u64,
    pool: *mut *mut Pool,
    make: Make,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let (address, options, out) = unsafe {
        (text(address, "the address")?, read_options(options)?, Out::plain(pool, "the pool")?)
    };
    let address: ServerAddress = address
        .parse()
        .map_err(|error| Failure::new(Status::BadText, format!("the address: {error}")))?;
    let log = match options.max_log_text()? {
        Some(length) => LogSettings::default().with_max_document_length(length),
        None => LogSettings::default(),
    };
    let (actions, slots) = (VecDeque::new(), BTreeMap::new());
    let mut outbox = Outbox { actions, wants_events: true, slots };
    let machine = make(Instant::from_nanos(now), options.to_core()?, &mut outbox)
        .map_err(|error| Failure::new(Status::BadOptions, error.to_string()))?;
    let inner = Inner {
        machine: Recorder::new(machine),
        trace_info: default_info(&address),
        address: Arc::new(address),
        log,
        last_action: ActionRecord::Nothing,
        outbox,
        trace: Trace::Never,
    };
    out.write(ptr::without_provenance_mut(POOLS.insert(Mutex::new(inner))?));
    Ok(())
}

/// Frees a pool, whatever its state. Its payloads and waiters are the driver's: close it, and perform the
/// actions until its snapshot says `total` 0, to get all of them back.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_pool_free(pool: *mut Pool) -> Status {
    call(|| POOLS.release(pool.addr()).map(drop))
}

/// Whether actions of kind `CENOTE_ACTION_KIND_EMIT_EVENT` are made; a new pool makes them. A driver that has no
/// subscriber and does not log saves time without them.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_set_events(pool: *mut Pool, wanted: u32) -> Status {
    call(|| {
        with(pool, |inner| {
            inner.outbox.wants_events = wanted != 0;
            Ok(())
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::checked;
    use crate::input::cenote_timer;

    use super::*;

    #[test]
    fn another_call_meanwhile_is_refused() {
        let pool = checked::pool_new("db:1", &Options::default(), 0).unwrap();
        let meanwhile = with(pool, |_| Ok([cenote_timer(pool, 1), cenote_pool_free(pool)]));
        assert_eq!(meanwhile.unwrap(), [Status::Busy; 2]);
        assert!(checked::last_error().contains("another thread is in a call with this pool"));
        assert_eq!(cenote_pool_free(pool), Status::Ok);
    }
}
