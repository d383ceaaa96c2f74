//! The command line `cenote`: human output by default, `--json` for machines; exit status 0 is
//! good, 1 says that what was checked does not hold, 2 is bad usage or unreadable input, with one
//! clear line on standard error.

use std::error::Error;
use std::process::ExitCode;

use cenote::command::{check, conform, endpoint, explore, record, replay, run};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cenote", version, about = "The laboratory of the Cenote connection pool")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Judge a stream of events, one line of JSON each: does a pool that tells this keep the rules?
    Check(check::Arguments),
    /// Play official test files of MongoDB's specifications
    Conform(conform::Arguments),
    /// A server with fail points and faults that real clients can connect to
    Endpoint(endpoint::Arguments),
    /// Feed every sequence of inputs, up to a length, to small pools and to their model
    Explore(explore::Arguments),
    /// Put a pool to work, watch it, and say how it went: on a server that comes along, or on yours
    Run(run::Arguments),
    /// Write a trace of a pool that nobody has: traffic, or random inputs
    Record(record::Arguments),
    /// Replay a trace: verify it, print it, explain it, step through it, shrink it
    Replay(Box<replay::Arguments>),
}

fn main() -> ExitCode {
    let result: Result<bool, Box<dyn Error>> = match Cli::parse().command {
        Command::Check(arguments) => check::run(&arguments).map_err(Into::into),
        Command::Conform(arguments) => conform::run(&arguments),
        Command::Endpoint(arguments) => endpoint::run(&arguments).map_err(Into::into),
        Command::Explore(arguments) => explore::run(&arguments).map_err(Into::into),
        Command::Run(arguments) => run::run(&arguments).map_err(Into::into),
        Command::Record(arguments) => record::run(&arguments).map_err(Into::into),
        Command::Replay(arguments) => replay::run(&arguments).map_err(Into::into),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("cenote: {error}");
            ExitCode::from(2)
        }
    }
}
