//! The command line `cenote-lab`, which proves the machine of this repository. Exit status 0 is success, 1 is a fault of
//! the machine, 2 is bad usage or that nothing could be printed or written.

use std::error::Error;
use std::process::ExitCode;

use cenote_lab::command::{explore, simulate};
use clap::{Parser, Subcommand};

/// Prove the Cenote connection pool
#[derive(Parser)]
#[command(name = "cenote-lab", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate pools with random faults from a seed, and check them after every input
    Simulate(simulate::Arguments),
    /// Feed every sequence of inputs up to a length to small pools and to the reference model
    Explore(explore::Arguments),
}

fn main() -> ExitCode {
    let result: Result<bool, Box<dyn Error>> = match Cli::parse().command {
        Command::Simulate(arguments) => simulate::run(&arguments).map_err(Into::into),
        Command::Explore(arguments) => explore::run(&arguments).map_err(Into::into),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("cenote-lab: {error}");
            ExitCode::from(2)
        }
    }
}
