//! Traces that were written once and must be readable for ever, for each version of the format.
//!
//! A fingerprint is part of the format: when the machine remembers something else than before, or
//! decides otherwise, traces of this version do not verify any more, and the version has to change.

use std::fs;
use std::path::{Path, PathBuf};

use cenote_core::error::Stage;
use cenote_core::pool::ConnId;
use cenote_core::trace::{JournalOptions, Replay, TraceWriter, VERSION};
use cenote_lab::random_run::{self, RandomRun};
use cenote_replay::record;
use cenote_replay::traffic::Scene;

use super::recorded::{finish, info, play, pool};

/// A name, and how a trace is made.
type Golden = (&'static str, fn() -> Vec<u8>);

/// What the present version is shown by.
const PRESENT: [Golden; 5] = [
    ("traffic", || {
        let scene = Scene { tasks: 12, failure_every: 60, leak_every: 90, ..Scene::new(1, 4) };
        let journal = JournalOptions::default().with_actions(true).with_fingerprint_every(16);
        record::traffic(scene, 400, journal, Vec::new()).expect("memory")
    }),
    ("random", || {
        let journal = JournalOptions::default().with_actions(true).with_fingerprint_every(1);
        random_run::record(12, 150, journal, Vec::new()).expect("memory")
    }),
    ("balanced", || {
        let seed = (0..).find(|&seed| RandomRun::new(seed, 0).options.load_balanced == Some(true));
        let journal = JournalOptions::default().with_fingerprint_every(8);
        random_run::record(seed.expect("one in three"), 200, journal, Vec::new()).expect("memory")
    }),
    ("from-a-state", || {
        let busy = |trace: &Vec<u8>| {
            let replay = Replay::new(trace.as_slice()).expect("a trace");
            let begin = replay.pool().snapshot();
            begin.waiting > 1 && begin.in_use > 0 && begin.pending > 0
        };
        (0..).map(flight).find(busy).expect("one of them begins in the midst of things")
    }),
    ("stages", || {
        let mut run = RandomRun::new(3, 150);
        let mut recorded = pool(&run).with_journal(JournalOptions::default());
        let mut stages = Stage::ALL.into_iter().cycle();
        play(&mut run, &mut recorded, |pool| {
            let stage = stages.next().expect("they begin again");
            pool.enter_stage(pool.now(), ConnId::from_parts(1, 0), stage);
        });
        finish(recorded, TraceWriter::new(Vec::new(), info()))
    }),
];

fn flight(seed: u64) -> Vec<u8> {
    let mut run = RandomRun::new(seed, 400);
    let mut recorded = pool(&run).with_flight_recorder(1_500);
    play(&mut run, &mut recorded, |_| {});
    let recording = recorded.flight_recording().expect("there is a flight recorder");
    recording.write_to(&info(), Vec::new()).expect("memory")
}

#[test]
fn traces_of_every_version_replay() {
    let mut files: Vec<_> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= PRESENT.len());
    for file in files {
        let name = file.display();
        let mut replay = Replay::new(fs::File::open(&file).unwrap())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let steps = replay.verify().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(steps >= 100, "{name}: {steps} steps");
    }
}

#[test]
fn the_present_version_is_written_as_it_was() {
    for (name, make) in PRESENT {
        let file = folder().join(format!("v{VERSION}-{name}.bson"));
        let made = make();
        if std::env::var_os("CENOTE_BLESS").is_some() && !file.exists() {
            fs::write(&file, &made).unwrap();
        }
        let kept = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(kept == made, "{} would be written otherwise now", file.display());
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces")
}
