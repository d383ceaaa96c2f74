//! Worlds with a network are reproducible, and find planted violations.

use cenote_core::trace::Replay;

use super::transport::{Wire, World};
use super::{Login, Parameters, Plan, Trouble, run};
use crate::simulate::subject::Judges;
use crate::simulate::{NEVER_STOPPED, Report, SeededPlan, evidence, run_world};
use cenote_endpoint::Mechanism;

#[test]
fn worlds_pass_beside_the_model() {
    let mut inputs = 0;
    for seed in 0..40 {
        let plan = Plan::new(seed, 300);
        let report = run(&plan, true).unwrap_or_else(|failure| panic!("{plan}\n{failure}"));
        inputs += report.inputs;
    }
    assert!(inputs > 40 * 300, "each world has the planned number of inputs: {inputs}");
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in [0, 7, u64::MAX] {
        let plan = Plan::new(seed, 300);
        assert_eq!(plan.to_string(), Plan::new(seed, 300).to_string());
        let [with_model, without] =
            [true, false].map(|has_model| run(&plan, has_model).expect("no violation"));
        assert_eq!(with_model, without, "the model does not change the world");
    }
}

/// A world with all kinds of secrets, and with errors to leak them into.
fn plan_with_secrets() -> Plan {
    let plan = Plan::new(3, 500);
    let transport = Parameters {
        login: Some(Login { mechanism: Mechanism::ScramSha256, is_named: false }),
        has_proxy: true,
        troubles: vec![Trouble::Resets],
        ..plan.transport
    };
    Plan { transport, ..plan }
}

type Leak = fn(&World<'_>) -> String;

fn found(leak: Option<Leak>) -> Result<Report, String> {
    let plan = plan_with_secrets();
    let judges = Judges { has_model: false, keeps_inputs: false };
    let mut world = World::new(&plan, judges, &NEVER_STOPPED)?;
    world.transport.leak = leak;
    run_world(&mut world).map_err(|failure| failure.complaint)
}

#[test]
fn leaks_are_found() {
    assert!(found(None).is_ok());
    let leaks: [(Leak, &str); 6] = [
        (
            |_| format!("no such user: {}", plan_with_secrets().passwords().user),
            "the user's password",
        ),
        (|_| plan_with_secrets().uri(), "the user's password"),
        (
            |_| format!("{:#?}", plan_with_secrets().passwords().user.as_bytes()),
            "the user's password",
        ),
        (|_| plan_with_secrets().passwords().proxy, "the proxy's password"),
        (|world| format!("{:?}", world.transport.scanner.secrets.last), "login"),
        (
            |world| {
                let last =
                    String::from_utf8_lossy(&world.transport.scanner.secrets.last).into_owned();
                last.rsplit(',').next().unwrap_or_default().to_owned()
            },
            "login",
        ),
    ];
    for (leak, what) in leaks {
        let complaint = found(Some(leak)).expect_err(what);
        let (secret, _) = complaint.split_once(" is in ").expect("a secret, and where");
        let part_of_login = what == "login" && secret == "the server's signature";
        assert!(secret.contains(what) || part_of_login, "{what}: {complaint}");
    }
}

/// A world that fails leaves a trace of its pool that can be replayed.
#[test]
fn evidence_can_be_replayed() {
    let plan = Plan::new(1, 300);
    assert!(SeededPlan::Wire(Box::new(plan.clone())).evidence(false).unwrap().is_none());
    let plan = plan_with_secrets();
    let mut world =
        World::new(&plan, Judges { has_model: false, keeps_inputs: true }, &NEVER_STOPPED).unwrap();
    world.transport.leak = Some(|_| "sesame".repeat(2));
    world.transport.scanner.secrets.keep("a planted word", b"sesamesesame");
    let evidence = evidence::of_world::<Wire>(&mut world).unwrap().expect("the world fails");
    let mut trace = Vec::new();
    evidence.history.write(&mut trace).unwrap();
    let mut replay = Replay::new(trace.as_slice()).unwrap();
    while replay.step(&mut |_| {}).unwrap().is_some() {}
    assert_eq!(evidence.fault, None, "the pool alone does not show the leak");
}
