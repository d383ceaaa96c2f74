//! Makes the table of `docs/audit/reports.md`: public reports about pools and drivers, and the tests that play them.
//!
//! A comment above a test cites them: `// Reports hyper#2136, tokio#4730 (mended): what happened there.` Without `(mended)`
//! it did not happen here when it was first tried. After an intended change,
//! `CENOTE_BLESS=1 cargo test -p cenote --test pages reports` rewrites the table.

use std::fs;

use crate::requirements::{files_in, read, repository};

const BEGIN: &str = "<!-- reports, by spec-tests/tests/pages/reports.rs: from here -->\n";
const END: &str = "<!-- to here -->\n";

#[test]
fn the_page_has_the_reports_that_tests_cite() {
    let table = table();
    let path = repository().join("docs/audit/reports.md");
    let page = read(&path);
    let (before, rest) = page.split_once(BEGIN).expect("a mark");
    let (kept, after) = rest.split_once(END).expect("a mark");
    if std::env::var_os("CENOTE_BLESS").is_some() {
        let page = format!("{before}{BEGIN}{table}{END}{after}");
        return fs::write(path, page).expect("docs/ can be written");
    }
    assert_eq!(kept, table, "run with CENOTE_BLESS=1 and review the diff");
}

fn table() -> String {
    let folders = ["core", "shell-tokio", "shell-mio", "spec-tests/tests"];
    let mut table =
        "| reports | what happened | here | played by |\n|---|---|---|---|\n".to_owned();
    for path in folders.iter().flat_map(|folder| files_in(&repository().join(folder), &["rs"])) {
        let name = path.strip_prefix(repository()).expect("inside").display().to_string();
        for row in rows(&read(&path)) {
            let Report { ids, what, outcome, test } =
                row.unwrap_or_else(|line| panic!("{name}:{line}"));
            table += &format!("| {ids} | {what} | {outcome} | [`{test}`](../../{name}) |\n");
        }
    }
    table
}

struct Report {
    ids: String,
    what: String,
    outcome: &'static str,
    test: String,
}

/// An error is the number of the line.
fn rows(text: &str) -> impl Iterator<Item = Result<Report, usize>> {
    let mut lines = text.lines().map(str::trim_start).enumerate();
    std::iter::from_fn(move || {
        let (number, cited) = lines.by_ref().find(|(_, line)| line.starts_with(MARK))?;
        let mut cited = cited[MARK.len()..].to_owned();
        let name = loop {
            let Some((_, line)) = lines.next() else { return Some(Err(number + 1)) };
            let function = ["fn ", "async fn "].iter().find_map(|it| line.strip_prefix(it));
            match (function, line.strip_prefix("// ")) {
                (Some(name), _) => break name,
                (None, Some(more)) => cited = format!("{cited} {more}"),
                (None, None) => {}
            }
        };
        let row = cited.split_once(": ").map(|(ids, what)| Report {
            ids: ids.trim_end_matches(MENDED).to_owned(),
            what: what.trim_end_matches('.').to_owned(),
            outcome: if ids.ends_with(MENDED) { "mended" } else { "held" },
            test: name.split(['(', '<']).next().unwrap_or(name).to_owned(),
        });
        Some(row.ok_or(number + 1))
    })
}

const MARK: &str = "// Reports ";
const MENDED: &str = " (mended)";
