//! Cenote's own scenarios on the state machine under virtual time.

use std::path::{Path, PathBuf};

use cenote_conform::{Report, Runner, Simulation, Verdict};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/cmap")
}

fn run(threads: usize) -> Report {
    Runner::new(&Simulation).with_threads(threads).run(&folder()).expect("scenarios")
}

#[test]
fn every_scenario_passes_and_passes_again() {
    let report = run(1);
    let failed: Vec<_> =
        report.outcomes.iter().filter(|outcome| outcome.verdict != Verdict::Passed).collect();
    assert_eq!((report.passed(), failed.len()), (56, 0), "{failed:#?}");
    assert!(report.to_string().ends_with("\n56 passed, 0 failed, 0 not applicable"));
    assert_eq!(run(4), report);
}

#[test]
fn a_folder_without_scenarios_is_an_error() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/document");
    let error = Runner::new(&Simulation).run(&source).expect_err("there is no scenario");
    assert!(error.to_string().ends_with("there is no test file in it, JSON or YAML"), "{error}");
    let missing = Runner::new(&Simulation).run("missing".as_ref()).expect_err("it is not there");
    assert!(missing.to_string().starts_with("missing: "), "{missing}");
}
