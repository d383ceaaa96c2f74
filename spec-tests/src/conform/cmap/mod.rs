//! Plays files of the format `cmap-format` on the machine itself, in virtual time.
//!
//! A file describes one pool: its options, what a main thread and others do with it, and the events
//! that it has to tell meanwhile. The pool here is [`PoolState`](cenote_core::pool::PoolState)
//! behind a simulated shell, so nothing is a matter of luck: a wait of ten seconds takes no time,
//! and a file that passes once passes always.
//!
//! ```text
//! format        what a file may say; whatever is not known is refused
//! ├ operation   what threads do                  fail_point   what the endpoint does wrong
//! script        the threads, in a fixed order
//! world         the shell: clock, answers on their way, the pool
//! ├ endpoint    the server behind the sockets, and what SDAM makes of its errors
//! └ ledger      what must add up in the end
//! matching      expected against seen
//! ```
//!
//! Where the format leaves a choice, the stricter one is taken: events that come after the last one
//! expected are a failure, and so is a request without an outcome or a connection without its
//! `ConnectionClosed` once the pool is closed.
//!
//! The pool has no background thread, so `backgroundThreadIntervalMS` is the pause after a failed
//! establishment, or, if negative, switches off whatever a pool does by itself.

mod endpoint;
mod fail_point;
mod format;
mod ledger;
mod matching;
mod operation;
mod script;
mod world;

use std::path::Path;

use serde_json::Value;

use self::endpoint::Endpoint;
use self::format::File;
use self::script::Script;
use self::world::World;
use super::{Outcome, Unreadable, read_json};

/// Plays one file.
///
/// # Errors
///
/// When it cannot be read, or is not a test of this format to the last key.
pub fn play(path: &Path) -> Result<Vec<Outcome>, Unreadable> {
    play_document(path, read_json(path)?)
}

/// Plays what was read from a file.
///
/// # Errors
///
/// When it is not a test of this format to the last key.
pub fn play_document(path: &Path, document: Value) -> Result<Vec<Outcome>, Unreadable> {
    let format = |reason| Unreadable::Format { path: path.to_owned(), reason };
    let mut file = File::from_document(document).map_err(format)?;
    let endpoint = Endpoint::new(file.fail_point.take());
    let world = World::new(&file.pool_options, endpoint).map_err(format)?;
    let script = Script::new(world, std::mem::take(&mut file.operations));
    let verdict = judge(&file, script).into();
    Ok(vec![Outcome { file: path.to_owned(), description: file.description, verdict }])
}

/// The error first, because it usually explains the events; nothing is kept back.
fn judge(file: &File, mut script: Script) -> Result<(), String> {
    let failure = script.play();
    let (world, held) = script.into_parts();
    let complaints: Vec<String> = [
        matching::compare_error(file.error.as_ref(), failure.as_ref()),
        matching::compare_events(&file.events, &file.ignore, world.events()),
        world.settle(held),
    ]
    .into_iter()
    .filter_map(Result::err)
    .collect();
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
}
