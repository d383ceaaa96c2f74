//! The flight recorder, and what is dumped by itself.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cenote_core::error::PoolError;
use cenote_core::pool::Action;
use cenote_core::trace::{ActionRecord, Replay};
use cenote_mio::EventLoop;
use cenote_shell::trace::RecordingError;
use cenote_smol::Smol;
use cenote_tokio::Tokio;
use tempfile::tempdir;

use crate::pool::blocking::{TestPool, TestRuntime, on_all_runtimes};
use crate::recording::cases::{LIFE, limited, live, refusal};
use crate::recording::shared_buffer::{begun_life, dumps, life};

on_all_runtimes!(
    a_dump_tells_how_the_pool_came_to_be_as_it_is,
    an_episode_of_timeouts_is_dumped_with_what_led_to_it_and_when_it_is_over,
    a_signal_that_cannot_be_heard_is_told_when_the_pool_is_built,
);

// One signal is for the whole process, and so for all.
#[cfg(unix)]
#[test]
fn each_signal_is_a_dump() {
    each_signal_is_a_dump_on::<Tokio>();
    each_signal_is_a_dump_on::<EventLoop>();
    each_signal_is_a_dump_on::<Smol>();
}

fn a_dump_tells_how_the_pool_came_to_be_as_it_is<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("dump.bson");
    let pool = limited::<R>(2).flight_recorder(64 << 10).build().expect("a pool");
    live::<R>(&pool);
    pool.dump_trace(&path).expect("a dump");
    let trace = fs::read(&path).expect("a file");
    assert_eq!(life(&trace), LIFE[..15]);
    assert_eq!(trace, pool.write_trace().expect("memory"));
    let mut replay = Replay::new(trace.as_slice()).expect("a trace");
    replay.verify().expect("it goes the way it went");
    assert_eq!(replay.pool().snapshot().to_string(), pool.snapshot().to_string());

    let nowhere = folder.path().join("absent").join("dump.bson");
    assert!(matches!(pool.dump_trace(&nowhere), Err(RecordingError::File { .. })));
    let pool = limited::<R>(2).build().expect("a pool");
    assert!(matches!(pool.dump_trace(&path), Err(RecordingError::NoFlightRecorder)));
}

fn an_episode_of_timeouts_is_dumped_with_what_led_to_it_and_when_it_is_over<R: TestRuntime>() {
    const PATIENCE: Duration = Duration::from_millis(20);
    let folder = tempdir().expect("a folder");
    let inner = folder.path().join("made").join("here");
    let impatient = limited::<R>(1).map_options(|it| it.with_wait_queue_timeout(PATIENCE));
    let impatient = impatient.dump_traces_into(&inner).episode_pause(Duration::from_secs(1));
    let pool = impatient.build().expect("a pool");
    pool.ready();
    let held = pool.check_out().expect("a connection");
    // This one does not wait.
    assert!(pool.try_check_out().expect("a ready pool").is_none());
    let errors = [(); 3].map(|()| pool.check_out().expect_err("nothing is there"));
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
    // Of the first check-out, of the one that did not wait, and of the others.
    assert!(places.iter().all(|place| place.contains("recording/dumps.rs:")), "{places:?}");
    assert!(places.len() == 3 && places[0] != places[1] && places[1] != places[2], "{places:?}");
    assert!(at.is_some_and(|at| u128::from(at.as_nanos()) >= PATIENCE.as_nanos()), "{at:?}");
    assert_eq!(replay.pool().snapshot().waiting, 0);
    drop(held);
    let begin = Instant::now();
    let has_check_in =
        |path: &PathBuf| begun_life(&fs::read(path).expect("a file")).contains(&"CheckedIn");
    while !dumps(&inner, "-after-timeouts.bson").iter().any(has_check_in) {
        assert!(begin.elapsed() < Duration::from_secs(30), "nothing is dumped after the episode");
        std::thread::sleep(Duration::from_millis(20));
    }
    let episode = ["-wait-queue-timeout.bson", "-after-timeouts.bson"];
    assert_eq!(episode.map(|reason| dumps(&inner, reason).len()), [1, 1]);
}

#[cfg(unix)]
fn each_signal_is_a_dump_on<R: TestRuntime>() {
    use signal_hook::consts::SIGUSR1;
    use signal_hook::low_level::raise;

    let folder = tempdir().expect("a folder");
    let builder = limited::<R>(2).dump_traces_into(folder.path()).dump_on_signal(SIGUSR1);
    let pool = builder.build().expect("a pool");
    live::<R>(&pool);
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

fn a_signal_that_cannot_be_heard_is_told_when_the_pool_is_built<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    // SIGKILL, and what no system has.
    for signal in [9, 12_345] {
        let into = limited::<R>(1).dump_traces_into(folder.path());
        let error = refusal::<R>(into.dump_on_signal(signal));
        assert!(matches!(error, RecordingError::Signal { .. }), "{error:?}");
        assert!(error.to_string().starts_with(&format!("no dump on signal {signal}: ")), "{error}");
    }
    let error = refusal::<R>(limited::<R>(1).dump_on_signal(10));
    assert!(matches!(error, RecordingError::NoFolder));
}
