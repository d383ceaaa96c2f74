//! Giving up between two looks, when the answer may be there but was not taken.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// What becomes of `future` if it is ready at one of so many looks, or `None`: it is dropped when it
/// wakes its task once more. Looks without limit if there is none.
pub(crate) async fn looks<F: Future>(future: F, mut limit: Option<u64>) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if limit == Some(0) {
            return Poll::Ready(None);
        }
        limit = limit.map(|limit| limit - 1);
        future.as_mut().poll(cx).map(Some)
    })
    .await
}
