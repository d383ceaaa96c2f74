//! Requests that fail all at once.

use super::WaitQueue;

/// Requests that left the wait queue together and fail with the same error: the waiters of each, oldest first.
#[derive(Debug)]
pub struct FailedRequests<W>(pub(super) WaitQueue<W>);

impl<W> Iterator for FailedRequests<W> {
    type Item = W;

    fn next(&mut self) -> Option<W> {
        self.0.pop().map(|request| request.waiter)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len(), Some(self.0.len()))
    }
}

impl<W> ExactSizeIterator for FailedRequests<W> {}
