//! The machine itself, behind a simulated shell, in virtual time.
//!
//! Nothing is a matter of luck: a wait of ten seconds takes no time, and a file that passes once
//! passes always.
//!
//! ```text
//! script        the threads, in a fixed order
//! world         what can be done to the pool, and the time
//! ├ shell       carries out what it orders
//! └ endpoint    the server behind the sockets
//! ```

mod endpoint;
mod script;
mod shell;
mod world;

use self::endpoint::Endpoint;
use self::script::Script;
use self::world::World;
use super::format::File;
use super::played::Played;

/// Plays one file.
///
/// # Errors
///
/// Options that the pool refuses.
pub(super) fn play(file: &File) -> Result<Played, String> {
    let endpoint = Endpoint::new(file.fail_point.clone());
    let world = World::new(file, endpoint)?;
    let mut script = Script::new(world, file.operations.clone());
    let failure = script.play();
    let (world, held) = script.into_parts();
    let (events, messages) = (world.events().to_vec(), world.messages.clone());
    Ok(Played { failure, events, messages, settled: world.settle(held) })
}
