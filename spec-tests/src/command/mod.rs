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

use clap::{ArgAction, CommandFactory as _, Parser, Subcommand};

/// Why a command did not do what it was asked for, in one line.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Run, test, record and replay the Cenote connection pool for MongoDB
#[derive(Parser)]
#[command(name = "cenote", version, arg_required_else_help = false, after_help = EXAMPLES, disable_help_flag = true)]
struct Cli {
    /// Print help
    #[arg(long, short, global = true, action = ArgAction::HelpShort)]
    help: Option<bool>,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
First steps:
  cenote run --chaos                    run a pool while its server has faults
  cenote record example.bson            write an example trace
  cenote explain example.bson           why did check-outs fail?
  cenote draw example.bson --html page.html
  cenote run --inspect pool.sock --seconds 600
  cenote top pool.sock                  watch that pool meanwhile

Exit status: 0 success; 1 a check failed; 2 bad usage or input, with one line on
standard error that says what and where.";

#[derive(Subcommand)]
enum Command {
    /// How does a pool behave under load? Throughput, wait times, violations and leaks of a run
    Run(run::Arguments),
    /// What do the pools of a running process do now? Connections, the callers that hold them, requests that wait
    #[cfg(all(unix, feature = "top"))]
    Top(top::Arguments),
    /// Why did check-outs wait or fail? By the events or the log of any driver's pool, or a trace
    Explain(replay::explain::Arguments),
    /// What would other options have done, and which keep a goal? By the events or the log of any driver's pool, or a trace
    Predict(replay::predict::Arguments),
    /// What did the pool do, step by step? Verify, filter, compare and shrink traces
    Replay(Box<replay::Arguments>),
    /// What does it look like? A picture of a trace, for any browser
    Draw(replay::draw_command::Arguments),
    /// Write an example trace: simulated traffic, or an incident
    Record(record::Arguments),
    /// Does a pool keep the CMAP specification? By the events or the log of any driver
    Check(check::Arguments),
    /// Which official tests of MongoDB's specifications pass?
    #[cfg(feature = "conform")]
    Conform(conform::Arguments),
    /// What does a client do when its server fails? A mock MongoDB server with fail points and faults
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
        Command::Explain(arguments) => replay::explain::run(arguments),
        Command::Predict(arguments) => replay::predict::run(&arguments),
        Command::Replay(arguments) => replay::run(*arguments),
        Command::Draw(arguments) => replay::draw_command::run(arguments),
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
