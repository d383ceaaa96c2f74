//! How long it takes to shrink a trace of 100,000 inputs, and how much is left of it. Fails where
//! more than 20 inputs are left, or it takes a minute.

use std::time::{Duration, Instant};

use cenote_core::trace::JournalOptions;
use cenote_replay::history::History;
use cenote_replay::record;
use cenote_replay::shrink::{shrink, summary};
use cenote_replay::traffic::Scene;

const STEPS: u64 = 100_000;
const LEFT_MAX: usize = 20;
const TIME_MAX: Duration = Duration::from_secs(60);

fn main() {
    let twice = |seed, connections| {
        let scene = Scene::new(seed, connections);
        Scene { checks_in_twice: true, failure_every: 2_000, ..scene }
    };
    let leaky = Scene { leak_every: 5_000, tasks: 12, ..Scene::new(4, 10) };
    for (name, scene, property) in [
        ("10 connections, one checked in twice", twice(1, 10), "misuse"),
        ("100 connections, one checked in twice", twice(2, 100), "misuse"),
        ("1,000 connections, one checked in twice", twice(3, 1_000), "misuse"),
        ("10 connections that leak away", leaky, "waiting>8"),
    ] {
        let trace = record::traffic(scene, STEPS, JournalOptions::default(), Vec::new());
        let trace = trace.expect("memory can be written to");
        let (history, problem) = History::read(trace.as_slice()).expect("a trace");
        assert!(problem.is_none(), "{problem:?}");
        let property = property.parse().expect("a property");
        let start = Instant::now();
        let shrunk = shrink(&history, &property).expect("the whole trace shows it");
        let took = start.elapsed();
        let (before, after) = (history.inputs.len(), shrunk.inputs.len());
        println!("{name}, {property}: {before} → {after} in {:.1} s", took.as_secs_f64());
        println!("    {}", summary(&shrunk));
        assert!(after <= LEFT_MAX, "{after} inputs are left");
        assert!(took <= TIME_MAX, "it took {took:?}");
    }
}
