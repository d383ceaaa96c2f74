//! The pool of `cenote-tokio`, on real sockets and in real time.
//!
//! Each file has an endpoint of its own, unless it is played against another server, with TLS, a login, and the file's fail point. Its threads
//! are tasks on one thread of the operating system: so whatever a task does to the pool has been
//! told when it goes on, and what was told when the main thread ends is all there is.
//!
//! ```text
//! threads       the main thread and the others
//! world         the pool, what it tells, what is held
//! ```

mod threads;
mod world;

use std::sync::Arc;

use cenote_core::address::ServerAddress;
use cenote_core::sdam;
use cenote_tokio::{Builder, MongoConnector};
use tokio::runtime;

use self::threads::Threads;
use self::world::World;
use super::format::File;
use super::played::Played;
use super::sockets::{Ears, Server};
use crate::conform::Place;

/// Plays one file; with the address where it was played.
///
/// # Errors
///
/// Whatever keeps an endpoint from listening or a pool from being made.
pub(super) fn play(file: &File, place: &Place) -> Result<(Played, ServerAddress), String> {
    let server = Server::start(file, place)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime to play on: {error}"))?;
    let played = runtime.block_on(play_against(&server, file))?;
    Ok((played, server.address()))
}

async fn play_against(server: &Server, file: &File) -> Result<Played, String> {
    let ears = Ears::of(file, &server.address())?;
    let [builder, other] = [(); 2].map(|()| pool(server, file));
    let world = Arc::new(World::new(builder?, other?)?);
    let threads = Threads::new(Arc::clone(&world));
    let failure = threads.play(file.operations.clone()).await.err();
    let (events, messages) = (world.events(), ears.heard());
    world.end();
    let mut complaints = threads.end().await;
    complaints.extend(world.settle(server).await);
    let settled = if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) };
    Ok(Played { failure, events, messages, settled })
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
