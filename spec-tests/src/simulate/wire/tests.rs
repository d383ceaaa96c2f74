//! Worlds on the wire: that they can be had again, and find what is planted.

use cenote_core::trace::Replay;
use cenote_endpoint::Mechanism;

use super::world::World;
use super::{Login, Plan, Trouble, live, live_through};
use crate::simulate::subject::Watch;
use crate::simulate::{Drawn, Lived, NEVER, shrunk};

#[test]
fn worlds_are_lived_through_beside_the_model() {
    let mut inputs = 0;
    for seed in 0..40 {
        let plan = Plan::new(seed, 300);
        let lived = live(&plan, true).unwrap_or_else(|failure| panic!("{plan}\n{failure}"));
        inputs += lived.inputs;
    }
    assert!(inputs > 40 * 300, "each of them has as many as it was told to have: {inputs}");
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in [0, 7, u64::MAX] {
        let plan = Plan::new(seed, 300);
        assert_eq!(plan.to_string(), Plan::new(seed, 300).to_string());
        let lived =
            [live(&plan, true), live(&plan, false)].map(|lived| lived.expect("nothing wrong"));
        assert_eq!(lived[0], lived[1], "and nobody who watches changes it");
    }
}

/// A world with everything that is secret, and with errors to slip it into.
fn secretive() -> Plan {
    Plan {
        login: Some(Login { mechanism: Mechanism::ScramSha256, is_named: false }),
        has_proxy: true,
        troubles: vec![Trouble::Resets],
        ..Plan::new(3, 500)
    }
}

type Leak = fn(&World<'_>) -> String;

fn found(leak: Option<Leak>) -> Result<Lived, String> {
    let plan = secretive();
    let watch = Watch { has_model: false, keeps_inputs: false };
    let mut world = World::new(&plan, watch, &NEVER)?;
    world.leak = leak;
    live_through(&mut world).map_err(|failure| failure.complaint)
}

#[test]
fn what_leaks_is_found() {
    assert!(found(None).is_ok());
    let leaks: [(Leak, &str); 6] = [
        (|_| format!("no such user: {}", secretive().passwords().user), "the user's password"),
        (|_| secretive().uri(), "the user's password"),
        (|_| format!("{:#?}", secretive().passwords().user.as_bytes()), "the user's password"),
        (|_| secretive().passwords().proxy, "the proxy's password"),
        (|world| format!("{:?}", world.witness.secrets.last), "login"),
        (
            |world| {
                let last = String::from_utf8_lossy(&world.witness.secrets.last).into_owned();
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

/// A world that goes wrong leaves a trace of its pool that can be replayed.
#[test]
fn evidence_can_be_replayed() {
    let plan = Plan::new(1, 300);
    assert!(Drawn::Wire(Box::new(plan.clone())).evidence(false).unwrap().is_none());
    let plan = secretive();
    let mut world =
        World::new(&plan, Watch { has_model: false, keeps_inputs: true }, &NEVER).unwrap();
    world.leak = Some(|_| "sesame".repeat(2));
    world.witness.secrets.keep("a planted word", b"sesamesesame");
    let evidence = shrunk::live_on_wire(&plan, &mut world).unwrap().expect("it goes wrong");
    let mut trace = Vec::new();
    evidence.history.write(&mut trace).unwrap();
    let mut replay = Replay::new(trace.as_slice()).unwrap();
    while replay.step(&mut |_| {}).unwrap().is_some() {}
    assert_eq!(evidence.property, None, "only whoever looks at the texts can see it");
}
