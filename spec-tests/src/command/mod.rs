//! The commands of `cenote`. Each has `Arguments` and `run`, which says whether what was checked
//! holds, or why it could not be checked.

pub mod check;
pub mod completions;
#[cfg(feature = "conform")]
pub mod conform;
pub mod endpoint;
mod input;
pub mod man;
mod output;
pub mod record;
pub mod replay;
pub mod run;
pub mod signals;
#[cfg(feature = "conform")]
mod test_report;
#[cfg(all(unix, feature = "top"))]
pub mod top;
pub mod usage;

/// Why a command did not do what it was asked for, in one line.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
