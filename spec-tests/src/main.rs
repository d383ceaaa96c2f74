//! The command line `cenote`: human output by default, `--json` for machines; exit status 0 is
//! good, 1 says that what was checked does not hold, 2 is bad usage or unreadable input, with one
//! clear line on standard error.

use std::error::Error;
use std::process::ExitCode;

use cenote::command::{
    check, completions, conform, endpoint, explore, record, replay, run, simulate, study, usage,
};
use clap::{CommandFactory as _, Parser, Subcommand};

/// The laboratory of the Cenote connection pool: MongoDB's, as a deterministic machine
#[derive(Parser)]
#[command(name = "cenote", version, arg_required_else_help = false, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
First steps:
  cenote run --chaos                          a pool at work while its server has trouble
  cenote record example.bson                  a trace to look at
  cenote replay example.bson --html page.html a picture of it, for any browser
  cenote replay example.bson --explain        why check-outs failed, in words

Exit status: 0 it is good; 1 what was checked does not hold; 2 bad usage or input, with one line on
standard error that says what and where.";

#[derive(Subcommand)]
enum Command {
    /// Put a pool to work, watch it, and say how it went: on a server that comes along, or on yours
    Run(run::Arguments),
    /// Replay a trace: verify it, print it, explain it, draw it, step through it, shrink it
    Replay(Box<replay::Arguments>),
    /// Write a trace of a pool that nobody has: traffic, or random inputs
    Record(record::Arguments),
    /// Judge a stream of events, one line of JSON each: does a pool that tells this keep the rules?
    Check(check::Arguments),
    /// Play official test files of MongoDB's specifications
    Conform(conform::Arguments),
    /// A server with fail points and faults that real clients can connect to
    Endpoint(endpoint::Arguments),
    /// Live through worlds by seed: a pool in all kinds of trouble, judged at every input
    Simulate(simulate::Arguments),
    /// Feed every sequence of inputs, up to a length, to small pools and to their model
    Explore(explore::Arguments),
    /// Answer questions of whoever sets the options: many clients before a server, in virtual time
    Study(study::Arguments),
    /// Print a script with which a shell completes these commands
    Completions(completions::Arguments),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(usage::answer(&error, &Cli::command())),
    };
    let result: Result<bool, Box<dyn Error>> = match cli.command {
        Command::Run(arguments) => run::run(&arguments).map_err(Into::into),
        Command::Replay(arguments) => replay::run(&arguments).map_err(Into::into),
        Command::Record(arguments) => record::run(&arguments).map_err(Into::into),
        Command::Check(arguments) => check::run(&arguments).map_err(Into::into),
        Command::Conform(arguments) => conform::run(&arguments),
        Command::Endpoint(arguments) => endpoint::run(&arguments).map_err(Into::into),
        Command::Simulate(arguments) => simulate::run(&arguments).map_err(Into::into),
        Command::Explore(arguments) => explore::run(&arguments).map_err(Into::into),
        Command::Study(arguments) => study::run(&arguments).map_err(Into::into),
        Command::Completions(arguments) => {
            completions::run(&arguments, &mut Cli::command()).map_err(Into::into)
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => ExitCode::from(usage::fail(&error.to_string())),
    }
}
