//! Plays files about connections: what a client and a server say to each other, from the first byte
//! on. The format is our own (docs/audit/scenarios.md), because the official files have none.
//!
//! A file has a connection string, what the server hears and says on each connection, and what the
//! client does there and gets. On `core` the machines of [`cenote_core::connect`] and
//! [`cenote_core::wire`] talk to that server in memory; on the shells a pool does, through a socket.
//!
//! ```text
//! format        what a file may say; whatever is not known is refused
//! ├ script      what the server does
//! └ operation   what the client does, and what it expects
//!   └ allowed   what it may expect
//! peer          the server, without I/O
//! ├ expectation  what it received, against what it expects
//! ├ encode      the bytes of what it sends
//! └ scram       its side of SCRAM
//! client        what a client can do
//! ├ machine     in memory, by the machines of the core
//! │ └ link      with a server at the other end
//! └ on_shell    a pool of a shell
//! sockets       the server on a socket
//! └ stream      with TLS or without
//! story         has a client do what the file says, and compares
//! └ describe    errors and connections, as files write them
//! value         documents as JSON, and what of them has to be so
//! ```

mod allowed;
mod client;
mod describe;
mod encode;
mod expectation;
mod format;
mod link;
mod machine;
mod on_shell;
mod operation;
mod peer;
mod scram;
mod script;
mod sockets;
mod story;
mod stream;
mod value;

use std::path::Path;

use cenote_conform::{Document, Unreadable};

use self::format::File;
use self::machine::Machine;
use self::on_shell::OnShell;
use self::operation::Operation;
use self::sockets::Server;
use super::cpu_time;
use super::outcome::{Outcome, Verdict};
use super::place::Place;
use super::target::Target;

/// Plays one file.
///
/// # Errors
///
/// When it cannot be read, or is not of this format to the last key.
pub fn play(path: &Path, target: Target) -> Result<Vec<Outcome>, Unreadable> {
    play_document(&Document::read(path)?, target, &Place::Endpoint)
}

/// Plays what was read from a file.
///
/// # Errors
///
/// When it is not of this format to the last key.
pub fn play_document(
    document: &Document,
    target: Target,
    place: &Place,
) -> Result<Vec<Outcome>, Unreadable> {
    let file = File::from_document(document)?;
    let verdict = match place {
        Place::Server(_) => {
            Verdict::NotApplicable("no other server says what it is told to say".to_owned())
        }
        Place::Endpoint => {
            let played = play_in_time(&file, target).into();
            file.not_on.verdict(target.name(), played).into()
        }
    };
    let path = document.path().to_owned();
    Ok(vec![Outcome { file: path, target, description: file.description, verdict }])
}

/// Of how long things take, a machine that has no time says nothing.
fn play_in_time(file: &File, target: Target) -> Result<(), String> {
    if file.operations.iter().any(Operation::is_timed) {
        return cpu_time::play(|| play_file(file, target));
    }
    play_file(file, target)
}

fn play_file(file: &File, target: Target) -> Result<(), String> {
    if target == Target::Core {
        let machine = Machine::new(file)?;
        return story::play(file, machine);
    }
    let server = Server::start(file)?;
    let played = OnShell::new(target, file, &server).and_then(|it| story::play(file, it));
    // Both sides may have something to say about the same difference.
    let complaints: Vec<_> = [played, server.end()].into_iter().filter_map(Result::err).collect();
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
}
