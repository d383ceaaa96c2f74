//! The column for the test that shows a rule through a shell.

use std::fs;
use std::path::Path;

use cenote::conform::{Document, Target};

use super::page::{NO_TEST, Reference, check_reference, references};
use super::scenarios::played_on_shells;

/// Where tests and scenarios drive a shell.
const PLACES: [&str; 13] = [
    "core/shell/tests/logging.rs",
    "core/shell/tests/pool/",
    "spec-tests/scenarios/cmap/",
    "spec-tests/scenarios/connection/",
    "spec-tests/scenarios/unified/",
    "spec-tests/tests/allocations.rs",
    "spec-tests/tests/appended_metadata.rs",
    "spec-tests/tests/client/",
    "spec-tests/tests/client_logging/",
    "spec-tests/tests/fork/",
    "spec-tests/tests/mio_fork.rs",
    "spec-tests/tests/mio_soak.rs",
    "spec-tests/tests/shells/",
];

/// The rules that no shell can lose, for the reasons on the page.
const CORE_ALONE: [(&str, &[u32]); 25] = [
    (
        "OP",
        &[
            11, 14, 16, 17, 24, 25, 26, 29, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44,
            45, 46, 47, 48, 49, 50, 51, 54, 55,
        ],
    ),
    ("CO", &[12, 13, 14, 15, 16, 17]),
    ("WQ", &[14]),
    ("PS", &[14, 21, 22]),
    ("EV", &[2, 4, 5, 6]),
    ("LG", &[6, 8, 9, 37, 38, 42, 44, 45, 46]),
    ("CC", &[1, 2, 3]),
    ("AV", &[4]),
    ("PO", &[6]),
    ("OUT", &[13, 21]),
    ("IN", &[9]),
    ("INT", &[7]),
    ("BG", &[6]),
    ("DU", &[1]),
    ("SD", &[6, 33]),
    ("SM", &[1, 9, 10, 11]),
    ("LB", &[2, 4, 35]),
    ("HS", &[6]),
    ("CM", &[4, 12]),
    ("AU", &[6, 38, 39, 40, 51]),
    ("MS", &[2]),
    ("TL", &[3, 4, 5]),
    ("SX", &[1, 2, 8]),
    ("ND", &[10]),
    // The machine's part of the draft.
    ("LR", &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
];

pub(super) fn check_shell(id: &str, cell: &str, repository: &Path) -> Result<(), String> {
    match (is_core_alone(id), cell == NO_TEST) {
        (true, true) => return Ok(()),
        (true, false) => return Err("no shell can lose the rule".to_owned()),
        (false, true) => return Err("a shell can lose the rule".to_owned()),
        (false, false) => {}
    }
    let references = references(cell)?;
    if references.is_empty() {
        return Err("it is missing".to_owned());
    }
    references.iter().try_for_each(|reference| {
        check_reference(reference, repository)?;
        match reference {
            Reference::Official(file) if played_on_shells().contains(*file) => Ok(()),
            Reference::Official(file) => Err(format!("{file} has not passed on every shell")),
            Reference::File { path, items } => check_file(id, path, items, repository),
        }
    })
}

fn is_core_alone(id: &str) -> bool {
    let (family, number) = id.split_once('-').expect("an id");
    let number = number.parse().expect("an id");
    CORE_ALONE.iter().any(|(own, numbers)| *own == family && numbers.contains(&number))
}

fn check_file(id: &str, path: &str, items: &[&str], repository: &Path) -> Result<(), String> {
    if !PLACES.iter().any(|place| path.starts_with(place)) {
        return Err(format!("{path} drives no shell"));
    }
    if !path.ends_with(".rs") {
        return check_scenario(id, path, repository);
    }
    let text = fs::read_to_string(repository.join(path)).expect("it was read before");
    let is_function =
        |item: &str| ["(", "<"].iter().any(|end| text.contains(&format!("fn {item}{end}")));
    match items.iter().find(|item| !is_function(item)) {
        Some(item) => Err(format!("{path} has no function {item}")),
        None => Ok(()),
    }
}

fn check_scenario(id: &str, path: &str, repository: &Path) -> Result<(), String> {
    let document = Document::read(&repository.join(path)).expect("a scenario");
    let scenario = document.value();
    let rules = scenario["requirements"].as_array().into_iter().flatten();
    if !rules.filter_map(|rule| rule.as_str()).any(|rule| rule == id) {
        return Err(format!("{path} is not about it"));
    }
    match Target::SHELLS.iter().find(|shell| scenario["notOn"].get(shell.name()).is_some()) {
        Some(shell) => Err(format!("{path} is not for {shell}")),
        None => Ok(()),
    }
}

#[test]
fn a_cell_that_is_wrong_is_told() {
    let check = |id, cell| check_shell(id, cell, &super::repository());
    let test = "`spec-tests/tests/client/contract.rs` `a_network_error`";
    for (id, cell) in [
        ("SD-26", test),
        (
            "SD-26",
            "`spec-tests/scenarios/cmap/broken-in-use.yml`, `official: cmap-format/pool-ready`",
        ),
        ("SD-06", "–"),
    ] {
        assert_eq!(check(id, cell), Ok(()));
    }
    for (id, cell, what) in [
        ("SD-26", "–", "a shell can lose the rule"),
        ("SD-06", test, "no shell can lose the rule"),
        ("SD-26", "", "it is missing"),
        ("SD-26", "`core/tests/errors.rs` `an_error`", "core/tests/errors.rs has no an_error"),
        ("SD-26", "`core/tests/errors.rs` `verdict`", "core/tests/errors.rs drives no shell"),
        (
            "SD-26",
            "`spec-tests/tests/client/contract.rs` `SD`",
            "spec-tests/tests/client/contract.rs has no function SD",
        ),
        (
            "SD-26",
            "`spec-tests/scenarios/cmap/counts.yml`",
            "spec-tests/scenarios/cmap/counts.yml is not about it",
        ),
        (
            "FK-04",
            "`spec-tests/scenarios/cmap/fork.yml`",
            "spec-tests/scenarios/cmap/fork.yml is not for tokio",
        ),
        (
            "HS-30",
            "`official: uri-options/connection-options`",
            "uri-options/connection-options has not passed on every shell",
        ),
    ] {
        assert_eq!(check(id, cell), Err(what.to_owned()));
    }
}
