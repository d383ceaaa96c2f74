//! What files are played on.

use std::fmt;

use cenote_test_runtimes::Shell;

/// What a file is played on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Target {
    /// The state machine itself, under virtual time
    Core,
    /// The pool on tokio, in real time, on real sockets to the mock endpoint
    Tokio,
    /// The pool on mio, without an async runtime, in real time, on real sockets
    Mio,
    /// The pool on smol, in real time, on real sockets
    Smol,
    /// The C library, under virtual time
    C,
}

impl Target {
    /// All targets.
    pub const ALL: [Self; 5] = [Self::Core, Self::Tokio, Self::Mio, Self::Smol, Self::C];

    /// Those with real sockets.
    pub const SHELLS: [Self; 3] = [Self::Tokio, Self::Mio, Self::Smol];

    /// Those that know more than their pool.
    pub const WITH_CLIENTS: [Self; 4] = [Self::Core, Self::Tokio, Self::Mio, Self::Smol];

    /// Whether it has virtual time, and no sockets.
    #[must_use]
    pub const fn is_simulated(self) -> bool {
        matches!(self, Self::Core | Self::C)
    }

    /// The shell, if it has sockets.
    ///
    /// # Errors
    ///
    /// That it has none.
    pub(super) fn shell(self) -> Result<Shell, String> {
        match self {
            Self::Core | Self::C => Err("the state machine alone has no sockets".to_owned()),
            Self::Tokio => Ok(Shell::Tokio),
            Self::Mio => Ok(Shell::Mio),
            Self::Smol => Ok(Shell::Smol),
        }
    }

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Tokio => "tokio",
            Self::Mio => "mio",
            Self::Smol => "smol",
            Self::C => "c",
        }
    }

    /// The names of some targets, for messages.
    pub(super) fn names(targets: &[Self]) -> String {
        targets.iter().map(|target| target.name()).collect::<Vec<_>>().join(" and ")
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
