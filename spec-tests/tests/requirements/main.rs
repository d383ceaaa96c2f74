//! Holds `docs/audit/requirements.md` to the list of rules, to the code and tests that it names, and the
//! citations in comments to the page.
//!
//! How: a row is read as its id and its references; what a reference names must be there. What
//! cannot be seen from here is whether a test really shows its rule.

mod citations;
mod page;
mod prose;
mod scenarios;
mod through_a_shell;

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use self::citations::trouble_with_citations;
use self::page::trouble_with_page;

/// The rules that have a row each.
const RULES: [(&str, &[RangeInclusive<u32>]); 38] = [
    ("OP", &[1..=55]),
    ("CO", &[1..=21]),
    ("WQ", &[1..=16]),
    ("PS", &[1..=22]),
    ("EV", &[1..=6, 10..=29]),
    ("LG", &[1..=9, 20..=38, 40..=56]),
    ("PCR", &[1..=5]),
    ("PCL", &[1..=9]),
    ("PRD", &[1..=6]),
    ("CC", &[1..=3]),
    ("ES", &[1..=7]),
    ("KX", &[1..=5]),
    ("AV", &[1..=4]),
    ("PO", &[1..=13]),
    ("OUT", &[1..=25]),
    ("IN", &[1..=9]),
    ("CLX", &[1..=1]),
    ("CLR", &[1..=15]),
    ("INT", &[1..=13]),
    ("CLB", &[1..=7]),
    ("FK", &[1..=5]),
    ("BG", &[1..=12]),
    ("WC", &[1..=2]),
    ("DU", &[1..=8]),
    ("ER", &[1..=12, 20..=25, 30..=43]),
    ("SD", &[1..=10, 20..=33, 40..=42, 50..=54]),
    ("SM", &[1..=13]),
    ("CS", &[1..=21]),
    ("LB", &[1..=8, 10..=12, 20..=23, 30..=40]),
    ("HS", &[1..=12, 20..=30, 40..=48]),
    ("CM", &[1..=14]),
    ("AU", &[1..=12, 20..=22, 30..=41, 45..=47, 50..=51, 55..=55, 60..=60]),
    ("MS", &[1..=15]),
    ("TL", &[1..=11]),
    ("LN", &[1..=8]),
    ("ND", &[1..=10]),
    ("LR", &[1..=9]),
    ("SX", &[1..=8]),
];

#[test]
fn the_page_names_the_code_and_the_test_of_every_rule() {
    let page = read(&repository().join("docs/audit/requirements.md"));
    let trouble = trouble_with_page(&page, &repository());
    assert!(trouble.is_empty(), "docs/audit/requirements.md:\n{}", trouble.join("\n"));
}

#[test]
fn citations_are_of_rules_that_there_are() {
    let mut files = Vec::new();
    for folder in
        ["core", "shell-tokio", "shell-mio", "spec-tests", "fuzz/src", "fuzz/tests", "docs"]
    {
        collect_files(&repository().join(folder), &mut files);
    }
    // Its tests cite what there is not.
    files.retain(|path| {
        !path.ends_with("requirements/citations.rs") && !path.ends_with("requirements/page.rs")
    });
    assert!(files.len() > 100, "all files are looked at");
    let trouble: Vec<_> = files
        .iter()
        .flat_map(|path| {
            let name = path.strip_prefix(repository()).expect("inside").display().to_string();
            trouble_with_citations(&read(path))
                .into_iter()
                .map(move |what| format!("{name}:{what}"))
        })
        .collect();
    assert!(trouble.is_empty(), "\n{}", trouble.join("\n"));
}

fn rules() -> impl Iterator<Item = String> {
    RULES.iter().flat_map(|(family, ranges)| {
        ranges.iter().cloned().flatten().map(move |number| format!("{family}-{number:02}"))
    })
}

fn is_rule(id: &str) -> bool {
    rules().any(|rule| rule == id)
}

/// The files with sources, stories and pages in a folder, and in the folders in it.
fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect_files(&path, files);
        } else if path.extension().is_some_and(|it| it == "rs" || it == "txt" || it == "md") {
            files.push(path);
        }
    }
    files.sort();
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in a folder");
    root.to_owned()
}
