//! Every sequence of a few inputs on small pools; `cenote explore` goes deeper.

use cenote::explore::{Configuration, explore};

#[test]
fn every_short_sequence_of_inputs_is_answered_as_the_model_does() {
    let report = explore(&Configuration::standard(), 7, 2);
    assert_eq!(report.failures().count(), 0, "{report}");
    assert!(report.states() > 40_000, "a space this small proves little:\n{report}");
}
