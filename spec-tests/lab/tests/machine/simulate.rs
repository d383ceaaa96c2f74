//! The command `cenote-lab simulate`, and many simulated worlds.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};
use std::time::Duration;

use cenote_lab::simulate::deployment::{self, Deployment, MemberKind};
use cenote_lab::simulate::{Coverage, Plan, run};
use tempfile::TempDir;

fn simulate(arguments: &[&str]) -> Output {
    let folder = TempDir::new().expect("a folder");
    Command::new(env!("CARGO_BIN_EXE_cenote-lab"))
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
fn worlds_pass_beside_the_model() {
    let mut inputs = 0;
    for seed in 0..200 {
        let plan = Plan::new(seed, 1_000);
        let report = run(&plan, true).unwrap_or_else(|failure| panic!("{plan}\n{failure}"));
        inputs += report.inputs;
        // Callers do not check out in a loop while there is no server.
        let few = u64::from(plan.callers) * 40 + 1_000;
        assert!(report.inputs < 1_000 + few, "{plan}\n{} inputs", report.inputs);
    }
    assert!(inputs > 200_000, "each world has the planned number of inputs: {inputs}");
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in [0, 7, u64::MAX] {
        let [plan, again] = [0, 1].map(|_| Plan::new(seed, 500));
        assert_eq!(plan.to_string(), again.to_string());
        let reports =
            [run(&plan, true), run(&again, false)].map(|report| report.expect("no violation"));
        assert_eq!(reports[0], reports[1], "the model does not change the world");
        let [plan, again] = [0, 1].map(|_| deployment::Plan::new(seed, 500));
        assert_eq!(plan.to_string(), again.to_string());
        let reports = [deployment::run(&plan, true), deployment::run(&again, false)]
            .map(|report| report.expect("no violation"));
        assert_eq!(reports[0], reports[1], "the model does not change the world");
    }
}

#[test]
fn deployments_pass() {
    let mut inputs = 0;
    for seed in 0..150 {
        let plan = deployment::Plan::new(seed, 700);
        let report = deployment::run(&plan, seed % 4 == 0);
        let report = report.unwrap_or_else(|failure| panic!("{plan}\n{failure}"));
        inputs += report.inputs;
    }
    assert!(inputs > 75_000, "most worlds have the planned number of inputs: {inputs}");
}

/// More than a hundred in a second, as members of a replica set and as hosts of SRV records.
#[test]
fn servers_that_come_and_go_leave_nothing_behind() {
    let members = vec![MemberKind::Electable; 3];
    let set = Deployment::ReplicaSet { members, seeds: 1, is_named: true, is_direct: false };
    let routers = Deployment::Sharded { routers: 2, is_srv: true };
    for (seed, deployment) in [set, routers].into_iter().enumerate() {
        let churn_every = Some(Duration::from_millis(20));
        let (changes, wrong_answers) = (Vec::new(), Vec::new());
        let plan = deployment::Plan {
            deployment,
            changes,
            wrong_answers,
            churn_every,
            delay: None,
            ends_abruptly: false,
            ..deployment::Plan::new(seed as u64, 20_000)
        };
        let report = deployment::run(&plan, false);
        let report = report.unwrap_or_else(|failure| panic!("{plan}\n{failure}"));
        let counts: BTreeMap<_, _> = report.coverage.groups().flat_map(|(_, it)| it).collect();
        let [added, ended] = ["server added", "nothing left of it"].map(|name| counts[name]);
        assert!(added > 1_000, "{added} were added");
        assert_eq!(ended, added);
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
    assert!(lines.last().unwrap().ends_with("a second of CPU: no failure"), "{printed}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn json_can_be_parsed() {
    let output = simulate(&["--runs", "3", "--steps", "100", "--json", "--without-model"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["worlds"], &json["failure"]), (&3.into(), &serde_json::Value::Null));
    assert!(json["inputs"].as_u64().unwrap() >= 300);
}

#[test]
fn what_cannot_be_simulated_is_one_line() {
    let refused = [
        (["--seed", "18446744073709551615", "--runs", "2"], "beyond 18446744073709551615"),
        (
            ["--runs", "1", "--out", "/dev/null/here"],
            "/dev/null/here: no trace can be written there",
        ),
    ];
    for (arguments, named) in refused {
        let output = simulate(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let message = text(&output.stderr);
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains(named), "{message}");
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn worlds_on_the_wire_have_conversations() {
    let output = simulate(&["--wire", "--seed", "42", "--runs", "1", "--steps", "300"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = text(&output.stdout);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines[0], "seeds 42 to 42, on the wire, 300 inputs each, judged with the model");
    assert_eq!(lines[1], "seed 42, on the wire, 300 inputs, then the end");
    assert!(lines.iter().any(|line| line.starts_with("  conversations ")), "{printed}");
    assert!(lines.last().unwrap().ends_with("a second of CPU: no failure"), "{printed}");
}

#[test]
fn deployments_have_several_servers() {
    let output = simulate(&["--deployment", "--seed", "42", "--runs", "1", "--steps", "300"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = text(&output.stdout);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines[0], "seeds 42 to 42, deployments, 300 inputs each, judged with the model");
    assert_eq!(lines[1], "seed 42, a deployment, 300 inputs, then the end");
    assert!(lines.iter().any(|line| line.starts_with("  wrong answers ")), "{printed}");
    assert!(lines.last().unwrap().ends_with("a second of CPU: no failure"), "{printed}");
}

/// What is about several servers.
const OF_DEPLOYMENTS: [&str; 3] = ["deployments", "wrong answers", "clients"];

/// Every situation occurs, so that each is tested.
#[test]
fn every_situation_occurs() {
    let (mut direct, mut on_wire) = (Coverage::default(), Coverage::default());
    for seed in 0..80 {
        let plan = Plan::new(seed, 1_000);
        direct.add(&run(&plan, false).unwrap().coverage);
        on_wire.add(&run(&plan.on_wire(), false).unwrap().coverage);
    }
    let is_of_one_server = |group: &str| !OF_DEPLOYMENTS.contains(&group);
    assert_eq!(never(&direct, is_of_one_server), BTreeSet::new(), "{direct}");
    assert_eq!(never(&on_wire, is_of_one_server), BTreeSet::new(), "{on_wire}");
}

#[test]
fn every_situation_of_deployments_occurs() {
    let mut coverage = Coverage::default();
    for seed in 0..200 {
        let report = deployment::run(&deployment::Plan::new(seed, 700), false);
        coverage.add(&report.unwrap().coverage);
    }
    let is_of_deployments = |group: &str| OF_DEPLOYMENTS.contains(&group);
    assert_eq!(never(&coverage, is_of_deployments), BTreeSet::new(), "{coverage}");
}

fn never(coverage: &Coverage, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<&'static str> {
    let groups = coverage.groups().filter(|(group, _)| is_wanted(group));
    let all = groups.flat_map(|(_, situations)| situations);
    all.filter(|(_, times)| *times == 0).map(|(name, _)| name).collect()
}
