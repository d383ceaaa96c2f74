//! The places of check-outs in a program.

use core::fmt;
use core::panic::Location;
use core::ptr;

/// Where in a program a check-out is called. `Display` is `src/orders.rs:41:32`, as that of [`Location`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallerLocation {
    file: &'static str,
    line: u32,
    column: u32,
}

impl CallerLocation {
    /// A place of a program in another language; in Rust, a [`Location`] is one.
    pub const fn new(file: &'static str, line: u32, column: u32) -> Self {
        Self { file, line, column }
    }

    /// Whether it is the same one, without a look at the name of the file. The same place may have several
    /// copies of the name.
    #[inline(always)]
    pub(super) fn is(self, other: Self) -> bool {
        self.line == other.line && self.column == other.column && ptr::eq(self.file, other.file)
    }
}

impl From<&'static Location<'static>> for CallerLocation {
    #[inline]
    fn from(location: &'static Location<'static>) -> Self {
        Self::new(location.file(), location.line(), location.column())
    }
}

impl fmt::Display for CallerLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column } = self;
        write!(f, "{file}:{line}:{column}")
    }
}
