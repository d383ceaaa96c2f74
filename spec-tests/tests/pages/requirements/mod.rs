//! Makes the ledger of requirements: for each rule of `spec-tests/requirements.txt` the code and the tests
//! that name its id.
//!
//! The table is written to `target/requirements.md`; `docs/audit/requirements.md` has its counts. After an
//! intended change, `CENOTE_BLESS=1 cargo test -p cenote --test pages requirements` rewrites them.
//!
//! What cannot be seen from here is whether a test really shows its rule. It does if it notices a bug that is
//! planted on the rule: `rule` in `spec-tests/mutations.toml`, and the last column of `docs/audit/mutations.md`.

mod citations;
mod ids;
mod ledger;
mod prose;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use self::ids::trouble_with_citations;
use self::ledger::Ledger;
use self::rules::Family;

const BEGIN: &str = "<!-- counts, by spec-tests/tests/pages/requirements: from here -->\n";
const END: &str = "<!-- to here -->\n";

#[test]
fn every_rule_has_code_and_a_test_and_the_page_has_the_counts() {
    let repository = repository();
    let (families, citations, proved) = (families(), citations::all(&repository), proved());
    let ledger = Ledger { families: &families, citations: &citations, proved: &proved };
    let table = repository.join("target/requirements.md");
    fs::write(&table, ledger.table()).expect("target/ can be written");
    let trouble = ledger.trouble();
    assert!(trouble.is_empty(), "{}", trouble.join("\n"));

    let path = repository.join("docs/audit/requirements.md");
    let page = read(&path);
    let (before, rest) = page.split_once(BEGIN).expect("a mark");
    let (counts, after) = rest.split_once(END).expect("a mark");
    if std::env::var_os("CENOTE_BLESS").is_some() {
        let page = format!("{before}{BEGIN}{}{END}{after}", ledger.counts());
        return fs::write(path, page).expect("docs/ can be written");
    }
    assert_eq!(counts, ledger.counts(), "run with CENOTE_BLESS=1 and review the diff");
}

#[test]
fn citations_are_of_rules_that_there_are() {
    let families = families();
    let rules: BTreeSet<&str> =
        families.iter().flat_map(|family| &family.rules).map(|rule| &*rule.id).collect();
    let kinds = ["rs", "txt", "md", "yml", "json", "toml"];
    let folders =
        ["core", "shell-tokio", "shell-mio", "spec-tests", "fuzz/src", "fuzz/tests", "docs"];
    let mut files: Vec<PathBuf> =
        folders.iter().flat_map(|folder| files_in(&repository().join(folder), &kinds)).collect();
    // Their tests cite what there is not.
    files.retain(|path| !path.components().any(|it| it.as_os_str() == "requirements"));
    assert!(files.len() > 100, "all files are looked at");
    let trouble: Vec<_> = files
        .iter()
        .flat_map(|path| {
            let name = path.strip_prefix(repository()).expect("inside").display().to_string();
            let trouble = trouble_with_citations(&read(path), &rules);
            trouble.into_iter().map(move |what| format!("{name}:{what}"))
        })
        .collect();
    assert!(trouble.is_empty(), "\n{}", trouble.join("\n"));
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

fn families() -> Vec<Family> {
    let list = read(&repository().join("spec-tests/requirements.txt"));
    rules::parse(&list).unwrap_or_else(|what| panic!("spec-tests/requirements.txt:{what}"))
}

/// The planted bugs that a test of their rule notices, by the rule.
fn proved() -> BTreeMap<String, Vec<String>> {
    let matrix = read(&repository().join("docs/audit/mutations.md"));
    let rows = matrix.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    let ends = rows.filter_map(|row| Some((row.split_once('|')?.0, row.rsplit_once('|')?.1)));
    let proofs: BTreeMap<_, _> = ends.collect();
    let mut proved: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut what = "";
    let list = read(&repository().join("spec-tests/mutations.toml"));
    for line in list.lines() {
        if let Some(this) = line.strip_prefix("what = ") {
            what = this.trim_matches('"');
        } else if let Some(rule) = line.strip_prefix("rule = ") {
            let tests = proofs.get(what).and_then(|test| test.strip_prefix('`')?.strip_suffix('`'));
            proved
                .entry(rule.trim_matches('"').to_owned())
                .or_default()
                .extend(tests.map(str::to_owned));
        }
    }
    proved.retain(|_, tests| !tests.is_empty());
    proved
}

/// The files of these kinds in a folder, and in the folders in it.
pub(super) fn files_in(folder: &Path, kinds: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(files_in(&path, kinds));
        } else if path.extension().is_some_and(|it| kinds.iter().any(|kind| it == *kind)) {
            files.push(path);
        }
    }
    files.sort();
    files
}

pub(super) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(super) fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in a folder");
    root.to_owned()
}
