//! Recording changes nothing.

use std::sync::{Arc, Mutex};

use cenote_tokio::{Builder, Recording};

use crate::replayed::Paper;
use crate::run::{Moody, run};

#[test]
fn a_recorded_pool_tells_the_same_events() {
    for seed in 0..300 {
        let off = events(seed, |builder| builder);
        assert!(off.len() > 20, "{} events", off.len());
        assert_eq!(events(seed, |builder| builder.flight_recorder(1 << 10)), off, "seed {seed}");
        let recording = Recording::to_writer(Paper::default());
        let both = events(seed, |builder| builder.flight_recorder(1 << 10).record(recording));
        assert_eq!(both, off, "seed {seed}");
    }
}

/// Each with all its fields, times among them.
fn events(seed: u64, record: impl FnOnce(Builder<Moody>) -> Builder<Moody>) -> Vec<String> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let hear = move |text| ear.lock().expect("no panic").push(text);
    run(
        seed,
        |builder| record(builder.on_event(move |event| hear(format!("{:?}", event.event)))),
        async |_| {},
    );
    let heard = heard.lock().expect("no panic");
    heard.clone()
}
