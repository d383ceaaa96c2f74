//! Asks before a server is loaded that is not the built-in one.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use cenote_core::uri::ConnectionString;

use super::arguments::{Plan, Target};
use super::server::{is_alone, name};
use crate::command::Failure;

/// Asks in a terminal whether the server of the connection string may be loaded.
///
/// # Errors
///
/// The answer is not yes, or there is no terminal.
pub(super) fn ask(plan: &Plan<'_>) -> Result<(), Failure> {
    let Target::Elsewhere { uri } = &plan.target else { return Ok(()) };
    let load = load(plan, uri)?;
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(not_begun(&load));
    }
    let mut error = io::stderr().lock();
    write!(error, "cenote: this is a load generator: {load}. Go on? [y/N] ")?;
    error.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let is_yes = ["y", "yes"].contains(&answer.trim().to_lowercase().as_str());
    if is_yes { Ok(()) } else { Err(not_begun(&load)) }
}

fn not_begun(load: &str) -> Failure {
    format!("not begun: {load}; --yes does so without asking").into()
}

/// What a run would do to the server, without its credentials.
fn load(plan: &Plan<'_>, uri: &str) -> Result<String, Failure> {
    let read = ConnectionString::parse(uri)?;
    let server = match &read.srv {
        Some(srv) => format!("the servers of {}", srv.host()),
        None if is_alone(&read) => name(&read),
        None => format!("{} and the servers that they name", name(&read)),
    };
    let until = match (plan.goal.time, plan.goal.operations) {
        (_, Some(operations)) => format!("until {operations} are done"),
        (Some(time), None) => format!("for {time:?}"),
        (None, None) => "until it is stopped".to_owned(),
    };
    let tasks = plan.arguments.tasks;
    Ok(format!("{tasks} tasks would run as many operations as {server} can serve, {until}"))
}
