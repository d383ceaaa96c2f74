//! `cenote study`

use std::path::PathBuf;

use serde_json::json;
use thiserror::Error;

use crate::study::{ALL, Findings, NotAPage, Page, Study};

/// What `cenote study` can be told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which studies; without names all
    names: Vec<String>,
    /// Where all chance comes from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write tables and pictures into the pages of this folder
    #[arg(long, conflicts_with = "check")]
    write: Option<PathBuf>,
    /// Complain if the pages of this folder say anything else
    #[arg(long)]
    check: Option<PathBuf>,
    /// One JSON object instead of tables
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
    /// The pages are not there, or not as they have to be.
    #[error(transparent)]
    Page(#[from] NotAPage),
}

/// Runs the studies, and tells what was found.
///
/// # Errors
///
/// [`NotStudied`].
pub fn run(arguments: &Arguments) -> Result<bool, NotStudied> {
    let mut all_hold = true;
    let mut told = serde_json::Map::new();
    for study in chosen(&arguments.names)? {
        let findings = (study.run)(arguments.seed);
        if arguments.json {
            told.insert(study.name.to_owned(), json(&findings));
        } else {
            println!("{} ({})\n", study.title, study.name);
            findings.tables.iter().for_each(|table| println!("{table}"));
        }
        if let Some(folder) = &arguments.write {
            Page::new(folder, study.name, &findings)?.write()?;
        }
        if let Some(folder) = &arguments.check {
            for path in Page::new(folder, study.name, &findings)?.outdated()? {
                eprintln!("{}: says something else than the study", path.display());
                all_hold = false;
            }
        }
    }
    if arguments.json {
        println!("{:#}", serde_json::Value::Object(told));
    }
    Ok(all_hold)
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
