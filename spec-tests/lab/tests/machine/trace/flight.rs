//! The last inputs, in bounded memory.

use cenote_core::trace::Replay;
use cenote_lab::random_run::RandomRun;

use super::recorded::{info, play, pool};

#[test]
fn whenever_it_is_asked_the_flight_recorder_tells_how_it_came_to_this() {
    let mut whole_halves = 0;
    for seed in 0..100 {
        let mut run = RandomRun::with_late_replies(seed, 300);
        let mut recorded = pool(&run).with_flight_recorder(1_200);
        let mut steps = 0;
        play(&mut run, &mut recorded, |pool| {
            steps += 1;
            if steps % 37 != 0 {
                return;
            }
            let recording = pool.flight_recording().expect("there is a flight recorder");
            let trace = recording.write_to(&info(), Vec::new()).expect("memory");
            let mut replay = Replay::new(trace.as_slice()).expect("a trace");
            let replayed = replay.verify().unwrap_or_else(|error| panic!("{seed}: {error}"));
            assert_eq!(replayed, recording.inputs());
            assert_eq!(replay.pool().fingerprint(), pool.fingerprint());
            assert_eq!(replay.pool().checkpoint(), pool.checkpoint());
            if replay.header().is_new {
                assert_eq!(replayed, steps, "nothing was overwritten");
            } else {
                whole_halves += 1;
                assert!(replayed > 30, "half of the memory holds more than {replayed} inputs");
            }
        });
    }
    assert!(whole_halves > 50, "{whole_halves} recordings began in a state");
}

#[test]
fn without_a_flight_recorder_there_is_no_recording() {
    let run = RandomRun::new(1, 1);
    assert!(pool(&run).flight_recording().is_none());
}
