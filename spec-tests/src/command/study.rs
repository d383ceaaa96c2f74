//! `cenote study`

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde_json::json;
use thiserror::Error;

use super::output::{print, tell};
use super::signals;
use cenote_simulation::study::{ALL, Findings, NotAPage, Page, Study};

/// Arguments of `cenote study`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Names of the studies [default: all]
    names: Vec<String>,
    /// Seed of the random numbers
    #[arg(long, allow_negative_numbers = true, default_value_t = 1)]
    seed: u64,
    /// Write tables and plots into the pages of this folder
    #[arg(long, conflicts_with = "check")]
    write: Option<PathBuf>,
    /// Fail if the pages of this folder differ
    #[arg(long)]
    check: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// What keeps it from being studied.
#[derive(Debug, Error)]
pub enum NotStudied {
    /// There is no such study.
    #[error("no study is called `{name}`; there are {}", ALL.map(|study| study.name).join(", "))]
    Unknown {
        /// As it was given.
        name: String,
    },
    /// Signals cannot be heard, or nothing can be printed.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A study went wrong, and has said why.
    #[error("the study `{0}` has panicked")]
    Panicked(&'static str),
    /// The pages are not there, or not as they have to be.
    #[error(transparent)]
    Page(#[from] NotAPage),
}

/// Runs the studies, and tells what was found; Ctrl-C ends it, and what was found by then is told.
/// Says whether the pages are as they have to be, if they were to be checked.
///
/// # Errors
///
/// [`NotStudied`].
pub fn run(arguments: &Arguments) -> Result<bool, NotStudied> {
    let (mut all_hold, mut is_whole) = (true, true);
    let mut told = serde_json::Map::new();
    let studies = chosen(&arguments.names)?;
    expect_pages(arguments, &studies)?;
    let is_interrupted = signals::flag()?;
    for (done, study) in studies.iter().enumerate() {
        let Some(findings) = run_one(study, arguments.seed, &is_interrupted)? else {
            tell(format_args!("interrupted after {done} of {} studies", studies.len()));
            is_whole = false;
            break;
        };
        if arguments.json {
            told.insert(study.name.to_owned(), json(&findings));
        } else {
            print(format_args!("{} ({})\n\n", study.title, study.name))?;
            findings.tables.iter().try_for_each(|table| print(format_args!("{table}\n")))?;
        }
        if let Some(folder) = &arguments.write {
            Page::new(folder, study.name, &findings)?.write()?;
        }
        if let Some(folder) = &arguments.check {
            for path in Page::new(folder, study.name, &findings)?.outdated()? {
                tell(format_args!("{}: says something else than the study", path.display()));
                all_hold = false;
            }
        }
    }
    if arguments.json {
        let told = json!({ "interrupted": !is_whole, "studies": told });
        print(format_args!("{told:#}\n"))?;
    }
    // Pages that were not checked count as different.
    Ok(all_hold && (is_whole || arguments.check.is_none()))
}

/// Whether pages can be written or read is better known now than after minutes.
fn expect_pages(arguments: &Arguments, studies: &[Study]) -> Result<(), NotAPage> {
    let expect = |folder: &Path, study: &Study, writes: bool| {
        let path = folder.join(study.name).with_extension("md");
        let opened = OpenOptions::new().read(true).append(writes).open(&path);
        opened.map(drop).map_err(|source| NotAPage::File { path, source })
    };
    for study in studies {
        if let Some(folder) = &arguments.write {
            expect(folder, study, true)?;
        }
        if let Some(folder) = &arguments.check {
            expect(folder, study, false)?;
        }
    }
    Ok(())
}

/// `None` if Ctrl-C comes first.
fn run_one(
    study: &Study,
    seed: u64,
    is_interrupted: &AtomicBool,
) -> Result<Option<Findings>, NotStudied> {
    const LOOK: Duration = Duration::from_millis(50);
    let (tell, told) = mpsc::channel();
    let run = study.run;
    // It ends with the process at the latest.
    thread::Builder::new().name(study.name.to_owned()).spawn(move || tell.send(run(seed)))?;
    while !is_interrupted.load(Ordering::Relaxed) {
        match told.recv_timeout(LOOK) {
            Ok(findings) => return Ok(Some(findings)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(NotStudied::Panicked(study.name)),
        }
    }
    Ok(None)
}

fn chosen(names: &[String]) -> Result<Vec<Study>, NotStudied> {
    if names.is_empty() {
        return Ok(ALL.to_vec());
    }
    let find = |name: &String| {
        let found = ALL.into_iter().find(|study| study.name == name);
        found.ok_or_else(|| NotStudied::Unknown { name: name.clone() })
    };
    names.iter().map(find).collect()
}

fn json(findings: &Findings) -> serde_json::Value {
    let tables = findings.tables.iter();
    let tables = tables.map(|table| json!({ "head": table.head, "rows": table.rows }));
    let plots = findings.plots.iter().map(|plot| {
        let series = plot.series.iter();
        let series = series.map(|it| json!({ "name": it.name, "points": it.points }));
        json!({
            "name": plot.name,
            "title": plot.title,
            "across": plot.across.name,
            "up": plot.up.name,
            "series": series.collect::<Vec<_>>(),
        })
    });
    json!({ "tables": tables.collect::<Vec<_>>(), "plots": plots.collect::<Vec<_>>() })
}
