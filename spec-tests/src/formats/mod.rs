//! Plays the official test files of MongoDB's specifications, and our own.
//!
//! The official files are not part of this project; every function here takes a path to them. The
//! folder of a file (`cmap-format`, `uri-options`, …) determines its format, as in the repository of the
//! specifications.
//!
//! ```text
//! play          plays the files of a folder
//! └ catalogue   which folders have which format
//!   ├ cmap      pools, played by cenote-conform
//!   ├ unified   whole drivers, as far as pools are concerned
//!   ├ uri       connection strings
//!   ├ disclosure  secrets of connection strings
//!   ├ seedlist  connection strings whose servers are looked up
//!   ├ monitoring  round-trip times
//!   └ topology    discovery, errors of applications, and selection
//! target, outcome, place, logs, read_preference, cpu_time   what several of them use
//! ```

mod catalogue;
pub mod cmap;
mod cpu_time;
mod disclosure;
mod lock;
mod logs;
mod monitoring;
mod outcome;
mod place;
mod play;
mod read_preference;
mod seedlist;
mod target;
mod topology;
pub mod unified;
pub mod uri;

pub use cenote_conform::{Document, Unreadable};

pub use self::catalogue::name_of;
pub use self::outcome::{Outcome, Played, Reason, Unplayed, Verdict};
pub use self::place::{Foreign, Place};
pub use self::play::play;
pub use self::target::Target;

/// How long closing may take: more than any machine needs.
const CLOSE_LIMIT: std::time::Duration = std::time::Duration::from_secs(20);
