//! Reads the page, and looks for what its rows name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::through_a_shell::check_shell;
use super::{is_rule, repository, rules};

/// The owners of rules that the core does not keep.
const OWNERS: [&str; 4] = ["shell", "client", "driver", "not applicable"];

/// What stands in place of a test that there cannot be here.
pub(super) const NO_TEST: &str = "–";

/// A line of one of the tables.
#[derive(Debug, PartialEq)]
struct Row<'a> {
    line: usize,
    id: &'a str,
    code: &'a str,
    test: &'a str,
    through_a_shell: &'a str,
}

/// What a cell points at.
#[derive(Debug, PartialEq)]
pub(super) enum Reference<'a> {
    /// A file of the specifications, which are not here.
    Official(&'a str),
    /// A file of this repository, and what must occur in it.
    File { path: &'a str, items: Vec<&'a str> },
}

/// Everything that is wrong with the page, each with its line if it has one.
pub(super) fn trouble_with_page(page: &str, repository: &Path) -> Vec<String> {
    let mut trouble = Vec::new();
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for row in table_lines(page).map(|(line, text)| row(line, text)) {
        let checked = row.and_then(|row| {
            if !is_rule(row.id) {
                return Err(format!("{}: there is no rule {}", row.line, row.id));
            }
            if let Some(first) = lines.insert(row.id, row.line) {
                return Err(format!("{}: {} has a row in line {first}", row.line, row.id));
            }
            check_row(&row, repository).map_err(|what| format!("{}: {}: {what}", row.line, row.id))
        });
        trouble.extend(checked.err());
    }
    let missing = rules().filter(|id| !lines.contains_key(id.as_str()));
    trouble.extend(missing.map(|id| format!("{id} has no row")));
    trouble
}

/// The lines of tables, numbered from 1, without their headers.
pub(super) fn table_lines(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_header = |text: &str| text.starts_with("| id |") || text.starts_with("|---");
    (1..).zip(page.lines()).filter(move |(_, text)| text.starts_with('|') && !is_header(text))
}

fn row(line: usize, text: &str) -> Result<Row<'_>, String> {
    let cells: Vec<&str> = text.split('|').map(str::trim).collect();
    match cells[..] {
        ["", id, _rule, code, test, through_a_shell, ""] => {
            Ok(Row { line, id, code, test, through_a_shell })
        }
        _ => Err(format!("{line}: a row is | id | rule | code | test | through a shell |")),
    }
}

fn check_row(row: &Row<'_>, repository: &Path) -> Result<(), String> {
    if has_owner(row.code) {
        return if row.test == NO_TEST && row.through_a_shell == NO_TEST {
            Ok(())
        } else {
            Err(format!("the test of what {} keeps is {NO_TEST}", row.code))
        };
    }
    check_shell(row.id, row.through_a_shell, repository)
        .map_err(|what| format!("through a shell: {what}"))?;
    for (column, cell) in [("code", row.code), ("test", row.test)] {
        let references = references(cell).map_err(|what| format!("{column}: {what}"))?;
        if references.is_empty() {
            return Err(format!("{column} is missing"));
        }
        for reference in references {
            check_reference(&reference, repository).map_err(|what| format!("{column}: {what}"))?;
        }
    }
    Ok(())
}

/// One of the words for owners, alone or with a colon and more words behind it.
pub(super) fn has_owner(code: &str) -> bool {
    OWNERS.contains(&code.split_once(':').map_or(code, |(owner, _)| owner))
}

/// Reads `` `path` `item` `item`, `path` `item` ``.
pub(super) fn references(cell: &str) -> Result<Vec<Reference<'_>>, String> {
    let mut references = Vec::new();
    for part in cell.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let mut names = part.split('`').map(str::trim);
        let between = names.clone().step_by(2).find(|text| !text.is_empty());
        if let Some(between) = between {
            return Err(format!("{between:?} is neither a name in backticks nor an owner"));
        }
        let Some(path) = names.nth(1) else { continue };
        references.push(match path.strip_prefix("official: ") {
            Some(file) => Reference::Official(file),
            None => Reference::File { path, items: names.skip(1).step_by(2).collect() },
        });
    }
    Ok(references)
}

pub(super) fn check_reference(reference: &Reference<'_>, repository: &Path) -> Result<(), String> {
    match reference {
        Reference::Official(file)
            if file.split('/').filter(|part| !part.is_empty()).count() == 2 =>
        {
            Ok(())
        }
        Reference::Official(file) => Err(format!("{file:?} is not folder/file")),
        Reference::File { path, items } => {
            let text = fs::read_to_string(repository.join(path))
                .map_err(|_| format!("cannot read {path}"))?;
            if items.is_empty() && ![".json", ".yml"].iter().any(|end| path.ends_with(end)) {
                return Err(format!("{path}: say what to look for there"));
            }
            match items.iter().find(|item| !occurs(&text, item)) {
                Some(item) => Err(format!("{path} has no {item}")),
                None => Ok(()),
            }
        }
    }
}

/// Whether a text has these words, and not only as a part of longer ones.
fn occurs(text: &str, words: &str) -> bool {
    let goes_on = |next: Option<char>| next.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(words).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + words.len()..].chars().next();
        !goes_on(before) && !goes_on(after)
    })
}

/// What the page's test says to a row, when all others are missing.
fn trouble_with_row(row: &str) -> Vec<String> {
    let mut trouble = trouble_with_page(row, &repository());
    trouble.retain(|what| !what.ends_with("has no row"));
    trouble
}

#[test]
fn a_row_that_is_right_is_right() {
    for row in [
        "| OP-02 | r | `core/src/pool/transition/clear.rs` `clear` `ready` | `official: cmap-format/pool-ready` | `official: cmap-format/pool-ready` |",
        "| OP-02 | r | `core/src/lib.rs` `pool` | `spec-tests/scenarios/cmap/no-limit.json` | `spec-tests/scenarios/cmap/no-limit.json` |",
        "| LB-40 | r | client | – | – |",
        "| LB-40 | r | not applicable: why | – | – |",
        "| id | rule | code | test | through a shell |",
        "|---|---|---|---|---|",
        "| OP-55 | r | `core/src/lib.rs` `pool`, `core/src/pool/transition/clear.rs` `clear` | `README.md` `pool` | – |",
    ] {
        assert_eq!(trouble_with_row(row), [""; 0], "{row}");
    }
}

#[test]
fn a_row_that_is_wrong_is_told_with_its_line() {
    let code = "`core/src/pool/transition/clear.rs` `clear`";
    let test = "`spec-tests/tests/prose.rs` `fail_to_establish`";
    let shell = "`official: cmap-format/pool-ready`";
    let row =
        |id: &str, code: &str, test: &str| format!("\n| {id} | r | {code} | {test} | {shell} |");
    for (row, expected) in [
        (row("OP-56", code, test), "2: there is no rule OP-56".to_owned()),
        (row("OP-2", code, test), "2: there is no rule OP-2".to_owned()),
        (row("EV-07", code, test), "2: there is no rule EV-07".to_owned()),
        (row("OP-02", code, test).repeat(2), "3: OP-02 has a row in line 2".to_owned()),
        (
            "| OP-02 | r | client | – |".to_owned(),
            "1: a row is | id | rule | code | test | through a shell |".to_owned(),
        ),
        (
            row("OP-02", "`core/src/none.rs` `x`", test),
            "2: OP-02: code: cannot read core/src/none.rs".to_owned(),
        ),
        (
            row("OP-02", code, "`core/tests/none.rs` `x`"),
            "2: OP-02: test: cannot read core/tests/none.rs".to_owned(),
        ),
        (
            row("OP-02", "`core/src/pool/transition/clear.rs` `clear` `clea`", test),
            "2: OP-02: code: core/src/pool/transition/clear.rs has no clea".to_owned(),
        ),
        (
            row("OP-02", code, "`spec-tests/tests/prose.rs` `none`"),
            "2: OP-02: test: spec-tests/tests/prose.rs has no none".to_owned(),
        ),
        (
            row("OP-02", "`core/src/pool/transition/clear.rs`", test),
            "2: OP-02: code: core/src/pool/transition/clear.rs: say what to look for there"
                .to_owned(),
        ),
        (row("OP-02", "", test), "2: OP-02: code is missing".to_owned()),
        (row("OP-02", code, ""), "2: OP-02: test is missing".to_owned()),
        (
            row("OP-02", code, "–"),
            "2: OP-02: test: \"–\" is neither a name in backticks nor an owner".to_owned(),
        ),
        (
            row("OP-02", "somebody", "–"),
            "2: OP-02: code: \"somebody\" is neither a name in backticks nor an owner".to_owned(),
        ),
        (row("OP-02", "shell", test), "2: OP-02: the test of what shell keeps is –".to_owned()),
        (
            row("OP-02", code, "`official: pool-ready`"),
            "2: OP-02: test: \"pool-ready\" is not folder/file".to_owned(),
        ),
    ] {
        assert_eq!(trouble_with_row(&row), [expected], "{row}");
    }
}

#[test]
fn a_rule_without_a_row_is_missed() {
    let rows: Vec<_> = rules().map(|id| format!("| {id} | r | client | – | – |\n")).collect();
    assert_eq!(trouble_with_page(&rows.concat(), &repository()), [""; 0]);
    let all_but_two = [&rows[..1], &rows[2..rows.len() - 1]].concat();
    assert_eq!(
        trouble_with_page(&all_but_two.concat(), &repository()),
        ["OP-02 has no row", "SX-08 has no row"]
    );
}
