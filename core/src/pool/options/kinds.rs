//! The options that are neither numbers, times nor flags, and why options cannot be used.

use core::time::Duration;

use thiserror::Error;

/// When a pool runs maintenance.
// BG-08, BG-09
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Maintenance {
    /// At once, whenever there is something to do; but after a failed establishment the minimum
    /// pauses for this long, because the server had reasons to refuse. Not 0.
    PauseAfterFailure(Duration),
    /// Never: perished connections are closed when a check-out meets them, and the minimum is not
    /// kept.
    Never,
}

/// Which available connection is handed out first.
// ND-10
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReuseOrder {
    /// The one that came back last: few sockets stay busy and the others can idle out.
    #[default]
    MostRecentlyUsed,
    /// The one that has waited longest: use is spread evenly.
    LeastRecentlyUsed,
}

impl ReuseOrder {
    /// Every order.
    pub const ALL: [Self; 2] = [Self::MostRecentlyUsed, Self::LeastRecentlyUsed];

    /// As formats spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MostRecentlyUsed => "mostRecentlyUsed",
            Self::LeastRecentlyUsed => "leastRecentlyUsed",
        }
    }
}

/// Why options cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidOptions {
    /// The minimum is above the maximum.
    #[error(
        "minPoolSize is {min} but maxPoolSize is {max}: lower the minimum or raise the maximum"
    )]
    // OP-03, OP-04
    MinAboveMax {
        /// As it was set.
        min: u32,
        /// As it was set, or the default.
        max: u32,
    },
    /// `maxConnecting` is 0.
    // OP-06
    #[error("maxConnecting is 0, so nothing could ever connect: set at least 1")]
    NoConnecting,
    /// The pause after a failed establishment is 0.
    // BG-09
    #[error("the pause after a failed establishment is 0: set a duration, or Maintenance::Never")]
    NoPause,
}
