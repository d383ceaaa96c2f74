//! The table of `docs/audit/conformance.md`: every file and what became of it, between two marks.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use super::at_fault;
use super::report::{Counts, File, Report};
use crate::conform::Target;

const BEGIN: &str = "<!-- cenote conform --page: from here -->\n";
const END: &str = "<!-- to here -->\n";
/// How the line begins that does not count.
const DATE: &str = "Played on ";

/// Writes the table into the page, or compares it with the one that is there. Says whether the page
/// is good then.
///
/// # Errors
///
/// When the page cannot be read or written, or has no marks.
pub(super) fn write(
    report: &Report,
    paths: &[PathBuf],
    page: &Path,
    check: bool,
) -> Result<bool, Box<dyn Error>> {
    let Parts { before, table, after } = read(page)?;
    let new = render(report, paths);
    if !check {
        let text = format!("{before}{BEGIN}{new}{END}{after}");
        std::fs::write(page, text).map_err(at_fault(page))?;
        return Ok(true);
    }
    let is_up_to_date = without_date(&table) == without_date(&new);
    if !is_up_to_date {
        println!("{} is not what was played: write it with --page", page.display());
    }
    Ok(is_up_to_date)
}

/// What is around the table, and what of it is there.
pub(super) struct Parts {
    before: String,
    table: String,
    after: String,
}

/// # Errors
///
/// When the page cannot be read, or has no marks.
pub(super) fn read(page: &Path) -> Result<Parts, Box<dyn Error>> {
    let old = std::fs::read_to_string(page).map_err(at_fault(page))?;
    let marked = old.split_once(BEGIN).and_then(|(before, rest)| {
        let (table, after) = rest.split_once(END)?;
        let [before, table, after] = [before, table, after].map(str::to_owned);
        Some(Parts { before, table, after })
    });
    let (begin, end) = (BEGIN.trim_end(), END.trim_end());
    let missing = || format!("{}: no marks to write between: {begin} and {end}", page.display());
    Ok(marked.ok_or_else(missing)?)
}

fn without_date(table: &str) -> String {
    table.lines().filter(|line| !line.starts_with(DATE)).collect::<Vec<_>>().join("\n")
}

fn render(report: &Report, paths: &[PathBuf]) -> String {
    let mut page = String::new();
    let _ = writeln!(page, "{DATE}{}.\n", today());
    let commit = paths.iter().find_map(|path| commit_of(path));
    let commit = commit.unwrap_or_else(|| "of an unknown commit".to_owned());
    let _ = writeln!(page, "The specifications are those of commit `{commit}`.\n");
    let mut folders: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in &report.files {
        let folder = file.file.rsplit_once('/').map_or("", |(folder, _)| folder);
        folders.entry(folder).or_default().push(file);
    }
    for (folder, files) in folders {
        let _ = writeln!(page, "### {folder}\n");
        let names = Target::ALL.map(Target::name).join(" | ");
        let _ = writeln!(page, "| file | {names} |\n|---|{}", "---|".repeat(Target::ALL.len()));
        for file in files {
            let name = file.file.rsplit('/').next().unwrap_or_default();
            let cells = match &file.left_out {
                Some(reason) => format!("left out: {reason}{}", " |".repeat(Target::ALL.len() - 1)),
                None => Target::ALL.map(|target| cell(file, target)).join(" | "),
            };
            let _ = writeln!(page, "| {name} | {cells} |");
        }
        page.push('\n');
    }
    page.push_str(&exceptions(report));
    page
}

fn cell(file: &File, target: Target) -> String {
    let Some(Counts { passed, failed, not_applicable, .. }) = file.targets.get(target.name())
    else {
        return "–".to_owned();
    };
    let mut cell = format!("{passed} passed");
    for (count, what) in [(failed, "failed"), (not_applicable, "not applicable")] {
        if *count > 0 {
            let _ = write!(cell, ", {count} {what}");
        }
    }
    cell
}

/// Each test that does not count, once whatever the target.
fn exceptions(report: &Report) -> String {
    let tests = report.tests.iter().filter(|test| test.verdict == "not applicable");
    let mut reasons: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for test in tests {
        let because = test.because.as_deref().unwrap_or_default();
        reasons.insert((&test.file, &test.description), because);
    }
    let mut page =
        "### Tests that are not applicable\n\n| file | test | because |\n|---|---|---|\n"
            .to_owned();
    for ((file, test), because) in reasons {
        let name = file.rsplit('/').next().unwrap_or_default();
        let test = test.replace('|', "\\|").replace('<', "&lt;");
        let _ = writeln!(page, "| {name} | {test} | {because} |");
    }
    page
}

/// The commit of the files: what a note beside them says, or git.
fn commit_of(path: &Path) -> Option<String> {
    let note = path.ancestors().find_map(|it| std::fs::read_to_string(it.join("SOURCE.md")).ok());
    let is_commit = |word: &&str| word.len() == 40 && word.bytes().all(|it| it.is_ascii_hexdigit());
    let noted = note.as_deref().and_then(|note| note.split('`').find(is_commit)).map(str::to_owned);
    noted.or_else(|| {
        let asked = Command::new("git").arg("-C").arg(path).args(["rev-parse", "HEAD"]).output();
        let commit = String::from_utf8(asked.ok()?.stdout).ok()?;
        Some(commit.trim().to_owned()).filter(|commit| is_commit(&commit.as_str()))
    })
}

/// As a calendar has it, in UTC.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = civil(since.as_secs() / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// The date of a day since 1970, by years of 365 or 366 days.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in months {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_have_their_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(20_453), (2025, 12, 31));
    }
}
