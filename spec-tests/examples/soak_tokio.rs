//! A thousand tasks on the tokio shell, over TLS, while the server has one trouble after another:
//! `cargo run --release -p cenote --example soak_tokio -- --seconds 60`.
//!
//! Exit status 0 if no task hung, nothing leaked and every rule was kept; 1 otherwise.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use cenote::soak::{self, Plan};
use clap::Parser;

#[derive(Parser)]
struct Arguments {
    /// For how long
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// How many tasks work
    #[arg(long, default_value_t = 1000)]
    tasks: usize,
    /// maxPoolSize
    #[arg(long, default_value_t = 50)]
    connections: u32,
    /// Where all chance comes from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the events to this file, one a line, for `cenote check`
    #[arg(long)]
    events: Option<PathBuf>,
    /// Record the pool in this file, for `cenote replay`
    #[arg(long)]
    trace: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments { seconds, tasks, connections, seed, events, trace } = Arguments::parse();
    let time = Duration::try_from_secs_f64(seconds)?;
    let outcome = soak::run(&Plan { time, tasks, connections, seed, events, trace }).await?;
    print!("{outcome}");
    let complaints = outcome.complaints();
    complaints.iter().for_each(|complaint| eprintln!("soak_tokio: {complaint}"));
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
