//! What the tests of the shells share.

mod alone;

pub use self::alone::alone;
