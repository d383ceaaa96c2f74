//! The command line `cenote`: text by default, `--json` for programs. Exit status 0 is success, 1 is a
//! failed check, 2 is bad usage or unreadable input, with one line on standard error.
//! Each command has `Arguments` and `run`, which says whether what was checked holds, or why it could not be checked.

mod check;
mod completions;
#[cfg(feature = "conform")]
mod conform;
mod endpoint;
mod input;
mod man;
mod output;
mod record;
mod replay;
mod run;
pub mod signals;
#[cfg(feature = "conform")]
mod test_report;
#[cfg(all(unix, feature = "top"))]
mod top;
mod usage;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// Why a command did not do what it was asked for, in one line.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Run, test, record and replay the Cenote connection pool for MongoDB
#[derive(Parser)]
#[command(name = "cenote", version, arg_required_else_help = false, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
First steps:
  cenote run --chaos                          run a pool while its server has faults
  cenote record example.bson                  write an example trace
  cenote replay example.bson --html page.html draw it as a page for any browser
  cenote explain example.bson                 explain why check-outs failed; also from events of other drivers
  cenote run --inspect pool.sock --seconds 600  run a pool that can be watched meanwhile
  cenote top pool.sock                        watch the pools of a running process

Exit status: 0 success; 1 a check failed; 2 bad usage or input, with one line on standard error that
says what and where.";

#[derive(Subcommand)]
enum Command {
    /// Run a pool under load and report throughput, wait times, violations and leaks
    Run(run::Arguments),
    /// Show the pools of a running process: connections, the callers that hold them, requests that wait
    #[cfg(all(unix, feature = "top"))]
    Top(top::Arguments),
    /// Say why check-outs waited or failed: from the events of any driver's pool, or a trace
    Explain(replay::explain_command::Arguments),
    /// Predict what other options would have done, or advise: from the events of any driver's pool, or a trace
    Predict(replay::predict_command::Arguments),
    /// Replay a trace: verify, print, explain, draw, step through or shrink it
    Replay(Box<replay::Arguments>),
    /// Write an example trace: simulated traffic, or an incident
    Record(record::Arguments),
    /// Check a stream of CMAP events, one JSON object per line, against the specification
    Check(check::Arguments),
    /// Run official test files of MongoDB's specifications
    #[cfg(feature = "conform")]
    Conform(conform::Arguments),
    /// Start a mock MongoDB server with fail points and faults
    Endpoint(endpoint::Arguments),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
    /// Write manual pages for all commands
    Man(man::Arguments),
}

/// Runs the command that the arguments of the process ask for.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(usage::answer(&error, &Cli::command())),
    };
    let result: Result<bool, Failure> = match cli.command {
        Command::Run(arguments) => run::run(&arguments),
        #[cfg(all(unix, feature = "top"))]
        Command::Top(arguments) => top::run(&arguments),
        Command::Explain(arguments) => replay::explain_command::run(arguments),
        Command::Predict(arguments) => replay::predict_command::run(arguments),
        Command::Replay(arguments) => replay::replay(*arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        #[cfg(feature = "conform")]
        Command::Conform(arguments) => conform::run(&arguments),
        Command::Endpoint(arguments) => endpoint::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, &mut Cli::command()),
        Command::Man(arguments) => man::run(&arguments, Cli::command()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => ExitCode::from(usage::fail(&error.to_string())),
    }
}
