//! `cenote simulate`, as people and scripts use it, and worlds by the dozen.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use cenote::simulate::{Met, Plan, live, wire};
use tempfile::TempDir;

fn simulate(arguments: &[&str]) -> Output {
    let folder = TempDir::new().expect("a folder");
    Command::new(env!("CARGO_BIN_EXE_cenote"))
        .arg("simulate")
        .args(arguments)
        .current_dir(&folder)
        .output()
        .expect("a child process")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn worlds_are_lived_through_beside_the_model() {
    let mut inputs = 0;
    for seed in 0..200 {
        let plan = Plan::new(seed, 1_000);
        let lived = live(&plan, true).unwrap_or_else(|failure| panic!("{plan}\n{failure}"));
        inputs += lived.inputs;
        // Nobody asks for ever what is not to be had.
        let few = u64::from(plan.callers) * 40 + 1_000;
        assert!(lived.inputs < 1_000 + few, "{plan}\n{} inputs", lived.inputs);
    }
    assert!(inputs > 200_000, "each of them has as many as it was told to have: {inputs}");
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in [0, 7, u64::MAX] {
        let [plan, again] = [0, 1].map(|_| Plan::new(seed, 500));
        assert_eq!(plan.to_string(), again.to_string());
        let lived =
            [live(&plan, true), live(&again, false)].map(|lived| lived.expect("nothing wrong"));
        assert_eq!(lived[0], lived[1], "and nobody who watches changes it");
    }
}

#[test]
fn seeds_and_parameters_come_first() {
    let output = simulate(&["--seed", "42", "--runs", "1", "--steps", "300"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = text(&output.stdout);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines[0], "seeds 42 to 42, 300 inputs each, judged with the model");
    assert_eq!(lines[1], "seed 42, 300 inputs, then the end");
    assert!(lines.last().unwrap().ends_with("a second of CPU: nothing wrong"), "{printed}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn machines_can_read_it() {
    let output = simulate(&["--runs", "3", "--steps", "100", "--json", "--without-model"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["worlds"], &json["failure"]), (&3.into(), &serde_json::Value::Null));
    assert!(json["inputs"].as_u64().unwrap() >= 300);
}

#[test]
fn bad_usage_is_one_line() {
    let refused = [
        (&["--runs", "0"][..], "--runs"),
        (&["--steps", "0"], "--steps"),
        (&["--seed", "-1"], "a whole number is expected, not below 0"),
        (&["--seed", "18446744073709551616"], "the number is too large"),
        (&["--seed", "18446744073709551615", "--runs", "2"], "beyond 18446744073709551615"),
        (&["--speed", "2"], "--speed"),
        (&["--out", "/dev/null/here"], "/dev/null/here: no trace can be written there"),
    ];
    for (arguments, named) in refused {
        let output = simulate(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(named), "{said}");
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn the_other_kind_of_world_has_conversations() {
    let output = simulate(&["--wire", "--seed", "42", "--runs", "1", "--steps", "300"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = text(&output.stdout);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines[0], "seeds 42 to 42, on the wire, 300 inputs each, judged with the model");
    assert_eq!(lines[1], "seed 42, on the wire, 300 inputs, then the end");
    assert!(lines.iter().any(|line| line.starts_with("  login ")), "{printed}");
    assert!(lines.last().unwrap().ends_with("a second of CPU: nothing wrong"), "{printed}");
}

/// What is in nobody's plan, or never happens, is tried by nobody. The two kinds of worlds have
/// different troubles.
#[test]
fn all_that_can_be_met_is_met() {
    let (mut pool, mut conversations) = (Met::default(), Met::default());
    for seed in 0..80 {
        pool.add(&live(&Plan::new(seed, 1_000), false).unwrap().met);
        conversations.add(&wire::live(&wire::Plan::new(seed, 500), false).unwrap().met);
    }
    let only_on_wire = [
        "closes",
        "goes half-open",
        "is cut off",
        "drips",
        "restarts",
        "shuts down",
        "half-closes",
        "cuts replies",
        "fails commands",
    ];
    assert_eq!(never(&pool), BTreeSet::from(only_on_wire), "{pool}");
    assert_eq!(
        never(&conversations),
        BTreeSet::from(["vanishes", "closes idle", "a use ends when something is due"]),
        "{conversations}"
    );
}

fn never(met: &Met) -> BTreeSet<&'static str> {
    let all = met.groups().flat_map(|(_, those)| those);
    all.filter(|(_, times)| *times == 0).map(|(name, _)| name).collect()
}
