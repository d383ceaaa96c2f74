//! Every short sequence of inputs on small pools; `cenote explore` goes deeper.

use std::process::Command;

use cenote_simulation::explore::{Configuration, explore};

#[test]
fn the_machine_agrees_with_the_model_on_every_short_sequence() {
    let report = explore(&Configuration::standard(), 7, 2);
    assert_eq!(report.failures().count(), 0, "{report}");
    assert!(report.states() > 40_000, "a space this small proves little:\n{report}");
}

#[test]
fn bad_usage_is_one_line() {
    for (arguments, named) in [
        (&["--depth", "0"][..], "0 is not in 1..=4294967295"),
        (&["--depth", "-1"], "-1 is not in 1..=4294967295"),
        (&["--deep"], "unexpected argument '--deep'"),
        (&["--threads", "0"], "a whole number above 0 is expected"),
        (&["--threads", "-1"], "a whole number is expected, not below 0"),
    ] {
        let cenote =
            Command::new(env!("CARGO_BIN_EXE_cenote")).arg("explore").args(arguments).output();
        let output = cenote.expect("a child process");
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(named), "{said}");
    }
}
