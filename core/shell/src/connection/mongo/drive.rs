//! Waits for a socket, within a limit.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::Poll;

use super::limit::Limit;
use super::poll_io::{PollIo, poll_steps};
use crate::connection::operation::Deadline;
use crate::connection::transport_error::TransportError;
use crate::runtime::{self, Network, Runtime, timeout_at};

/// Repeats a step of a [`Transport`](super::Transport) until it is done, or a wait for the socket takes too long.
// CS-13
pub(super) fn drive<R: Network, T>(
    runtime: &R,
    stream: &mut R::Stream,
    limit: Limit,
    mut step: impl FnMut(&mut PollIo<'_, '_, R::Stream>) -> Result<T, TransportError>,
) -> impl Future<Output = Result<T, TransportError>> {
    let mut waits_anew = true;
    let mut deadline = None;
    // Boxed, because few need it: every future of a command would have room for it, and be moved with it.
    let mut sleep: Option<Pin<Box<_>>> = None;
    poll_fn(move |cx| {
        // What comes after a step is another wait.
        let outcome = poll_steps(stream, cx, &mut step, || waits_anew = true);
        if outcome.is_ready() {
            return outcome;
        }
        if std::mem::take(&mut waits_anew) {
            let next = limit.next(R::now);
            // The time after a stop of the process is given once, however many bytes come in it.
            if next != deadline {
                deadline = next;
                sleep = next.map(|next| Box::pin(runtime::deadline(runtime.clone(), next.at)));
            }
        }
        let (Some(sleep), Some(Deadline { after, .. })) = (&mut sleep, deadline) else {
            return Poll::Pending;
        };
        sleep.as_mut().poll(cx).map(|()| Err(TransportError::TimedOut(after)))
    })
}

/// Waits for what fails as I/O does, within the limit.
pub(super) async fn hold<R: Runtime, T>(
    runtime: &R,
    limit: Limit,
    work: impl Future<Output = io::Result<T>> + Unpin,
) -> Result<T, TransportError> {
    match limit.next(R::now) {
        Some(deadline) => match timeout_at(runtime, deadline.at, work).await {
            Some(outcome) => Ok(outcome?),
            None => Err(TransportError::TimedOut(deadline.after)),
        },
        None => Ok(work.await?),
    }
}
