//! `cenote conform PATH…`

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::command::input::at;
use crate::command::test_report::{Report, xml};
use crate::command::{Failure, output};
use crate::formats::{self, Foreign, Place, Target};

/// Arguments of `cenote conform`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Test files, or folders of them, such as ../specifications/source/load-balancers/tests: a file's
    /// format is told by its folder, as in the repository of the specifications
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Targets; each file runs on those that support its format [default: all]
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Target::ALL)]
    target: Vec<Target>,
    /// Run files of cmap-format on the shells against this server instead of the mock server
    #[arg(long)]
    uri: Option<String>,
    /// Print one JSON object instead of lines: each file with its verdict per target, and each test
    #[arg(long)]
    json: bool,
    /// Also write a JUnit XML report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// Plays the files and prints a line a test.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let place = match &arguments.uri {
        None => Place::Endpoint,
        Some(uri) => Place::Server(Box::new(Foreign::new(uri)?)),
    };
    let targets: BTreeSet<_> = arguments.target.iter().copied().collect();
    let is_played = |target: &Target| !target.is_simulated() || arguments.uri.is_none();
    let targets: Vec<_> = targets.into_iter().filter(is_played).collect();
    // Before it all: playing takes its time.
    if let Some(file) = &arguments.junit {
        // Nor does an old report stay there if nothing comes of this run.
        std::fs::write(file, "").map_err(at(file))?;
    }
    let paths = distinct(&arguments.paths)?;
    let report = Report::new(formats::play(&paths, &targets, &place)?);
    if arguments.json {
        output::print(format_args!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        output::print(report.text())?;
    }
    if let Some(file) = &arguments.junit {
        std::fs::write(file, xml(&report)).map_err(at(file))?;
    }
    Ok(report.is_good())
}

/// The paths without those that are below another one, in full: the folder of a file determines its format.
fn distinct(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut distinct: Vec<(PathBuf, PathBuf)> = Vec::new();
    for path in paths {
        let real = std::fs::canonicalize(path).map_err(at(path))?;
        if !distinct.iter().any(|(_, other)| real.starts_with(other)) {
            distinct.retain(|(_, other)| !other.starts_with(&real));
            distinct.push((std::path::absolute(path).map_err(at(path))?, real));
        }
    }
    Ok(distinct.into_iter().map(|(path, _)| path).collect())
}
