//! Plays the files about discovery: `server-discovery-and-monitoring/tests/{rs,sharded,single,load-balanced,errors,
//! monitoring}`, and those of server selection and of staleness.
//!
//! The machines of `cenote_core` get the replies: one [`Topology`](cenote_core::topology::Topology), and a
//! [`Monitor`](cenote_core::monitor::Monitor) for each server that it adds, in virtual time. Errors of applications are
//! judged by [`sdam::verdict`](cenote_core::sdam::verdict()). Files of server selection are played with real servers, too.

mod deployment;
mod format;
mod in_window;
mod seen;
mod selection;
mod watched;

use cenote_conform::document::nested::wrong_at;
use cenote_conform::{Document, Unreadable};
use serde_json::Value;

use self::deployment::Deployment;
use self::format::{File, Phase};
pub(super) use self::in_window::play_choices;
use self::seen::{Difference, compare};
pub(super) use self::selection::{play_selection, play_staleness};
pub(super) use self::watched::Watched;
use super::outcome::Outcome;
use super::play::NO_TEST;
use super::target::Target;

/// Plays what was read from a file about discovery.
///
/// # Errors
///
/// When it is not of this format.
pub(super) fn play_discovery(document: &Document) -> Result<Vec<Outcome>, Unreadable> {
    let file: File = document.parse()?;
    if file.phases.is_empty() {
        return Err(document.refuse("phases", NO_TEST));
    }
    let mut deployment =
        Deployment::of(&file.uri).map_err(|error| document.refuse("uri", &error))?;
    let mut result = Ok(());
    for (index, phase) in file.phases.iter().enumerate() {
        let place = format!("phases/{index}");
        let wrong = |what: String| document.refuse_in("", &wrong_at(&place, what));
        feed(&mut deployment, phase).map_err(wrong)?;
        match judge(&mut deployment, &phase.outcome) {
            Ok(()) => {}
            Err(Difference::Unknown(what)) => return Err(wrong(what)),
            Err(Difference::Other(what)) => {
                let of = phase.description.as_deref().unwrap_or_default();
                result = result.and(Err(format!("phase {index} {of}: {what}")));
            }
        }
    }
    let (path, target) = (document.path().to_owned(), Target::Core);
    Ok(vec![Outcome { file: path, target, description: file.description, verdict: result.into() }])
}

fn feed(deployment: &mut Deployment, phase: &Phase) -> Result<(), String> {
    for (index, (address, reply)) in phase.responses.iter().enumerate() {
        let fed = deployment.reply(address, reply);
        fed.map_err(|what| wrong_at(&format!("responses/{index}"), what))?;
    }
    for (index, error) in phase.application_errors.iter().enumerate() {
        let fed = deployment.fail(error);
        fed.map_err(|what| wrong_at(&format!("applicationErrors/{index}"), what))?;
    }
    Ok(())
}

/// Each key of what is expected is compared; one that is not known makes the file unreadable.
fn judge(
    deployment: &mut Deployment,
    expected: &serde_json::Map<String, Value>,
) -> Result<(), Difference> {
    let events = deployment.take_events();
    for (key, expected) in expected {
        let seen = if key == "events" { Some(events.clone()) } else { deployment.seen(key) };
        compare(key, &of_several_threads(expected), seen)?;
    }
    Ok(())
}

/// Only clients of one thread know a possible primary, says SDAM. To others it is Unknown.
fn of_several_threads(expected: &Value) -> Value {
    match expected {
        Value::String(kind) if kind == "PossiblePrimary" => Value::from("Unknown"),
        Value::Array(values) => values.iter().map(of_several_threads).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), of_several_threads(value)));
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => expected.clone(),
    }
}

#[cfg(test)]
mod tests;
