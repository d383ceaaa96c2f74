//! Plays files of the format `cmap-format`, by means of [`cenote_conform`].
//!
//! ```text
//! c_library     a target of cenote-conform: the pool for C
//! sockets       a target of cenote-conform: any shell
//! servers       servers for it: an endpoint for each file, or one that is there already
//! ```

mod c_library;
mod servers;
mod sockets;
#[cfg(test)]
mod tests;

use std::path::Path;

use cenote_conform::{Document, Runner, Scenario, Simulation, Unreadable};
use serde_json::Value;

use super::outcome::Outcome;
use super::place::Place;
use super::target::Target;

use self::c_library::CLibrary;
use self::servers::Servers;
use self::sockets::OnSockets;

/// Plays one file.
///
/// # Errors
///
/// If it cannot be read, or is not of this format to the last key.
pub fn play(path: &Path, target: Target) -> Result<Vec<Outcome>, Unreadable> {
    play_document(&Document::read(path)?, target, &Place::Endpoint)
}

/// Plays a document.
///
/// # Errors
///
/// If it is not of this format to the last key.
pub fn play_document(
    document: &Document,
    target: Target,
    place: &Place,
) -> Result<Vec<Outcome>, Unreadable> {
    let scenario = Scenario::new(document)?;
    let verdict = match target {
        Target::Core => Runner::new(&Simulation).play(&scenario),
        Target::C => Runner::new(&CLibrary).play(&scenario),
        Target::Tokio | Target::Mio | Target::Smol => {
            let (shell, servers) = (OnSockets(target), Servers(place));
            Runner::new(&shell).with_servers(&servers).play(&scenario)
        }
    };
    let (file, description) = (document.path().to_owned(), scenario.description().to_owned());
    Ok(vec![Outcome { file, target, description, verdict: verdict.into() }])
}

/// All events of a shell while it plays a document, without what differs each time: addresses,
/// durations, and the ids of services, which are numbered instead.
///
/// # Errors
///
/// If the document is not of this format, cannot be played, or leaves something open.
///
/// # Panics
///
/// For a simulated target, which is not a shell.
pub fn events(document: &Document, target: Target) -> Result<Vec<Value>, String> {
    let scenario = Scenario::new(document).map_err(|error| error.to_string())?;
    if scenario.has_invalid_options() || scenario.not_on().contains(target.name()) {
        return Ok(Vec::new());
    }
    assert!(!target.is_simulated(), "the state machine is not a shell");
    let (shell, servers) = (OnSockets(target), Servers(&Place::Endpoint));
    let mut events = Runner::new(&shell).with_servers(&servers).events(&scenario)?;
    let mut services = Vec::new();
    for event in events.iter_mut().filter_map(Value::as_object_mut) {
        ["address", "duration"].iter().for_each(|key| drop(event.remove(*key)));
        if let Some(service) = event.get_mut("serviceId") {
            let known = services.iter().position(|it| it == service);
            let number = known.unwrap_or(services.len());
            let name = std::mem::replace(service, number.into());
            if known.is_none() {
                services.push(name);
            }
        }
    }
    Ok(events)
}
