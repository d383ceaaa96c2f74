//! Holds `docs/audit/scenarios.md` to the list of what must be kept, to the scenarios, and to the official
//! files that were played.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cenote::conform::Document;

use super::citations::is_there;
use super::page::{NO_TEST, Reference, check_reference, has_owner, references, table_lines};
use super::{read, repository};

/// Rules that must be kept, of the families that concern a pool and its connections.
const MUSTS: [(&str, &[u32]); 31] = [
    (
        "OP",
        &[
            1, 2, 3, 5, 6, 7, 10, 12, 13, 14, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
            32, 33, 34, 35, 36, 38, 39, 40, 41, 43, 45, 46, 47, 48, 49, 51, 52, 53, 54,
        ],
    ),
    ("CO", &[1, 2, 3, 4, 5, 7, 19]),
    ("WQ", &[2, 4, 5, 7, 8, 10, 11, 12]),
    ("PS", &[2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 19]),
    ("EV", &[1, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 25, 28]),
    (
        "LG",
        &[
            1, 2, 3, 4, 5, 7, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 41, 42, 44, 46,
            47, 48, 49, 50, 51, 53, 54, 56,
        ],
    ),
    ("PCR", &[2, 3, 5]),
    ("PCL", &[1, 2, 3, 7]),
    ("PRD", &[1, 3]),
    ("ES", &[4, 5, 6]),
    ("KX", &[1]),
    ("AV", &[1, 2]),
    ("PO", &[2, 3, 4, 5, 7]),
    ("OUT", &[1, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 15, 24, 25]),
    ("IN", &[1, 2, 3]),
    ("CLX", &[1]),
    ("CLR", &[1, 5, 6, 8, 9, 10, 11, 15]),
    ("INT", &[1, 3, 4, 5, 6, 8]),
    ("CLB", &[1, 3, 4, 5]),
    ("FK", &[2, 4, 5]),
    ("BG", &[7]),
    ("ER", &[1, 6, 9, 11, 12, 20, 21, 24, 30, 31, 32, 33, 35, 43]),
    ("SD", &[1, 2, 4, 5, 8, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30, 40, 41, 42, 51, 52, 53]),
    ("CS", &[2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16]),
    ("LB", &[1, 2, 3, 5, 6, 10, 11, 12, 20, 21, 22, 30, 31, 32, 33, 35, 36, 39, 40]),
    ("HS", &[1, 2, 3, 4, 5, 7, 8, 9, 11, 21, 22, 26, 27, 29, 30, 43, 46]),
    ("CM", &[3, 5, 6, 8, 9, 10, 12]),
    ("AU", &[1, 2, 3, 4, 7, 8, 9, 10, 11, 21, 30, 31, 32, 33, 34, 36, 46, 60]),
    ("MS", &[1, 3, 4, 5, 7, 8, 9, 10, 11, 13]),
    ("TL", &[3, 4, 6, 7]),
    ("SX", &[2, 3, 4, 5, 6, 8]),
];

/// What the page calls the folders of official files.
const FOLDERS: [(&str, &str); 12] = [
    ("cmap-format", "connection-monitoring-and-pooling/tests/cmap-format"),
    ("logging", "connection-monitoring-and-pooling/tests/logging"),
    ("load-balancers", "load-balancers/tests"),
    ("sdam", "server-discovery-and-monitoring/tests/unified"),
    ("sdam-errors", "server-discovery-and-monitoring/tests/errors"),
    ("selection-logging", "server-selection/tests/logging"),
    ("csot", "client-side-operations-timeout/tests"),
    ("uri-options", "uri-options/tests"),
    ("connection-string", "connection-string/tests"),
    ("auth", "auth/tests/legacy"),
    ("auth-unified", "auth/tests/unified"),
    ("handshake", "mongodb-handshake/tests/unified"),
];

/// Which scenarios say that they are about a rule.
type Scenarios = BTreeMap<String, BTreeSet<String>>;

#[test]
fn every_must_has_a_file_that_shows_it_or_a_reason() {
    let page = read(&repository().join("docs/audit/scenarios.md"));
    let trouble = trouble_with_page(&page, &scenarios(), &played());
    assert!(trouble.is_empty(), "docs/audit/scenarios.md:\n{}", trouble.join("\n"));
}

#[test]
fn scenarios_are_about_rules_that_there_are() {
    for (id, files) in scenarios() {
        let (family, number) = id.split_once('-').expect("an id");
        assert!(is_there(family, number), "{files:?}: there is no {id}");
    }
}

fn trouble_with_page(page: &str, scenarios: &Scenarios, played: &BTreeSet<String>) -> Vec<String> {
    let mut missing = musts();
    let mut trouble = Vec::new();
    let is_rule = |text: &str| text.split('|').nth(1).is_some_and(|id| is_id(id.trim()));
    for (line, text) in table_lines(page).filter(|(_, text)| is_rule(text)) {
        let cells: Vec<&str> = text.split('|').map(str::trim).collect();
        let ["", id, official, own, instead, ""] = cells[..] else {
            trouble.push(format!("{line}: a row is | id | official | own | instead |"));
            continue;
        };
        if !missing.remove(id) {
            trouble.push(format!("{line}: {id} is no MUST, or is there twice"));
        }
        let verdicts = [
            check_official(official, played),
            check_own(own, scenarios.get(id)),
            check_instead(instead),
            check_any(official, own, instead),
        ];
        let wrong = verdicts.into_iter().filter_map(Result::err);
        trouble.extend(wrong.map(|what| format!("{line}: {id}: {what}")));
    }
    trouble.extend(missing.into_iter().map(|id| format!("{id} has no row")));
    trouble
}

fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(_, number)| number.parse::<u32>().is_ok())
}

fn check_official(cell: &str, played: &BTreeSet<String>) -> Result<(), String> {
    match names(cell)?.into_iter().find(|name| !played.contains(*name)) {
        Some(name) => Err(format!("{name} is not among the files that are played")),
        None => Ok(()),
    }
}

/// Both ways: the files that a row names cite the rule, and all files that cite it are named.
fn check_own(cell: &str, scenarios: Option<&BTreeSet<String>>) -> Result<(), String> {
    let names: BTreeSet<String> = names(cell)?.into_iter().map(str::to_owned).collect();
    let expected = scenarios.cloned().unwrap_or_default();
    if names == expected {
        return Ok(());
    }
    Err(format!("its scenarios are {expected:?} by themselves, and {names:?} here"))
}

fn check_instead(cell: &str) -> Result<(), String> {
    if cell == NO_TEST || has_owner(cell) {
        return Ok(());
    }
    let begins = cell.find(": `").filter(|begins| *begins > 0);
    let begins = begins.ok_or("it takes a reason and a test, or the owner of the rule")?;
    let tests = references(cell[begins..].trim_start_matches(": "))?;
    tests.iter().try_for_each(|test| match test {
        Reference::Official(_) => Err("official files have a column of their own".to_owned()),
        Reference::File { .. } => check_reference(test, &repository()),
    })
}

fn check_any(official: &str, own: &str, instead: &str) -> Result<(), String> {
    if [official, own, instead].iter().all(|cell| *cell == NO_TEST) {
        return Err("nothing shows it".to_owned());
    }
    Ok(())
}

/// The names in backticks of a cell.
fn names(cell: &str) -> Result<Vec<&str>, String> {
    if cell == NO_TEST {
        return Ok(Vec::new());
    }
    let name = |part: &'_ str| {
        let name = part.trim().strip_prefix('`')?.strip_suffix('`')?;
        (!name.is_empty()).then(|| part.trim().trim_matches('`').to_owned())
    };
    match cell.split(',').find(|part| name(part).is_none()) {
        Some(part) => Err(format!("{part:?} is no name in backticks")),
        None => Ok(cell.split(',').map(|part| part.trim().trim_matches('`')).collect()),
    }
}

fn musts() -> BTreeSet<String> {
    let of = |(family, numbers): &(&str, &[u32])| {
        numbers.iter().map(|number| format!("{family}-{number:02}")).collect::<Vec<_>>()
    };
    MUSTS.iter().flat_map(of).collect()
}

fn scenarios() -> Scenarios {
    let mut scenarios = Scenarios::new();
    for folder in ["cmap", "connection", "unified", "uri"] {
        for file in files(&repository().join("spec-tests/scenarios").join(folder)) {
            let document = Document::read(&file).expect("a scenario");
            let ids = document.value()["requirements"].as_array().cloned().unwrap_or_default();
            let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
            assert!(!ids.is_empty(), "{name} does not say which rules it is about");
            for id in ids {
                let id = id.as_str().expect("an id").to_owned();
                assert!(scenarios.entry(id).or_default().insert(name.clone()), "{name}: twice");
            }
        }
    }
    scenarios
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the repository");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

#[test]
fn the_readme_has_the_counts_of_the_official_files() {
    let page = read(&repository().join("docs/audit/conformance.md"));
    let counts =
        page.lines().find(|line| line.contains(" left out, ") && line.contains(" files: "));
    let (files, tests) = counts.and_then(|line| line.split_once(". ")).expect("a line of counts");
    let readme = read(&repository().join("README.md"));
    assert!(readme.contains(&format!("> {files}\n")), "README.md: {files}");
    assert!(readme.contains(tests.trim_end_matches('.')), "README.md: {tests}");
}

/// The official files of which `docs/audit/conformance.md` says that tests have passed.
fn played() -> BTreeSet<String> {
    official_files(|passed| passed.contains(&true))
}

/// The official files that have passed on tokio, mio and smol.
pub(super) fn played_on_shells() -> BTreeSet<String> {
    official_files(|passed| matches!(passed, [_, true, true, true, ..]))
}

/// The official files whose tests have passed on enough targets, of which the core is the first.
fn official_files(is_enough: impl Fn(&[bool]) -> bool) -> BTreeSet<String> {
    let page = read(&repository().join("docs/audit/conformance.md"));
    let mut folder = None;
    let mut files = BTreeSet::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            folder = FOLDERS.iter().find(|(_, its)| *its == heading).map(|(name, _)| *name);
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let (Some(folder), ["", name, targets @ .., ""]) = (folder, &cells[..]) {
            let has_passed = |cell: &&str| cell.contains(" passed") && !cell.starts_with("0 ");
            let passed: Vec<_> = targets.iter().map(has_passed).collect();
            if is_enough(&passed) {
                files.insert(format!("{folder}/{name}"));
            }
        }
    }
    files
}

#[test]
fn a_row_that_is_wrong_is_told() {
    let (scenarios, played) = (scenarios(), played());
    let trouble = |row: &str| {
        let mut trouble = trouble_with_page(row, &scenarios, &played);
        trouble.retain(|what| !what.ends_with("has no row"));
        trouble.join("\n")
    };
    let good = "| OUT-24 | – | – | driver: why |";
    assert_eq!(trouble(good), "");
    for (row, what) in [
        ("| OUT-24 | – | – |", "a row is"),
        ("| OUT-10 | – | – | driver: why |", "OUT-10 is no MUST"),
        ("| OUT-24 | – | – | – |", "nothing shows it"),
        ("| OUT-24 | `cmap-format/none` | – | – |", "cmap-format/none is not among the files"),
        (
            "| OUT-24 | `load-balancers/lb-connection-establishment` | – | – |",
            "is not among the files that are played",
        ),
        ("| OUT-24 | cmap-format | – | – |", "is no name in backticks"),
        ("| OUT-24 | – | `no-limit` | – |", "its scenarios are {} by themselves"),
        ("| WQ-12 | – | – | driver: why |", "its scenarios are {\"close-fails-waiters\"}"),
        ("| OUT-24 | – | – | because |", "a reason and a test"),
        ("| OUT-24 | – | – | : `README.md` `Cenote` |", "a reason and a test"),
        ("| OUT-24 | – | – | because: `README.md` |", "say what to look for there"),
        ("| OUT-24 | – | – | because: `README.md` `nothing of the kind` |", "has no nothing"),
        ("| OUT-24 | – | – | because: `official: a/b` |", "a column of their own"),
    ] {
        let seen = trouble(row);
        assert!(seen.contains(what), "{row}: no {what:?} in {seen:?}");
    }
    assert!(trouble(&format!("{good}\n{good}")).contains("is there twice"));
    let missing = trouble_with_page("", &scenarios, &played);
    assert_eq!(missing.len(), musts().len());
}
