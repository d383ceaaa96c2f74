//! The pool of `cenote-mio`, on real sockets and in real time.
//!
//! Each file has an endpoint of its own, unless it is played against another server, with TLS, a login, and the file's fail point. Its threads
//! are threads. Whoever is served goes on before all is told that led to it: so each of them waits
//! after each step until the pool's own thread has told what it had to, and in the end until nothing
//! more is told. What a file waits for may come a little later than it says, because somebody may be
//! telling it at that moment; in which order is not affected.
//!
//! ```text
//! threads       the main thread and the others
//! world         the pool, what it tells, what is held
//! ```

#[cfg(test)]
mod tests;
mod threads;
mod world;

use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::sdam;
use cenote_mio::{Builder, MongoConnector};

use self::threads::Threads;
use self::world::World;
use super::format::File;
use super::operation::Task;
use super::played::{Failure, Played};
use super::sockets::{Ears, Server};
use crate::conform::Place;

/// Plays one file; with the address where it was played.
///
/// # Errors
///
/// Whatever keeps an endpoint from listening or a pool from being made.
pub(super) fn play(file: &File, place: &Place) -> Result<(Played, ServerAddress), String> {
    play_within(Task::PATIENCE, file, place)
}

fn play_within(
    patience: Duration,
    file: &File,
    place: &Place,
) -> Result<(Played, ServerAddress), String> {
    let server = Server::start(file, place)?;
    let ears = Ears::of(file, &server.address())?;
    let [builder, other] = [(); 2].map(|()| pool(&server, file));
    let world = World::new(builder?, other?)?;
    let played = std::thread::scope(|scope| {
        scope.spawn(|| world.watch(patience));
        let threads = Threads::new(&world, scope);
        let failure = threads.play(file.operations.clone()).err();
        let failure = if world.took_too_long() { Some(never_at_rest(patience)) } else { failure };
        world.settle();
        let (events, messages) = (world.events(), ears.heard());
        world.end();
        threads.end();
        let complaints = world.come_home(&server);
        let settled = if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) };
        Played { failure, events, messages, settled }
    });
    Ok((played, server.address()))
}

fn never_at_rest(patience: Duration) -> Failure {
    Failure::Script(format!("somebody still waited after {} ms", patience.as_millis()))
}

/// A pool with the file's options, and with nobody but SDAM to watch the server (TF-18).
fn pool(server: &Server, file: &File) -> Result<Builder<MongoConnector>, String> {
    let options = &file.pool_options;
    let uri = server.uri(options)?;
    let connector = MongoConnector::new(&uri).map_err(|error| error.to_string())?;
    let builder = Builder::new(server.address(), connector).options(options.to_pool_options()?);
    let builder = match &file.log {
        Some(log) => builder.log_settings(log.settings()),
        None => builder,
    };
    Ok(builder.on_failure(|failure| {
        failure.clear(sdam::verdict(&failure.context(None), failure.error()).pool);
    }))
}
