//! Holds `spec-tests/prose.md` to the tests that it names.

use std::fmt::Write as _;

use super::{files_in, read, repository};

/// The layers that keep what nothing here has to show.
const OWNERS: [&str; 2] = ["driver: ", "not applicable: "];

#[test]
fn the_page_names_a_test_or_a_reason_for_each() {
    let page = read(&repository().join("spec-tests/prose.md"));
    let is_row = |line: &&str| line.starts_with("| ") && *line != "| test | ours |";
    let rows: Vec<_> = page.lines().filter(is_row).collect();
    assert!(rows.len() > 60, "only {} rows", rows.len());
    let tests = tests();
    let trouble: Vec<_> = rows.into_iter().filter_map(|row| check_row(row, &tests).err()).collect();
    assert!(trouble.is_empty(), "spec-tests/prose.md:\n{}", trouble.join("\n"));
}

/// The text of all tests. One that is written and not run is a warning of the compiler: dead code.
fn tests() -> String {
    let folders = ["core/tests", "core/shell/tests", "spec-tests/tests"];
    let files = folders.iter().flat_map(|folder| files_in(&repository().join(folder), &["rs"]));
    let files = files.filter(|path| !path.ends_with("requirements/prose.rs"));
    files.fold(String::new(), |mut all, path| {
        let _ = writeln!(all, "{}", read(&path));
        all
    })
}

/// A row has the name of a function, or something else that stands in a test: an id, a case of its table.
fn check_row(row: &str, tests: &str) -> Result<(), String> {
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let ["", test, ours, ""] = cells[..] else {
        return Err(format!("a row is | test | ours |: {row}"));
    };
    if OWNERS.iter().any(|owner| ours.strip_prefix(owner).is_some_and(|why| !why.is_empty())) {
        return Ok(());
    }
    let names: Vec<&str> = ours.split('`').skip(1).step_by(2).collect();
    if names.is_empty() {
        return Err(format!("{test}: there is neither a test nor a reason"));
    }
    let is_name =
        |text: &str| text.bytes().all(|it| it.is_ascii_lowercase() || b"_0123456789".contains(&it));
    let is_there = |name: &str| match is_name(name) {
        true => ["(", "<"].iter().any(|end| tests.contains(&format!("fn {name}{end}"))),
        false => tests.contains(name),
    };
    match names.iter().find(|name| !is_there(name)) {
        Some(name) => Err(format!("{test}: no test has {name}")),
        None => Ok(()),
    }
}

#[test]
fn a_row_that_is_wrong_is_told() {
    let tests = "fn a_storm(shell: Shell) {\n// PT-04\n";
    for ours in ["`a_storm`", "`PT-04`, `a_storm`", "driver: why", "not applicable: why"] {
        assert_eq!(check_row(&format!("| 1 | {ours} |"), tests), Ok(()), "{ours}");
    }
    for (ours, what) in [
        ("", "1: there is neither a test nor a reason"),
        ("driver: ", "1: there is neither a test nor a reason"),
        ("because", "1: there is neither a test nor a reason"),
        ("`a_storm`, `storm`", "1: no test has storm"),
        ("a | b", "a row is | test | ours |: | 1 | a | b |"),
    ] {
        assert_eq!(check_row(&format!("| 1 | {ours} |"), tests), Err(what.to_owned()));
    }
}
