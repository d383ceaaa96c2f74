use std::time::Duration;

use cenote_core::pool::Purpose;

/// How a connection is checked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckOutRequest {
    /// What the connection is for. Official files do not say: it is [`Purpose::Other`].
    pub purpose: Purpose,
    /// The caller's time limit, besides the pool's `waitQueueTimeoutMS`. Official files have none.
    pub timeout: Option<Duration>,
}

impl CheckOutRequest {
    pub(crate) const fn new(purpose: Purpose, timeout: Option<Duration>) -> Self {
        Self { purpose, timeout }
    }
}
