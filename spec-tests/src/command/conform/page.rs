//! The table of `docs/audit/conformance.md`: every file and what became of it, between two marks.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use super::at_fault;
use super::report::{File, FileCounts, NOT_APPLICABLE, PASSED, Report, Test, TestCounts};
use crate::command::output::tell;
use crate::conform::{Reason, Target};

const BEGIN: &str = "<!-- cenote conform --page: from here -->\n";
const END: &str = "<!-- to here -->\n";
/// How the lines begin that are not compared.
const DATE: &str = "Played on ";
const COMMIT: &str = "The specifications are those of commit `";
const UNKNOWN_COMMIT: &str = "The specifications are of an unknown commit.";

/// Writes the table into the page, or compares it with the one that is there. Says whether the page
/// is good then.
///
/// The date and the commit are not compared. Files that another commit has besides those of the page are
/// reported, and not compared.
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
    let commit = paths.iter().find_map(|path| commit_of(path));
    let header =
        commit.as_ref().map_or(UNKNOWN_COMMIT.to_owned(), |commit| format!("{COMMIT}{commit}`."));
    if !check {
        let new = format!("{DATE}{}.\n\n{header}\n\n{}", today(), render(report, |_| true));
        let text = format!("{before}{BEGIN}{new}{END}{after}");
        std::fs::write(page, text).map_err(at_fault(page))?;
        return Ok(true);
    }
    let known = files_of(&table);
    let is_known = |file: &str| known.contains(file);
    let new: Vec<_> = report.files.iter().map(|it| &*it.file).filter(|it| !is_known(it)).collect();
    let is_of_another_commit = !table.contains(&header);
    if is_of_another_commit {
        tell(format_args!("{header} They are not those of {}.", page.display()));
        new.iter().for_each(|file| tell(format_args!("new            {file}")));
    }
    let rendered = render(report, |file| !is_of_another_commit || is_known(file));
    let is_up_to_date = without_header(&table) == without_header(&rendered);
    if !is_up_to_date {
        tell(format_args!("{} is not what was played: write it with --page", page.display()));
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

fn without_header(table: &str) -> String {
    let is_compared =
        |line: &&str| ![DATE, COMMIT, UNKNOWN_COMMIT].iter().any(|it| line.starts_with(it));
    table.lines().filter(is_compared).collect::<Vec<_>>().join("\n").trim_start().to_owned()
}

/// The files of a table.
fn files_of(table: &str) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    let mut folder = "";
    for line in table.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            folder = heading;
        } else if let Some((listed, names)) =
            line.strip_prefix("* ").and_then(|it| it.split_once(": `"))
        {
            let names = names.trim_end_matches('`').split("`, `");
            files.extend(names.map(|name| format!("{listed}/{name}")));
        } else if let Some((name, _)) = line.strip_prefix("| ").and_then(|it| it.split_once(" |")) {
            files.insert(format!("{folder}/{name}"));
        }
    }
    files
}

/// The table of these files.
fn render(report: &Report, is_shown: impl Fn(&str) -> bool) -> String {
    let files: Vec<&File> = report.files.iter().filter(|it| is_shown(&it.file)).collect();
    let tests: Vec<&Test> = report.tests.iter().filter(|it| is_shown(&it.file)).collect();
    let counts = FileCounts::of(files.iter().copied());
    let passed = tests.iter().filter(|test| test.verdict == PASSED).count();
    let mut page = format!("{counts}. {passed} tests passed.\n\n");
    let (played, unplayed): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|it| it.unplayed.is_none());
    for (folder, files) in by_folder(played) {
        let _ = writeln!(page, "### {folder}\n");
        let names = Target::ALL.map(Target::name).join(" | ");
        let _ = writeln!(page, "| file | {names} |\n|---|{}", "---|".repeat(Target::ALL.len()));
        for file in files {
            let cells = Target::ALL.map(|target| cell(file, target)).join(" | ");
            let _ = writeln!(page, "| {} | {cells} |", name_in(&file.file));
        }
        page.push('\n');
    }
    page.push_str(&exceptions(&tests));
    page.push_str(&list(unplayed));
    page
}

/// The files that are not played, by the reason.
fn list(files: Vec<&File>) -> String {
    let mut reasons: BTreeMap<&Reason, Vec<&File>> = BTreeMap::new();
    for file in files {
        if let Some(reason) = &file.unplayed {
            reasons.entry(reason).or_default().push(file);
        }
    }
    let mut page = String::new();
    let mut last = "";
    for (reason, files) in reasons {
        let (heading, why) = match reason {
            Reason::NotApplicable(why) => ("not applicable", why),
            Reason::LeftOut(why) => ("left out", why),
            Reason::Unreadable(why) => ("unreadable", why),
        };
        if heading != last {
            let _ = writeln!(page, "\n### Files that are {heading}");
            last = heading;
        }
        let _ = writeln!(page, "\n{why}:\n");
        for (folder, files) in by_folder(files) {
            let names: Vec<_> = files.iter().map(|it| format!("`{}`", name_in(&it.file))).collect();
            let _ = writeln!(page, "* {folder}: {}", names.join(", "));
        }
    }
    page.push('\n');
    page
}

fn by_folder(files: Vec<&File>) -> BTreeMap<&str, Vec<&File>> {
    let mut folders: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in files {
        let folder = file.file.rsplit_once('/').map_or("", |(folder, _)| folder);
        folders.entry(folder).or_default().push(file);
    }
    folders
}

/// The file's name in its folder.
fn name_in(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or_default()
}

fn cell(file: &File, target: Target) -> String {
    let Some(TestCounts { passed, failed, not_applicable, .. }) = file.targets.get(target.name())
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
fn exceptions(tests: &[&Test]) -> String {
    let tests = tests.iter().filter(|test| test.verdict == NOT_APPLICABLE);
    let mut reasons: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for test in tests {
        let because = test.because.as_deref().unwrap_or_default();
        reasons.insert((&test.file, &test.description), because);
    }
    let mut page =
        "### Tests that are not applicable\n\n| file | test | because |\n|---|---|---|\n"
            .to_owned();
    for ((file, test), because) in reasons {
        let name = name_in(file);
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
        // Another repository may be around files that are not its own.
        let tracked = ["ls-files", "--error-unmatch", "."];
        let tracked = Command::new("git").arg("-C").arg(path).args(tracked).output().ok()?;
        if !tracked.status.success() {
            return None;
        }
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
