//! The first panic, dumped.

use std::io::{self, Write};
use std::panic;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use super::reason::Reason;
use super::recordable::{ChunkWriter, Recordable as _};
use super::traced::{Traced, WriterOf};
use super::traces::{self, Traces};
use crate::runtime::contain;

/// How often, and at what intervals, the lock is tried: a thread releases it within microseconds, unless it
/// is the one that panics.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(1);

/// What dumps what was last.
trait Dumped: Send + Sync {
    /// For the first panic of all.
    fn dump(&self);
}

/// Those that have not been dumped.
static POOLS: Mutex<Vec<Weak<dyn Dumped>>> = Mutex::new(Vec::new());

/// Starts writing the recording, and watching for reasons to dump. To be called once, when it is made.
pub fn watch<T: Traced>(traced: &Arc<T>) {
    let weak: Weak<T> = Arc::downgrade(traced);
    traced.locked(|recorded| recorded.show(weak.clone()));
    if traced.traces().dumps_by_itself() {
        dump_at_panic(weak);
    }
}

/// Has it dumped at the first panic, of whatever thread.
fn dump_at_panic<T: Traced>(traced: Weak<T>) {
    static HOOK: Once = Once::new();
    let mut pools = pools();
    pools.retain(|pool| pool.strong_count() != 0);
    pools.push(traced);
    drop(pools);
    // A hook cannot be set in the middle of a panic.
    if !thread::panicking() {
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                before(info);
                dump_all();
            }));
        });
    }
}

fn dump_all() {
    let pools = std::mem::take(&mut *pools());
    let pools: Vec<_> = pools.iter().filter_map(Weak::upgrade).collect();
    if pools.is_empty() {
        return;
    }
    pools.iter().for_each(|pool| pool.dump());
    // Any of these may be the last handle. What it closes is other people's code, which must not run
    // in a hook, where a panic ends the process.
    let closing = thread::Builder::new().spawn(move || drop(pools));
    drop(closing);
}

fn pools() -> MutexGuard<'static, Vec<Weak<dyn Dumped>>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Traced> Dumped for T {
    fn dump(&self) {
        for _ in 0..ATTEMPTS {
            match self.try_locked(|recorded| recorded.flight_recording()) {
                Some(recording) => {
                    return write::<WriterOf<T>>(recording.as_ref(), self.traces());
                }
                None => thread::sleep(PAUSE),
            }
        }
    }
}

fn write<W: ChunkWriter>(recording: Option<&W::Flight>, traces: &Traces) {
    let Some(recording) = recording else { return };
    if !traces.is_first_panic() {
        return;
    }
    let Some(file) = traces.file(Reason::Panic) else { return };
    // Not through `tracing`: whatever it calls may be what has panicked.
    let _ = match traces::write::<W>(recording, traces.info(), &file) {
        Ok(path) => writeln!(io::stderr(), "what went before is in {}", path.display()),
        Err(error) => writeln!(io::stderr(), "{error}"),
    };
}

/// Held while the machine is fed, and dumps when it is dropped, which must only happen by unwinding:
/// after the lock was given back that kept the hook from doing so.
#[derive(Debug)]
pub struct PanicGuard<'a, T: Traced>(&'a T);

impl<'a, T: Traced> PanicGuard<'a, T> {
    /// To be made before the lock is taken.
    #[inline(always)]
    pub const fn new(traced: &'a T) -> Self {
        Self(traced)
    }

    /// There was no panic.
    #[inline(always)]
    pub const fn defuse(self) {
        std::mem::forget(self);
    }
}

impl<T: Traced> Drop for PanicGuard<'_, T> {
    #[cold]
    fn drop(&mut self) {
        if !self.0.traces().dumps_by_itself() {
            return;
        }
        // In the middle of a panic a second one would end the process, and the state may be
        // anything.
        contain(|| self.0.dump());
    }
}
