//! Recordings: what is recorded, where it is written, and what becomes of the pool if it cannot be.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use cenote_core::trace::{Disclosure, JournalOptions, Replay};
use cenote_shell::builder::{BuildError, Builder};
use cenote_shell::trace::{Recording, RecordingError};
use tempfile::tempdir;

use crate::pool::blocking::{TestConnection, TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, at_most, builder, failure};
use crate::recording::shared_buffer::{Broken, SharedBuffer, Slow, begun_life, life, steps};

on_all_runtimes!(
    everything_is_recorded_from_the_first_input_on,
    a_recording_is_written_as_it_goes_on,
    the_trace_is_whole_when_the_pool_is_gone,
    many_chunks_keep_their_order,
    a_writer_that_fails_ends_the_recording_and_not_the_pool,
    what_cannot_be_written_is_told_when_the_pool_is_built,
    texts_and_address_are_told_as_it_was_asked_for,
    nobody_waits_for_a_slow_writer_and_what_is_missing_is_told,
);

/// Two connections, one of them from a failure, and a clear.
pub(crate) fn live<R: TestRuntime>(pool: &R::Pool<Gate>) {
    pool.ready();
    let first = pool.check_out().expect("a connection");
    let mut second = pool.check_out().expect("another one");
    second.mark_errored(failure());
    // One after the other: `first` is the one that is there next.
    drop(first);
    drop(second);
    pool.set_options(at_most(3)).expect("good options");
    pool.clear(failure(), true);
    pool.ready();
    drop(pool.check_out().expect("a new one"));
    drop(pool.try_check_out().expect("a ready pool"));
}

pub(crate) const LIFE: [&str; 16] = [
    "Ready",
    "CheckOutRequested",
    "EstablishSucceeded",
    "CheckOutRequested",
    "EstablishSucceeded",
    "CheckedIn",
    "CheckedIn",
    "SetOptions",
    "Clear",
    "Ready",
    "CheckOutRequested",
    "EstablishSucceeded",
    "CheckedIn",
    "CheckOutRequested",
    "CheckedIn",
    "Close",
];

/// A builder of at most so many connections, which are opened at once.
pub(crate) fn limited<R: TestRuntime>(connections: u32) -> Builder<R::Pool<Gate>> {
    builder::<R>(&Gate::open(), at_most(connections))
}

fn recorded<R: TestRuntime>(connections: u32, recording: impl Into<Recording>) -> R::Pool<Gate> {
    limited::<R>(connections).record(recording).build().expect("a pool")
}

/// Why no pool can be built.
pub(crate) fn refusal<R: TestRuntime>(builder: Builder<R::Pool<Gate>>) -> RecordingError {
    match builder.build() {
        Err(BuildError::Recording(error)) => error,
        outcome => panic!("{outcome:?}"),
    }
}

fn everything_is_recorded_from_the_first_input_on<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("pool.bson");
    let pool = recorded::<R>(2, path.as_path());
    live::<R>(&pool);
    pool.close();
    pool.end_recording().expect("a whole trace");
    let trace = fs::read(&path).expect("a file");
    assert_eq!(life(&trace), LIFE);
    let replay = Replay::new(trace.as_slice()).expect("a trace");
    assert!(replay.header().is_new);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let age = i64::try_from(now.as_millis()).expect("a date") - replay.header().origin;
    assert!((0..60_000).contains(&age), "{age} ms");
    assert_eq!(replay.header().address.as_deref(), Some("db.example.com:27017"));
    assert!(replay.header().program.as_deref().is_some_and(|name| name.starts_with(R::PROGRAM)));

    // It is over, and stays as it is.
    assert!(pool.check_out().is_err());
    pool.end_recording().expect("nothing to end");
    drop(pool);
    assert_eq!(fs::read(&path).expect("a file"), trace);
}

/// A recording that is not ended is at most a second behind, and so is what a crash leaves.
fn a_recording_is_written_as_it_goes_on<R: TestRuntime>() {
    let buffer = SharedBuffer::default();
    let pool = recorded::<R>(2, Recording::to_writer(buffer.clone()));
    live::<R>(&pool);
    let began = Instant::now();
    while begun_life(&buffer.read()) != LIFE[..15] {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", begun_life(&buffer.read()));
        std::thread::sleep(Duration::from_millis(20));
    }
    pool.close();
}

fn the_trace_is_whole_when_the_pool_is_gone<R: TestRuntime>() {
    let buffer = SharedBuffer::default();
    let (gone, all_gone) = std::sync::mpsc::channel::<()>();
    let recording = Recording::to_writer(Last(buffer.clone(), gone));
    let pool = recorded::<R>(2, recording);
    live::<R>(&pool);
    drop(pool);
    // The writer is dropped with its last user, which may be a thread of the pool.
    assert!(all_gone.recv().is_err());
    let life = life(&buffer.read());
    // The end of a runtime closes the pool once more.
    let (before, closes) = life.split_at(15);
    assert_eq!(before, &LIFE[..15]);
    assert!(!closes.is_empty() && closes.iter().all(|name| *name == "Close"), "{closes:?}");
}

/// A writer, and a channel that reports its drop.
struct Last(
    SharedBuffer,
    #[expect(dead_code, reason = "it is there to be dropped")] std::sync::mpsc::Sender<()>,
);

impl std::io::Write for Last {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn many_chunks_keep_their_order<R: TestRuntime>() {
    let buffer = SharedBuffer::default();
    let journal = JournalOptions::default()
        .with_chunk_bytes(256)
        .with_backlog(1 << 20)
        .with_fingerprint_every(1)
        .with_actions(true);
    let recording = Recording::to_writer(buffer.clone()).with_journal(journal);
    let pool = recorded::<R>(1, recording);
    pool.ready();
    for _ in 0..2_000 {
        drop(pool.check_out().expect("a connection"));
    }
    pool.end_recording().expect("a whole trace");
    let steps = steps(&buffer.read());
    assert!(steps.len() > 4_000 && steps.iter().all(|step| step.lost_before.is_none()));
}

fn a_writer_that_fails_ends_the_recording_and_not_the_pool<R: TestRuntime>() {
    for (panics, why) in [(false, "no space left"), (true, "the writer panicked")] {
        let recording = Recording::to_writer(Broken { panics });
        let builder = limited::<R>(2).record(recording).flight_recorder(4096);
        let pool = builder.build().expect("a pool");
        live::<R>(&pool);
        let error = pool.end_recording().expect_err("it cannot be written");
        assert!(matches!(error, RecordingError::Writer(_)), "{error:?}");
        assert_eq!(error.to_string(), format!("no trace can be written: {why}"));
        // Asking again returns it again.
        assert!(pool.end_recording().is_err());
        drop(pool.check_out().expect("a connection"));
        assert!(!life(&pool.write_trace().expect("memory")).is_empty());
        pool.close();
    }
}

fn what_cannot_be_written_is_told_when_the_pool_is_built<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let nowhere = folder.path().join("absent").join("pool.bson");
    let error = refusal::<R>(limited::<R>(1).record(nowhere.clone()));
    assert!(error.to_string().contains(nowhere.to_str().expect("text")), "{error}");
    assert!(matches!(error, RecordingError::File { .. }));

    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let error = refusal::<R>(limited::<R>(1).dump_traces_into(&file));
    assert!(error.to_string().contains("file"), "{error}");
}

fn texts_and_address_are_told_as_it_was_asked_for<R: TestRuntime>() {
    let traces = |texts, addresses| {
        let buffer = SharedBuffer::default();
        let recording = Recording::to_writer(buffer.clone());
        let builder = limited::<R>(2).record(recording).flight_recorder(64 << 10);
        let pool = builder.trace_disclosure(texts, addresses).build().expect("a pool");
        live::<R>(&pool);
        let dump = pool.write_trace().expect("memory");
        pool.end_recording().expect("a whole trace");
        [dump, buffer.read()]
    };
    let holds = |trace: &[u8], text: &str| {
        trace.windows(text.len()).any(|window| window == text.as_bytes())
    };
    for trace in traces(Disclosure::Plain, Disclosure::Plain) {
        assert!(holds(&trace, "reset by the test") && holds(&trace, "db.example.com"));
    }
    for disclosure in [Disclosure::Hashed, Disclosure::Omitted] {
        for trace in traces(disclosure, disclosure) {
            assert!(!holds(&trace, "reset by the test") && !holds(&trace, "db.example.com"));
            let address = Replay::new(trace.as_slice()).expect("a trace").header().address.clone();
            assert_eq!(address.is_some(), disclosure == Disclosure::Hashed);
            assert_eq!(life(&trace), LIFE[..15]);
        }
    }
}

fn nobody_waits_for_a_slow_writer_and_what_is_missing_is_told<R: TestRuntime>() {
    let (go_on, gate) = std::sync::mpsc::channel();
    let buffer = SharedBuffer::default();
    let journal = JournalOptions::default().with_chunk_bytes(1 << 10).with_backlog(2);
    let recording = Recording::to_writer(Slow(gate, buffer.clone())).with_journal(journal);
    let pool = recorded::<R>(1, recording);
    pool.ready();
    for _ in 0..20_000 {
        drop(pool.check_out().expect("a connection"));
    }
    drop(go_on);
    pool.end_recording().expect("a whole trace");
    let steps = steps(&buffer.read());
    let lost: u64 = steps.iter().filter_map(|step| step.lost_before).sum();
    assert!(lost > 0, "{} steps", steps.len());
    assert!(steps.len() as u64 + lost > 40_000);
}
