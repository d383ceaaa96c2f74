//! Ids of requests, connections and services.

use core::fmt;

/// Names one request to check out; chosen by the shell, strictly increasing within a pool.
///
/// Strictly increasing ids let the machine find a waiting request by binary search, and order two
/// requests without a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(pub u64);

impl fmt::Display for WaiterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}", self.0)
    }
}

/// Names one connection of a pool; chosen by the machine.
///
/// The number is CMAP's connection id: 1, 2, 3, … in the order of creation, never reused. The
/// slot is where the machine keeps the connection; a slot is used again once its connection is
/// closed, and the number then distinguishes the old id from the new one.
// CO-06
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    number: u64,
    slot: u32,
}

impl ConnId {
    /// Makes an id from its parts, for traces and tests.
    ///
    /// A number that the pool never gave out is refused as misuse wherever it is used. With a
    /// number that was given out but another slot, the id counts as that of a closed connection.
    pub const fn from_parts(number: u64, slot: u32) -> Self {
        Self { number, slot }
    }

    /// CMAP's connection id, from 1.
    pub const fn number(self) -> u64 {
        self.number
    }

    /// Where the machine keeps the connection, from 0.
    pub const fn slot(self) -> u32 {
        self.slot
    }
}

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.number)
    }
}

/// Names one service behind a load balancer: the ObjectId of the `serviceId` that it puts into its
/// hello reply.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub [u8; 12]);

impl fmt::Debug for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Twenty-four hexadecimal digits, as in log messages.
impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
