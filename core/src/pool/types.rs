//! What a shell brings: the payloads that the machine moves and never looks at.

/// What a shell brings. The machine moves these in and out and never looks inside.
// CO-17
pub trait PoolTypes {
    /// An established connection: a socket and what belongs to it.
    type Conn;
    /// What wakes a caller that waits: a waker, a channel, a parked thread.
    type Waiter;
    /// Why something failed. One cause can fail many requests, so it must be cheap to clone.
    type Cause: Clone;
}

/// The shell without a shell: every payload is `()`.
///
/// For replay, simulation, fuzzing and tests, which care about decisions alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoPayload {}

impl PoolTypes for NoPayload {
    type Conn = ();
    type Waiter = ();
    type Cause = ();
}
