//! Where ids stand in code and in tests.

use std::collections::BTreeMap;
use std::path::Path;

use cenote::formats::{Document, Target};

use super::ids::ids;
use super::{files_in, read};

/// Where a rule is cited: files with their lines.
#[derive(Default)]
pub(super) struct Citations {
    pub code: Vec<String>,
    /// Tests that drive no shell.
    pub test: Vec<String>,
    /// Tests that drive a shell: on real sockets, or with connections of the test's own.
    pub through_a_shell: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Column {
    Code,
    Test,
    ThroughAShell,
}

/// What is looked at; of several that a path begins with, the last one counts.
const PLACES: [(&str, Option<Column>); 16] = [
    ("core", Some(Column::Code)),
    ("core/tests", Some(Column::Test)),
    ("core/shell/tests", Some(Column::ThroughAShell)),
    ("shell-mio", Some(Column::Code)),
    ("shell-tokio", Some(Column::Code)),
    ("spec-tests/tests", Some(Column::Test)),
    ("spec-tests/tests/allocations.rs", Some(Column::ThroughAShell)),
    ("spec-tests/tests/client", Some(Column::ThroughAShell)),
    ("spec-tests/tests/commands/run.rs", Some(Column::ThroughAShell)),
    ("spec-tests/tests/fork", Some(Column::ThroughAShell)),
    ("spec-tests/tests/shells", Some(Column::ThroughAShell)),
    // Ids that are data.
    ("spec-tests/tests/pages/requirements", None),
    ("spec-tests/lab/tests", Some(Column::Test)),
    ("spec-tests/lab/transcripts", Some(Column::Test)),
    ("spec-tests/scenarios", Some(Column::ThroughAShell)),
    ("spec-tests/scenarios/uri", Some(Column::Test)),
];

/// All citations, by the id.
pub(super) fn all(repository: &Path) -> BTreeMap<String, Citations> {
    let mut all = BTreeMap::new();
    for folder in ["core", "shell-mio", "shell-tokio", "spec-tests"] {
        for path in files_in(&repository.join(folder), &["rs", "txt", "yml", "json"]) {
            let name = path.strip_prefix(repository).expect("inside").display().to_string();
            if let Some(column) = column_of(&name) {
                cite(&mut all, &name, column, &path);
            }
        }
    }
    for line in read(&repository.join("spec-tests/official.txt")).lines() {
        let Some((place, rules)) = line.split_once(": ") else { continue };
        let (column, file) = match place.split_once(' ') {
            Some(("shells", file)) => (Column::ThroughAShell, file),
            Some(("core", file)) => (Column::Test, file),
            _ => continue,
        };
        ids(rules).into_iter().for_each(|id| add(&mut all, id, column, file.to_owned()));
    }
    all
}

fn column_of(path: &str) -> Option<Column> {
    let is_in = |place: &str| path.strip_prefix(place).is_some_and(|it| !it.starts_with('_'));
    PLACES.iter().rev().find(|(place, _)| is_in(place)).and_then(|(_, column)| *column)
}

fn cite(all: &mut BTreeMap<String, Citations>, name: &str, column: Column, path: &Path) {
    if name.starts_with("spec-tests/scenarios/") {
        return cite_scenario(all, name, column, path);
    }
    let is_code = |name: &str| !name.contains("/tests/") && !name.ends_with("tests.rs");
    let mut column = if column == Column::Code && !is_code(name) { Column::Test } else { column };
    let text = read(path);
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        let begins_tests = line.trim_start().starts_with("#[cfg(test)]")
            && lines.peek().is_some_and(|(_, next)| next.ends_with(" {") && next.contains("mod "));
        if column == Column::Code && begins_tests {
            column = Column::Test;
        }
        let line = line.trim_start();
        let cited = match column {
            _ if line.starts_with("///") || line.starts_with("//!") => "",
            Column::Code => line.find("//").map_or("", |comment| &line[comment..]),
            Column::Test | Column::ThroughAShell => line,
        };
        ids(cited).into_iter().for_each(|id| add(all, id, column, format!("{name}:{number}")));
    }
}

/// A file that is not for every shell shows nothing of shells.
fn cite_scenario(all: &mut BTreeMap<String, Citations>, name: &str, column: Column, path: &Path) {
    let document = Document::read(path).expect("a scenario");
    let scenario = document.value();
    let lacks = |shell: &Target| scenario["notOn"].get(shell.name()).is_some();
    let column = if Target::SHELLS.iter().any(lacks) { Column::Test } else { column };
    let rules = scenario["requirements"].as_array().into_iter().flatten();
    let rules: Vec<_> = rules.filter_map(|rule| rule.as_str()).collect();
    assert!(!rules.is_empty(), "{name} does not say which rules it is about");
    rules.into_iter().for_each(|id| add(all, id.to_owned(), column, name.to_owned()));
}

fn add(all: &mut BTreeMap<String, Citations>, id: String, column: Column, place: String) {
    let citations = all.entry(id).or_default();
    let places = match column {
        Column::Code => &mut citations.code,
        Column::Test => &mut citations.test,
        Column::ThroughAShell => &mut citations.through_a_shell,
    };
    places.push(place);
}

#[test]
fn places_are_there_and_the_closest_counts() {
    for (place, _) in PLACES {
        assert!(super::repository().join(place).exists(), "{place}");
    }
    for (path, column) in [
        ("core/src/pool/mod.rs", Some(Column::Code)),
        ("core/shell/tests/pool/many.rs", Some(Column::ThroughAShell)),
        ("spec-tests/tests/client/srv.rs", Some(Column::ThroughAShell)),
        ("spec-tests/tests/shells/raw.rs", Some(Column::ThroughAShell)),
        ("spec-tests/tests/pages/requirements/ids.rs", None),
        ("spec-tests/lab/src/model/mod.rs", None),
    ] {
        assert!(column_of(path) == column, "{path}");
    }
}
