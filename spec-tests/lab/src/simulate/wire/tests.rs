//! Worlds with conversations show planted violations.

use crate::simulate::subject::Judges;
use crate::simulate::trouble::Trouble;
use crate::simulate::world::World;
use crate::simulate::{NEVER_STOPPED, Plan, run, run_world};

#[test]
fn worlds_pass_beside_the_model() {
    for seed in 0..60 {
        let plan = Plan::new(seed, 500).on_wire();
        run(&plan, true).unwrap_or_else(|failure| panic!("{plan}\n{failure}"));
    }
}

/// What a reset says counts as a secret of this world.
#[test]
fn an_error_that_shows_a_secret_is_found() {
    let plan = Plan { troubles: vec![Trouble::Resets], ..Plan::new(3, 2_000).on_wire() };
    let judges = Judges { has_model: false, keeps_inputs: false };
    let mut world = World::new(&plan, judges, &NEVER_STOPPED).expect("a valid plan");
    world.wire.as_mut().expect("on the wire").secrets.keep("a planted word", b"connectionreset");
    let failure = run_world(&mut world).expect_err("it is shown");
    assert!(failure.complaint.starts_with("a planted word is in an error: "), "{failure}");
}
