//! Targets that implement as little as possible, or something wrong.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cenote_conform::{
    CheckOutRequest, Document, Outcome, Pool, Progress, Reply, Runner, Scenario, Setup,
    SimulatedConnection, SimulatedPool, Simulation, Target, Verdict,
};
use cenote_core::error::ConnectionError;
use serde_json::json;

/// What is wrong with a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Only the methods without a default are implemented.
    Minimal,
    /// Check-outs are dropped.
    LosesCheckOuts,
    /// Check-outs never end.
    Hangs,
    /// Connections are not checked in.
    KeepsConnections,
    /// Closing it does nothing.
    StaysOpen,
    /// Clearing it panics.
    Panics,
}

struct Faulty(Fault);

struct FaultyPool {
    pool: SimulatedPool,
    fault: Fault,
    kept: Vec<SimulatedConnection>,
    hanging: Vec<Reply<SimulatedConnection>>,
}

impl Target for Faulty {
    type Pool = FaultyPool;

    fn name(&self) -> &'static str {
        "faulty"
    }

    fn open(&self, setup: Setup) -> Result<FaultyPool, String> {
        let pool = Simulation.open(setup)?;
        Ok(FaultyPool { pool, fault: self.0, kept: Vec::new(), hanging: Vec::new() })
    }
}

impl Pool for FaultyPool {
    type Connection = SimulatedConnection;
    type Waiter = ();

    fn check_out(&mut self, request: CheckOutRequest, reply: Reply<SimulatedConnection>) {
        match self.fault {
            Fault::LosesCheckOuts => drop(reply),
            Fault::Hangs => self.hanging.push(reply),
            Fault::Minimal | Fault::KeepsConnections | Fault::StaysOpen | Fault::Panics => {
                self.pool.check_out(request, reply);
            }
        }
    }

    fn check_in(&mut self, connection: SimulatedConnection, error: Option<ConnectionError>) {
        if self.fault == Fault::KeepsConnections {
            self.kept.push(connection);
        } else {
            self.pool.check_in(connection, error);
        }
    }

    fn ready(&mut self) {
        self.pool.ready();
    }

    fn clear(&mut self, cause: ConnectionError, interrupt: bool) {
        assert_ne!(self.fault, Fault::Panics, "as the test wants");
        self.pool.clear(cause, interrupt);
    }

    fn close(&mut self) {
        if self.fault != Fault::StaysOpen {
            self.pool.close();
        }
    }

    fn wait(&mut self, progress: &Progress, limit: Duration) {
        self.pool.wait(progress, limit);
    }

    fn virtual_time(&self) -> Option<Duration> {
        self.pool.virtual_time()
    }

    fn finish(&mut self) -> Result<(), String> {
        self.pool.finish()
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/cmap")
}

/// What is not implemented is not applicable; everything else passes.
#[test]
fn a_minimal_target_plays_what_it_can() {
    let report = Runner::new(&Faulty(Fault::Minimal)).run(&folder()).expect("scenarios");
    let reason = |outcome: &Outcome| match &outcome.verdict {
        Verdict::Passed => None,
        Verdict::NotApplicable(reason) => {
            let name = outcome.file.file_stem().expect("a name").to_string_lossy();
            let method = reason.strip_prefix("the pool does not implement ").expect("that reason");
            Some(format!("{name}: {method}"))
        }
        Verdict::Failed(what) => Some(format!("{}: {what}", outcome.file.display())),
        other => panic!("{other:?}"),
    };
    let reasons: Vec<_> = report.outcomes.iter().filter_map(reason).collect();
    assert_eq!((report.passed() + reasons.len(), report.failed()), (56, 0), "{reasons:#?}");
    let expected = [
        "abandoned: cancel",
        "check-in-foreign: counts",
        "check-in-twice: check_in_again",
        "counts: counts",
        "fork: reset_after_fork",
        "log-all: log_messages",
        "options-change: set_options",
        "services: service_id",
    ];
    for expected in expected {
        assert!(reasons.iter().any(|reason| reason == expected), "no {expected} in {reasons:#?}");
    }
}

#[test]
fn faults_are_reported() {
    let file = |operations: serde_json::Value| {
        let document = json!({
            "version": 1, "style": "unit", "description": "a fault", "operations": operations,
            "events": [], "ignore": [
                "ConnectionPoolCreated", "ConnectionPoolReady", "ConnectionPoolCleared",
                "ConnectionCheckOutStarted", "ConnectionCreated", "ConnectionReady",
                "ConnectionCheckedOut", "ConnectionCheckedIn",
            ],
        });
        Scenario::new(&Document::of(Path::new("fault.json"), document)).expect("a scenario")
    };
    let scenario = file(json!([{ "name": "ready" }, { "name": "checkOut" }, { "name": "clear" }]));
    for (fault, expected) in [
        (Fault::LosesCheckOuts, "the pool dropped a check-out without an outcome"),
        (Fault::Hangs, "a check-out never had an outcome"),
        (Fault::KeepsConnections, "connections are left in a closed pool"),
        (Fault::StaysOpen, "there was no ConnectionPoolClosed"),
    ] {
        let verdict = Runner::new(&Faulty(fault)).play(&scenario);
        let Verdict::Failed(what) = verdict else { panic!("{fault:?}: {verdict:?}") };
        assert!(what.contains(expected), "{fault:?}: no {expected:?} in {what}");
    }
    assert_eq!(Runner::new(&Faulty(Fault::Minimal)).play(&scenario), Verdict::Passed);
}

#[test]
fn a_pool_that_panics_fails_its_scenario() {
    let file = folder().join("options-no-connecting.yml");
    let passes = Runner::new(&Faulty(Fault::Panics)).run(&file).expect("a scenario");
    assert_eq!(passes.passed(), 1);
    let file = folder().join("interrupt-in-use.json");
    let report = Runner::new(&Faulty(Fault::Panics)).run(&file).expect("a scenario");
    let [Outcome { verdict, .. }] = &report.outcomes[..] else { panic!("one scenario") };
    assert_eq!(*verdict, Verdict::Failed("a panic; see its message on stderr".to_owned()));
}
