//! The commands of `cenote`. Each has `Arguments` and `run`, which says whether what was checked
//! holds, or why it could not be checked.

pub mod check;
pub mod completions;
pub mod conform;
pub mod endpoint;
pub mod explore;
pub mod man;
mod output;
pub mod record;
pub mod replay;
pub mod run;
mod secret_file;
pub mod signals;
pub mod simulate;
pub mod study;
pub mod usage;
