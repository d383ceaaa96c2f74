//! What is recorded, where it is written, and what becomes of the pool if it cannot be.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote_core::trace::{Disclosure, JournalOptions, Replay, Step};
use cenote_tokio::{BuildError, Recording, RecordingError};
use tempfile::tempdir;

use crate::world::{Gate, at_most, builder, failure, settle};

type Pool = cenote_tokio::Pool<Gate>;

/// Memory that can be read while it is written.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn read(&self) -> Vec<u8> {
        self.0.lock().expect("no panic").clone()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// All steps of a trace, which must replay to its end as it was recorded.
fn steps(trace: &[u8]) -> Vec<Step> {
    let mut replay = Replay::new(trace).expect("a trace");
    let mut steps = Vec::new();
    while let Some(step) = replay.step(&mut |_| {}).expect("it goes the way it went") {
        steps.push(step);
    }
    steps
}

fn names(trace: &[u8]) -> Vec<&'static str> {
    steps(trace).iter().map(|step| step.input.name()).collect()
}

/// Two connections, one of them from a failure, and a clear.
async fn live(pool: &Pool) {
    pool.ready();
    let first = pool.check_out().await.expect("a connection");
    let mut second = pool.check_out().await.expect("another one");
    second.mark_errored(failure());
    drop((first, second));
    pool.set_options(at_most(3)).expect("good options");
    pool.clear(failure(), true);
    pool.ready();
    drop(pool.check_out().await.expect("a new one"));
    drop(pool.try_check_out().expect("a ready pool"));
}

const LIFE: [&str; 16] = [
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

/// Without what only some pools are told.
fn life(trace: &[u8]) -> Vec<&'static str> {
    names(trace).into_iter().filter(|name| !matches!(*name, "Timer" | "Handshaken")).collect()
}

#[tokio::test(start_paused = true)]
async fn everything_is_recorded_from_the_first_input_on() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("pool.bson");
    let pool = builder(&Gate::open(), at_most(2)).record(path.as_path()).build().expect("a pool");
    live(&pool).await;
    pool.close().await;
    pool.end_recording().await.expect("a whole trace");
    let trace = fs::read(&path).expect("a file");
    assert_eq!(life(&trace), LIFE);
    let replay = Replay::new(trace.as_slice()).expect("a trace");
    assert!(replay.header().is_new);
    assert_eq!(replay.header().address.as_deref(), Some("db.example.com:27017"));
    assert!(
        replay.header().program.as_deref().is_some_and(|name| name.starts_with("cenote-tokio"))
    );

    // It is over, and stays as it is.
    assert!(pool.check_out().await.is_err());
    pool.end_recording().await.expect("nothing to end");
    drop(pool);
    assert_eq!(fs::read(&path).expect("a file"), trace);
}

#[test]
fn the_trace_is_whole_when_pool_and_runtime_are_gone() {
    let paper = Paper::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let recording = Recording::to_writer(paper.clone());
        let pool = builder(&Gate::open(), at_most(2)).record(recording).build().expect("a pool");
        live(&pool).await;
    });
    drop(runtime);
    // The end of the runtime closes it once more.
    let (life, again) = (life(&paper.read()), ["Close"]);
    assert_eq!(life, [LIFE.as_slice(), again.as_slice()].concat());
}

#[tokio::test(start_paused = true)]
async fn many_chunks_keep_their_order() {
    let paper = Paper::default();
    let journal = JournalOptions::default()
        .with_chunk_bytes(256)
        .with_backlog(1 << 20)
        .with_fingerprint_every(1)
        .with_actions(true);
    let recording = Recording::to_writer(paper.clone()).with_journal(journal);
    let pool = builder(&Gate::open(), at_most(1)).record(recording).build().expect("a pool");
    pool.ready();
    for _ in 0..2_000 {
        drop(pool.check_out().await.expect("a connection"));
    }
    pool.end_recording().await.expect("a whole trace");
    let steps = steps(&paper.read());
    assert!(steps.len() > 4_000 && steps.iter().all(|step| step.lost_before.is_none()));
}

/// Fails, or panics, as soon as it is used.
struct Broken {
    panics: bool,
}

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        if self.panics {
            // Quietly: a panic with a payload and no message.
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        Err(io::Error::other("no space left"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_fails_ends_the_recording_and_not_the_pool() {
    for (panics, why) in [(false, "no space left"), (true, "the writer panicked")] {
        let recording = Recording::to_writer(Broken { panics });
        let builder = builder(&Gate::open(), at_most(2)).record(recording);
        let pool = builder.flight_recorder(4096).build().expect("a pool");
        live(&pool).await;
        let error = pool.end_recording().await.expect_err("it cannot be written");
        assert!(matches!(error, RecordingError::Writer(_)), "{error:?}");
        assert_eq!(error.to_string(), format!("no trace can be written: {why}"));
        // Whoever asks again hears it again.
        assert!(pool.end_recording().await.is_err());
        drop(pool.check_out().await.expect("a connection"));
        assert!(!names(&pool.write_trace(Vec::new()).expect("memory")).is_empty());
        pool.close().await;
    }
}

#[tokio::test]
async fn what_cannot_be_written_is_told_when_the_pool_is_built() {
    let folder = tempdir().expect("a folder");
    let nowhere = folder.path().join("absent").join("pool.bson");
    let error = builder(&Gate::open(), at_most(1)).record(nowhere.clone()).build();
    let error = error.expect_err("no such folder");
    assert!(error.to_string().contains(nowhere.to_str().expect("text")), "{error}");
    assert!(matches!(error, BuildError::Recording(RecordingError::File { .. })));

    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let error = builder(&Gate::open(), at_most(1)).dump_traces_into(&file).build();
    assert!(error.expect_err("it is a file").to_string().contains("file"));
}

#[tokio::test(start_paused = true)]
async fn a_dump_tells_how_the_pool_came_to_be_as_it_is() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("dump.bson");
    let pool = builder(&Gate::open(), at_most(2)).flight_recorder(64 << 10).build();
    let pool = pool.expect("a pool");
    live(&pool).await;
    pool.dump_trace(&path).expect("a dump");
    let trace = fs::read(&path).expect("a file");
    assert_eq!(life(&trace), LIFE[..15]);
    assert_eq!(trace, pool.write_trace(Vec::new()).expect("memory"));
    let mut replay = Replay::new(trace.as_slice()).expect("a trace");
    replay.verify().expect("it goes the way it went");
    assert_eq!(replay.pool().snapshot().to_string(), pool.snapshot().to_string());

    let nowhere = folder.path().join("absent").join("dump.bson");
    assert!(matches!(pool.dump_trace(nowhere), Err(RecordingError::File { .. })));
    let pool = builder(&Gate::open(), at_most(2)).build().expect("a pool");
    assert!(matches!(pool.dump_trace(&path), Err(RecordingError::NoFlightRecorder)));
}

#[tokio::test(start_paused = true)]
async fn times_are_told_where_nothing_depends_on_them_too() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("all.bson");
    let builder = builder(&Gate::open(), at_most(1)).flight_recorder(4096).record(path.as_path());
    let pool = builder.build().expect("a pool");
    pool.ready();
    let held = pool.check_out().await.expect("a connection");
    tokio::time::advance(Duration::from_secs(7)).await;
    drop(held);
    pool.end_recording().await.expect("a whole trace");
    let last = steps(&fs::read(path).expect("a file")).pop().expect("a step");
    assert_eq!((last.input.name(), last.at.as_nanos()), ("CheckedIn", 7_000_000_000));

    // A flight recorder by itself does without the clock for what is served at once.
    drop(pool.check_out().await.expect("a connection"));
    tokio::time::advance(Duration::from_secs(2)).await;
    drop(pool.check_out().await.expect("a connection"));
    pool.clear(failure(), false);
    let all = steps(&pool.write_trace(Vec::new()).expect("memory"));
    let [.., pair, last] = all.as_slice() else { panic!("{} steps", all.len()) };
    assert_eq!((pair.input.name(), pair.at.as_nanos()), ("CheckedIn", 7_000_000_000));
    assert_eq!((last.input.name(), last.at.as_nanos()), ("Clear", 9_000_000_000));
}

/// The dumps of a folder whose name ends so.
fn dumps(folder: &Path, reason: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let ends = |path: &PathBuf| path.to_str().is_some_and(|name| name.ends_with(reason));
    files.filter(ends).collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_timeout_is_dumped_with_what_led_to_it() {
    let folder = tempdir().expect("a folder");
    let inner = folder.path().join("made").join("here");
    let options = at_most(1).with_wait_queue_timeout(Duration::from_secs(2));
    let pool = builder(&Gate::open(), options).dump_traces_into(&inner).build().expect("a pool");
    pool.ready();
    let held = pool.check_out().await.expect("a connection");
    // This one does not wait.
    assert!(pool.try_check_out().expect("a ready pool").is_none());
    for _ in 0..3 {
        assert!(pool.check_out().await.expect_err("nothing is there").is_timeout());
    }
    pool.end_recording().await.expect("what is under way is written");
    let [dump] = dumps(&inner, "-wait-queue-timeout.bson").try_into().expect("one dump");
    let mut replay = Replay::new(fs::File::open(&dump).expect("a file")).expect("a trace");
    let mut failed = Vec::new();
    while let Some(step) = replay
        .step(&mut |action| {
            let action = cenote_core::trace::ActionRecord::of(&action);
            failed.extend(action.and_then(|action| action.detail));
        })
        .expect("it goes the way it went")
    {
        if failed.contains(&"waitQueueTimeout") && step.at.as_nanos() > 0 {
            assert_eq!(step.at.as_nanos(), 2_000_000_000);
            assert!(replay.step(&mut |_| {}).expect("good so far").is_none(), "the last step");
        }
    }
    assert_eq!(failed.iter().filter(|detail| **detail == "waitQueueTimeout").count(), 2);
    assert_eq!(replay.pool().snapshot().waiting, 0);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn texts_and_address_are_told_as_it_was_asked_for() {
    let recorded = async |texts, addresses| {
        let paper = Paper::default();
        let recording = Recording::to_writer(paper.clone());
        let pool = builder(&Gate::open(), at_most(2))
            .trace_disclosure(texts, addresses)
            .flight_recorder(64 << 10)
            .record(recording)
            .build()
            .expect("a pool");
        live(&pool).await;
        let dump = pool.write_trace(Vec::new()).expect("memory");
        pool.end_recording().await.expect("a whole trace");
        [dump, paper.read()]
    };
    let holds = |trace: &[u8], text: &str| {
        trace.windows(text.len()).any(|window| window == text.as_bytes())
    };
    for trace in recorded(Disclosure::Plain, Disclosure::Plain).await {
        assert!(holds(&trace, "reset by the test") && holds(&trace, "db.example.com"));
    }
    for disclosure in [Disclosure::Hashed, Disclosure::Omitted] {
        for trace in recorded(disclosure, disclosure).await {
            assert!(!holds(&trace, "reset by the test") && !holds(&trace, "db.example.com"));
            let address = Replay::new(trace.as_slice()).expect("a trace").header().address.clone();
            assert_eq!(address.is_some(), disclosure == Disclosure::Hashed);
            assert_eq!(life(&trace), LIFE[..15]);
        }
    }
}

/// Does not come back before it is let go.
struct Slow(std::sync::mpsc::Receiver<()>, Paper);

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_slow_writer_and_what_is_missing_is_told() {
    let (go_on, gate) = std::sync::mpsc::channel();
    let paper = Paper::default();
    let journal = JournalOptions::default().with_chunk_bytes(1 << 10).with_backlog(2);
    let recording = Recording::to_writer(Slow(gate, paper.clone())).with_journal(journal);
    let pool = builder(&Gate::open(), at_most(1)).record(recording).build().expect("a pool");
    pool.ready();
    for _ in 0..20_000 {
        drop(pool.check_out().await.expect("a connection"));
    }
    settle().await;
    drop(go_on);
    pool.end_recording().await.expect("a whole trace");
    let steps = steps(&paper.read());
    let lost: u64 = steps.iter().filter_map(|step| step.lost_before).sum();
    assert!(lost > 0, "{} steps", steps.len());
    assert!(steps.len() as u64 + lost > 40_000);
}
