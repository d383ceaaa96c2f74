//! The commands of `cenote`. Each has `Arguments` and `run`, which says whether what was checked
//! holds, or why it could not be checked.

pub mod check;
pub mod completions;
#[cfg(feature = "conform")]
pub mod conform;
pub mod endpoint;
pub mod man;
mod output;
pub mod record;
pub mod replay;
pub mod run;
mod secret_file;
pub mod signals;
#[cfg(all(unix, feature = "top"))]
pub mod top;
pub mod usage;
