//! Holds `docs/audit/prose.md` to the tests that it names.

use std::fs;
use std::path::Path;

use super::page::{Reference, check_reference, has_owner, references, table_lines};
use super::{read, repository};

/// Where each test runs on all runtimes.
const ON_ALL_RUNTIMES: [&str; 2] = ["spec-tests/tests/client/", "spec-tests/tests/shells/"];

#[test]
fn the_page_names_a_test_or_a_reason_for_each() {
    let page = read(&repository().join("docs/audit/prose.md"));
    let rows: Vec<_> = table_lines(&page).filter(|(_, text)| *text != "| test | ours |").collect();
    assert!(rows.len() > 60, "only {} rows", rows.len());
    let trouble: Vec<_> = rows
        .into_iter()
        .filter_map(|(line, text)| Some(format!("{line}: {}", check_row(text).err()?)))
        .collect();
    assert!(trouble.is_empty(), "docs/audit/prose.md:\n{}", trouble.join("\n"));
}

fn check_row(text: &str) -> Result<(), String> {
    let cells: Vec<&str> = text.split('|').map(str::trim).collect();
    let ["", _test, ours, ""] = cells[..] else {
        return Err("a row is | test | ours |".to_owned());
    };
    if has_owner(ours) {
        let reason = ours.split_once(": ").map(|(_, reason)| reason);
        return reason.map(drop).ok_or_else(|| format!("why is it {ours:?}?"));
    }
    let references = references(ours)?;
    if references.is_empty() {
        return Err("there is neither a test nor a reason".to_owned());
    }
    references.iter().try_for_each(check_test)
}

fn check_test(reference: &Reference<'_>) -> Result<(), String> {
    check_reference(reference, &repository())?;
    let Reference::File { path, items } = reference else {
        return Err("an official file is no test in words".to_owned());
    };
    if !ON_ALL_RUNTIMES.iter().any(|folder| path.starts_with(folder)) {
        return Ok(());
    }
    let text = fs::read_to_string(repository().join(Path::new(path))).map_err(|e| e.to_string())?;
    let list = text.split_once("on_all_runtimes!(").and_then(|(_, rest)| rest.split_once(");"));
    let (list, _) = list.ok_or_else(|| format!("{path} has no tests on all runtimes"))?;
    let runs = |item: &&&str| list.split(',').any(|name| name.trim() == **item);
    match items.iter().find(|item| !runs(item)) {
        Some(item) => Err(format!("{path} does not run {item} on all runtimes")),
        None => Ok(()),
    }
}

#[test]
fn a_row_that_is_wrong_is_told() {
    let good = "`spec-tests/tests/client/storm.rs` `connections_that_are_closed_clear_nothing`";
    let here = "`README.md` `Cenote`";
    for ours in [good, here, "driver: why", "not applicable: why", &format!("{good}, {here}")] {
        assert_eq!(check_row(&format!("| 1. A test | {ours} |")), Ok(()), "{ours}");
    }
    for (ours, what) in [
        ("", "there is neither"),
        ("driver", "why is it"),
        ("because", "is neither a name"),
        ("`README.md` `nothing of the kind`", "has no nothing"),
        ("`spec-tests/tests/client/storm.rs` `refuse`", "does not run refuse on all runtimes"),
        ("`official: cmap-format/pool-ready`", "no test in words"),
        ("a | b", "a row is"),
    ] {
        let told = check_row(&format!("| 1. A test | {ours} |")).expect_err(ours);
        assert!(told.contains(what), "{ours}: {told}");
    }
}
