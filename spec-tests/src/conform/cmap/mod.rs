//! Plays files of the format `cmap-format`.
//!
//! A file describes one pool: its options, what a main thread and others do with it, and the events
//! that it has to tell meanwhile.
//!
//! ```text
//! format        what a file may say; whatever is not known is refused
//! ├ operation   what threads do                  fail_point   what the endpoint does wrong
//! ├ extension   what official files do not say    expectation  what they may expect
//! ├ log         what is logged
//! simulated     plays it on the machine, in virtual time
//! tokio_shell   plays it on tokio, in real time
//! mio_shell     plays it on mio, in real time
//! refused       has a pool refuse its options, which official files do not
//! ├ sockets      an endpoint for either
//! └ played      what became of it                ledger       what must add up in the end
//! expected      compares what became of it with what the file says, by means of
//! └ matching    expected against seen
//! ```
//!
//! Where the format leaves a choice, the stricter one is taken: events that come after the last one
//! expected are a failure, and so is a request without an outcome or a connection without its
//! `ConnectionClosed` once the pool is closed.
//!
//! The pool has no background thread, so `backgroundThreadIntervalMS` is the pause after a failed
//! establishment, or, if negative, switches off whatever a pool does by itself.

mod expectation;
mod expected;
mod extension;
mod fail_point;
mod format;
mod ledger;
mod log;
mod matching;
mod mio_shell;
mod operation;
mod played;
mod refused;
mod simulated;
mod sockets;
mod tokio_shell;

use std::path::Path;

use self::expected::Expected;
use self::format::File;
use self::played::Played;
use super::{Document, Outcome, Place, Target, Unreadable, Verdict};
use cenote_core::address::ServerAddress;
use serde_json::Value;

/// Plays one file.
///
/// # Errors
///
/// When it cannot be read, or is not a test of this format to the last key.
pub fn play(path: &Path, target: Target) -> Result<Vec<Outcome>, Unreadable> {
    play_document(&Document::read(path)?, target, &Place::Endpoint)
}

/// Plays what was read from a file.
///
/// # Errors
///
/// When it is not a test of this format to the last key.
pub fn play_document(
    document: &Document,
    target: Target,
    place: &Place,
) -> Result<Vec<Outcome>, Unreadable> {
    let file = File::from_document(document)?;
    let played = || match target {
        _ if file.invalid_options.is_some() => refused::play(&file, target),
        Target::Core => play_simulated(&file),
        Target::Tokio => play_on_sockets(&file, place, tokio_shell::play),
        Target::Mio => play_on_sockets(&file, place, mio_shell::play),
    };
    let verdict = match place {
        Place::Server(_) if file.pool_options.is_load_balanced() => {
            Verdict::NotApplicable("the server is no load balancer".to_owned())
        }
        Place::Server(server) if !file.is_for(server.version()) => {
            Verdict::NotApplicable(format!("not for a server of version {:?}", server.version()))
        }
        Place::Server(_) | Place::Endpoint => file.not_on.verdict(target, played()),
    };
    let path = document.path().to_owned();
    Ok(vec![Outcome { file: path, target, description: file.description, verdict }])
}

/// Everything that a shell tells while it plays what was read from a file, but for what is different
/// each time: where it was, how long it took, and what services are called.
///
/// # Errors
///
/// When it is not a test of this format, cannot be played, or does not end as it should.
///
/// # Panics
///
/// For [`Target::Core`], which is no shell.
pub fn told(document: &Document, target: Target) -> Result<Vec<Value>, String> {
    let file = File::from_document(document).map_err(|error| error.to_string())?;
    if file.invalid_options.is_some() || file.not_on.contains(target) {
        return Ok(Vec::new()); // There is no pool to tell anything.
    }
    let place = Place::Endpoint;
    let (played, _) = match target {
        Target::Core => panic!("the machine is no shell"),
        Target::Tokio => tokio_shell::play(&file, &place)?,
        Target::Mio => mio_shell::play(&file, &place)?,
    };
    played.settled?;
    let mut events = played.events;
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

fn play_simulated(file: &File) -> Result<(), String> {
    Expected::of(file).judge(&simulated::play(file)?)
}

fn play_on_sockets(
    file: &File,
    place: &Place,
    play: impl FnOnce(&File, &Place) -> Result<(Played, ServerAddress), String>,
) -> Result<(), String> {
    let (played, address) = play(file, place)?;
    Expected::of(file).on_sockets(&address).judge(&played)
}
