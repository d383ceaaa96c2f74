//! An input that the machine refused, and why.

use core::fmt;

use thiserror::Error;

use super::{Input, SelectionId};
use crate::monitor;
use crate::topology::ServerId;

/// An input that the machine refused. Nothing changed and nothing was emitted.
#[derive(Debug)]
pub struct Misuse<W> {
    /// The input, so that no payload is lost with it.
    pub input: Input<W>,
    /// What is wrong with it.
    pub reason: MisuseReason,
}

/// What is wrong with a refused input: always a mistake of the embedder, never of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MisuseReason {
    /// The client has never had such a server.
    #[error("this client has never had a server {}", .0.0)]
    UnknownServer(ServerId),
    /// An input about a monitoring socket.
    #[error(transparent)]
    Socket(#[from] monitor::Misuse),
    /// Numbers of requests must increase.
    #[error("numbers of requests must increase, but {} comes after {}", .id.0, .last.0)]
    NotIncreasing {
        /// That of the refused request.
        id: SelectionId,
        /// The last one accepted.
        last: SelectionId,
    },
    /// No records were asked for.
    #[error("no records were asked for: `LookedUp` answers `LookUp`, once")]
    NotAsked,
}

impl<W> fmt::Display for Misuse<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refused: {}", self.input.name(), self.reason)
    }
}

impl<W: fmt::Debug> core::error::Error for Misuse<W> {}
