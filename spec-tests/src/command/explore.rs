//! `cenote explore`

use std::convert::Infallible;

use crate::explore::{self, Configuration, Report};

/// What `cenote explore` can be told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How many inputs a sequence has at the most; each more costs about three times as much
    #[arg(long, default_value_t = 9)]
    depth: u32,
    /// How many configurations are explored at once; by default as many as there are cores
    #[arg(long)]
    threads: Option<usize>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Explores, and prints how many states were reached and judged.
///
/// # Errors
///
/// None.
pub fn run(arguments: &Arguments) -> Result<bool, Infallible> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.unwrap_or_else(cores);
    let report = explore::explore(&Configuration::standard(), arguments.depth, threads);
    if arguments.json {
        println!("{:#}", json(&report));
    } else {
        print!("{report}");
    }
    Ok(report.failures().next().is_none())
}

fn json(report: &Report) -> serde_json::Value {
    let lines = report.lines.iter().map(|line| {
        serde_json::json!({
            "configuration": line.name,
            "depth": line.depth,
            "states": line.states,
            "transitions": line.transitions,
            "refusals": line.refusals,
            "failure": line.failure.as_ref().map(ToString::to_string),
        })
    });
    serde_json::json!({
        "states": report.states(),
        "judged": report.judged(),
        "configurations": lines.collect::<Vec<_>>(),
    })
}
