//! Whether what was seen is what a test expects.
//!
//! ```text
//! matching      values, with the operators of the format
//! events        what clients told
//! errors        how an operation failed
//! logs          what was logged
//! ```

pub(super) mod errors;
pub(super) mod events;
pub(super) mod logs;
pub(super) mod matching;

pub(super) use self::events::check_event;
