//! The flight recorder, and what is dumped by itself.

use std::fs;
use std::time::{Duration, Instant};

use cenote_core::pool::Action;
use cenote_core::trace::{ActionRecord, Replay};
use cenote_tokio::{PoolError, RecordingError};
use tempfile::tempdir;

use crate::recording::cases::{LIFE, live};
use crate::recording::shared_buffer::{dumps, life};
use crate::recording::subject::{Setup, Subject, at_most};

pub(crate) fn a_dump_tells_how_the_pool_came_to_be_as_it_is<S: Subject>() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("dump.bson");
    let recorded = Setup { flight_recorder: Some(64 << 10), ..setup() };
    let pool = S::build(recorded).expect("a pool");
    live(&pool);
    pool.dump_trace(&path).expect("a dump");
    let trace = fs::read(&path).expect("a file");
    assert_eq!(life(&trace), LIFE[..15]);
    assert_eq!(trace, pool.write_trace().expect("memory"));
    let mut replay = Replay::new(trace.as_slice()).expect("a trace");
    replay.verify().expect("it goes the way it went");
    assert_eq!(replay.pool().snapshot().to_string(), pool.snapshot().to_string());

    let nowhere = folder.path().join("absent").join("dump.bson");
    assert!(matches!(pool.dump_trace(&nowhere), Err(RecordingError::File { .. })));
    let pool = S::build(setup()).expect("a pool");
    assert!(matches!(pool.dump_trace(&path), Err(RecordingError::NoFlightRecorder)));
}

fn setup<'a>() -> Setup<'a> {
    Setup { options: at_most(2), ..Setup::default() }
}

pub(crate) fn the_first_timeout_is_dumped_with_what_led_to_it<S: Subject>() {
    const PATIENCE: Duration = Duration::from_millis(20);
    let folder = tempdir().expect("a folder");
    let inner = folder.path().join("made").join("here");
    let options = at_most(1).with_wait_queue_timeout(PATIENCE);
    let pool = S::build(Setup { options, folder: Some(&inner), ..Setup::default() });
    let pool = pool.expect("a pool");
    pool.ready();
    let held = pool.check_out().expect("a connection");
    // This one does not wait.
    assert!(pool.try_check_out().expect("a ready pool").is_none());
    let errors = [(); 3].map(|()| pool.check_out().err().expect("nothing is there"));
    assert!(errors.iter().all(PoolError::is_timeout));
    pool.end_recording().expect("what is under way is written");
    let [dump] = dumps(&inner, "-wait-queue-timeout.bson").try_into().expect("one dump");
    let mut replay = Replay::new(fs::File::open(&dump).expect("a file")).expect("a trace");
    let (mut failed, mut at, mut request, mut places) = (0, None, None, Vec::new());
    loop {
        let mut fails = false;
        let step = replay.step(&mut |action| {
            if let Action::Deliver { waiter, outcome: Err(_) } = &action {
                request = Some(*waiter);
            }
            let detail = ActionRecord::of(&action).and_then(|action| action.detail);
            fails |= detail.is_some_and(|detail| detail.contains("waitQueueTimeout"));
        });
        let Some(step) = step.expect("it goes the way it went") else { break };
        places.extend(step.place);
        if fails {
            (failed, at) = (failed + 1, Some(step.at));
        }
    }
    // Of the one that did not wait, and of the first that did, which is the last step.
    assert_eq!(failed, 2);
    assert!(request.is_some() && request == errors[0].request(), "its number leads to the trace");
    // The calls of `subject.rs`: of the first check-out, of the one that did not wait, and of the others.
    assert!(places.iter().all(|place| place.contains("recording/subject.rs:")), "{places:?}");
    assert!(places.len() == 3 && places[0] == places[2] && places[0] != places[1], "{places:?}");
    assert!(at.is_some_and(|at| u128::from(at.as_nanos()) >= PATIENCE.as_nanos()), "{at:?}");
    assert_eq!(replay.pool().snapshot().waiting, 0);
    drop(held);
}

#[cfg(unix)]
pub(crate) fn each_signal_is_a_dump<S: Subject>() {
    use signal_hook::consts::SIGUSR1;
    use signal_hook::low_level::raise;

    let folder = tempdir().expect("a folder");
    let asked = Setup { folder: Some(folder.path()), signal: Some(SIGUSR1), ..setup() };
    let pool = S::build(asked).expect("a pool");
    live(&pool);
    for count in 1..=2 {
        raise(SIGUSR1).expect("a signal");
        pool.end_recording().expect("what was asked for is written");
        let dumps = dumps(folder.path(), "-signal.bson");
        assert_eq!(dumps.len(), count, "{dumps:?}");
        for dump in dumps {
            assert_eq!(life(&fs::read(dump).expect("a file"))[..15], LIFE[..15]);
        }
    }
    // Nothing else is necessary.
    raise(SIGUSR1).expect("a signal");
    let began = Instant::now();
    while dumps(folder.path(), "-signal.bson").len() < 3 {
        assert!(began.elapsed() < Duration::from_secs(20), "no dump");
        std::thread::yield_now();
    }
    pool.close();
    drop(pool);
    // The signal has no handler any more, and the process goes on.
    raise(SIGUSR1).expect("a signal");
}

pub(crate) fn a_signal_that_cannot_be_heard_is_told_when_the_pool_is_built<S: Subject>() {
    let folder = tempdir().expect("a folder");
    // SIGKILL, and what no system has.
    for signal in [9, 12_345] {
        let error = S::build(Setup {
            folder: Some(folder.path()),
            signal: Some(signal),
            ..Setup::default()
        });
        let error = error.err().expect("no such signal");
        assert!(matches!(error, RecordingError::Signal { .. }), "{error:?}");
        assert!(error.to_string().starts_with(&format!("no dump on signal {signal}: ")), "{error}");
    }
    let error = S::build(Setup { signal: Some(10), ..Setup::default() });
    assert!(matches!(error.err(), Some(RecordingError::NoFolder)));
}
