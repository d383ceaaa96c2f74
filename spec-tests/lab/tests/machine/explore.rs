//! Every short sequence of inputs on small pools; `cenote-lab explore` goes deeper.

use cenote_lab::explore::{Configuration, explore};

#[test]
fn the_machine_agrees_with_the_model_on_every_short_sequence() {
    let report = explore(&Configuration::standard(), 7, 2);
    assert_eq!(report.failures().count(), 0, "{report}");
    assert!(report.states() > 40_000, "a space this small proves little:\n{report}");
}
