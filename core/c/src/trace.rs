//! Recording: every input with its time, as a trace that `cenote replay` reads.

use std::ffi::c_char;
use std::io;

use cenote_core::address::ServerAddress;
use cenote_core::error::Stage;
use cenote_core::pool::Instant;
use cenote_core::trace::{JournalOptions, TraceInfo, TraceWriter};

use crate::pointer::{Out, Text, optional_text};
use crate::pool::{Inner, Pool, answer, with};
use crate::status::{Failure, Status, call, numbered};

/// The recording of a pool.
pub(crate) enum Trace {
    Never,
    Running(Box<TraceWriter<Vec<u8>>>),
    /// What was not read yet.
    Ended(Vec<u8>),
}

const PROGRAM: &str = concat!("libcenote ", env!("CARGO_PKG_VERSION"));

impl Trace {
    /// Moves what was recorded into the writer.
    fn write(inner: &mut Inner) -> Result<(), Failure> {
        let Self::Running(writer) = &mut inner.trace else { return Ok(()) };
        inner.machine.flush();
        while let Some(chunk) = inner.machine.take_chunk() {
            writer.write(&chunk).map_err(|error| failed(&error))?;
            inner.machine.give_back(chunk);
        }
        writer.flush().map_err(|error| failed(&error))
    }
}

/// Memory takes all bytes.
fn failed(error: &io::Error) -> Failure {
    Failure::new(Status::Panicked, format!("a trace in memory: {error}"))
}

/// What is unless the application says otherwise.
pub(crate) fn default_info(address: &ServerAddress) -> TraceInfo {
    TraceInfo::new(address.to_string()).with_program(PROGRAM)
}

/// What the recordings that begin from now on say: `origin`, the milliseconds since 1970 at time 0 of the pool (0: unknown),
/// so that times can be shown as those of a clock; and the name of the `program` (null: this library's).
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_trace_describe(
    pool: *mut Pool,
    origin: i64,
    program: *const c_char,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let program = unsafe { optional_text(program, "the program")? };
        with(pool, |inner| {
            let info = default_info(&inner.address).with_origin(origin);
            inner.trace_info = match program {
                Some(program) => info.with_program(program),
                None => info,
            };
            Ok(())
        })
    })
}

/// Begins to record every input of the pool, and with `actions` not 0 every action, from its present state on. Read the
/// trace now and then (`cenote_trace_read`): the memory for it is bounded, and inputs that it has no room for are
/// only counted. A trace has no payload and no waiter; of causes it has stage, kind, labels and text.
/// `CENOTE_STATUS_NOTHING` if it is recording already.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_trace_start(pool: *mut Pool, actions: u32) -> Status {
    call(|| {
        with(pool, |inner| {
            if let Trace::Running(_) = inner.trace {
                return Err(Failure::new(Status::Nothing, "the pool is being recorded already"));
            }
            let info = inner.trace_info.clone();
            inner.machine.begin_journal(JournalOptions::default().with_actions(actions != 0));
            inner.trace = Trace::Running(Box::new(TraceWriter::new(Vec::new(), info)));
            Ok(())
        })
    })
}

/// Ends the recording. What was not read yet can still be read.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_trace_stop(pool: *mut Pool) -> Status {
    call(|| {
        with(pool, |inner| {
            Trace::write(inner)?;
            match std::mem::replace(&mut inner.trace, Trace::Never) {
                Trace::Running(writer) => {
                    inner.machine.end_journal();
                    inner.trace = Trace::Ended(writer.finish().map_err(|error| failed(&error))?);
                    Ok(())
                }
                before @ (Trace::Never | Trace::Ended(_)) => {
                    inner.trace = before;
                    Err(Failure::new(Status::Nothing, "the pool is not being recorded"))
                }
            }
        })
    })
}

/// The establishment of a connection has come to a `cenote_cause_stage`: for the trace, which tells then where the time went,
/// and where one hangs. Does nothing while the pool is not recorded.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_enter_stage(
    pool: *mut Pool,
    now: u64,
    connection: u64,
    stage: u32,
) -> Status {
    call(|| {
        let stage = numbered(&Stage::ALL, stage, "cenote_cause_stage")?;
        with(pool, |inner| {
            let id = inner.id(connection);
            inner.machine.enter_stage(Instant::from_nanos(now), id, stage);
            Ok(())
        })
    })
}

/// Takes the next bytes of the trace, at most `capacity`; `length` gets their number, which is 0 if there are none at
/// present. Appended to one file, they are the trace.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_trace_read(
    pool: *mut Pool,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let target = unsafe { Text::new(buffer.cast(), capacity, length) };
        with(pool, |inner| {
            Trace::write(inner)?;
            match &mut inner.trace {
                Trace::Never => Err(Failure::new(Status::Nothing, "the pool was never recorded")),
                Trace::Running(writer) => target.take(writer.sink_mut()),
                Trace::Ended(bytes) => target.take(bytes),
            }
        })
    })
}

/// Keeps the latest inputs from now on, in `bytes` bytes of memory (a flight recorder): from 1,024 to 2^30, beside two copies of the pool's
/// state. What one has kept before is lost.
#[unsafe(no_mangle)]
pub extern "C" fn cenote_flight_start(pool: *mut Pool, bytes: usize) -> Status {
    call(|| {
        if !(1 << 10..=1 << 30).contains(&bytes) {
            let what = format!("{bytes} bytes for a flight recorder: from 1024 to 1073741824");
            return Err(Failure::new(Status::BadValue, what));
        }
        with(pool, |inner| {
            inner.machine.begin_flight_recorder(bytes);
            Ok(())
        })
    })
}

/// Writes what the flight recorder has kept, as a whole trace; it goes on. With less room than that needs, nothing is written, and the call
/// returns `CENOTE_STATUS_TRUNCATED`; `length` gets the number of bytes in any case. `CENOTE_STATUS_NOTHING` if there is no flight recorder.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_flight_read(
    pool: *mut Pool,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let target = unsafe { Text::new(buffer.cast(), capacity, length) };
        with(pool, |inner| {
            let none = || Failure::new(Status::Nothing, "the pool has no flight recorder");
            let recording = inner.machine.flight_recording().ok_or_else(none)?;
            let trace = recording.write_to(&inner.trace_info, Vec::new());
            target.copy(&trace.map_err(|error| failed(&error))?)
        })
    })
}

/// A number that is the same for two pools in the same state, whatever their payloads: to compare a replay with the
/// fingerprints in a trace (`fp`). It differs between versions of the library. Takes time in proportion to the pool's
/// size.
///
/// # Safety
///
/// The pointers are valid, as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cenote_fingerprint(pool: *const Pool, fingerprint: *mut u64) -> Status {
    // SAFETY: the caller's promise.
    let out = unsafe { Out::plain(fingerprint, "the fingerprint") };
    answer(pool, out, |inner| Ok(inner.machine.fingerprint()))
}
