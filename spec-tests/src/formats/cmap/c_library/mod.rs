//! The C library as a target of `cenote-conform`: under virtual time, through the functions that C calls.
//!
//! Nothing of the core is asked. What the library says (errors, texts, log messages) is compared with what the core
//! makes of the same values.
//!
//! ```text
//! pool        implements the trait, and owns the time
//! ├ actions   performs the actions that are pulled
//! ├ events    events and errors from their numbers
//! └ convert   options and causes for C
//! ```

mod actions;
mod convert;
mod events;
mod pool;

use cenote_conform::Setup;

use self::pool::CPool;

/// Opens pools of the C library. A simulated server replies to `hello` after 1 ms, unless it hits the scenario's fail
/// point.
pub(super) struct CLibrary;

impl cenote_conform::Target for CLibrary {
    type Pool = CPool;

    fn name(&self) -> &'static str {
        "c"
    }

    fn open(&self, setup: Setup) -> Result<CPool, String> {
        CPool::new(setup)
    }
}
