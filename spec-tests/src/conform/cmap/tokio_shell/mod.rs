//! The pool of `cenote-tokio`, on real sockets and in real time.
//!
//! Each file has an endpoint of its own, with TLS, a login, and the file's fail point. Its threads
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
use cenote_core::uri::ConnectionString;
use cenote_tokio::{Builder, Mongo};
use tokio::runtime;

use self::threads::Threads;
use self::world::World;
use super::format::{File, Options};
use super::played::Played;
use crate::endpoint::{Certificates, Endpoint, ListenOptions, Settings, User};

/// Plays one file; with the address where it was played.
///
/// # Errors
///
/// Whatever keeps an endpoint from listening or a pool from being made.
pub(super) fn play(file: &File) -> Result<(Played, ServerAddress), String> {
    let endpoint = start(file).map_err(|error| format!("no endpoint to play against: {error}"))?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime to play on: {error}"))?;
    let played = runtime.block_on(play_against(&endpoint, file))?;
    Ok((played, endpoint.address()))
}

/// An endpoint that does wrong what the file wants. It goes with the file, and its fail point with
/// it (TF-16).
fn start(file: &File) -> Result<Endpoint, Box<dyn std::error::Error>> {
    // By certificate: SCRAM takes its time on purpose, which is not what files are about.
    let users = vec![User::x509(Certificates::CLIENT_SUBJECT)];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls())?;
    if let Some(fail_point) = &file.fail_point {
        let command = fail_point.command()?;
        endpoint.with(|server, _now| server.set_fail_point(&command))?;
    }
    Ok(endpoint)
}

async fn play_against(endpoint: &Endpoint, file: &File) -> Result<Played, String> {
    let builder = pool(endpoint, &file.pool_options)?;
    let world = Arc::new(World::new(builder)?);
    let threads = Threads::new(Arc::clone(&world));
    let failure = threads.play(file.operations.clone()).await.err();
    let events = world.events();
    world.end();
    let mut complaints = threads.end().await;
    complaints.extend(world.settle(endpoint).await);
    let settled = if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) };
    Ok(Played { failure, events, settled })
}

/// A pool with the file's options, and with nobody but SDAM to watch the server (TF-18).
fn pool(endpoint: &Endpoint, options: &Options) -> Result<Builder<Mongo>, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let mut uri = ConnectionString::parse(&endpoint.uri()).map_err(|error| text(&error))?;
    uri.app_name.clone_from(&options.app_name);
    let connector = Mongo::new(&uri).map_err(|error| text(&error))?;
    let builder = Builder::new(endpoint.address(), connector).options(options.to_pool_options()?);
    Ok(builder.on_failure(|failure| {
        failure.clear(sdam::verdict(&failure.context(None), failure.error()).pool);
    }))
}
