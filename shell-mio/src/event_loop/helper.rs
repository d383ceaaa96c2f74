use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::EventLoop;

impl EventLoop {
    /// Does work that blocks, on a thread that lives for as long as that takes: a driver's own way
    /// to connect, for example. When the future is dropped, the thread ends in its own time, and
    /// what it brings is dropped.
    ///
    /// # Errors
    ///
    /// There is no thread to be had, as always in an [embedded](crate::PoolSource) pool, or the work
    /// panicked.
    pub async fn on_thread<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> io::Result<R> {
        let promise = self.promise_on_thread(work)?;
        poll_fn(|cx| promise.poll(cx)).await
    }

    /// As [`on_thread`](Self::on_thread), for several to wait for.
    pub(crate) fn promise_on_thread<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> io::Result<Promise<R>> {
        if !self.inner.has_threads {
            let reason = "an embedded pool has no threads of its own";
            return Err(io::Error::new(ErrorKind::Unsupported, reason));
        }
        let (promise, answer) = promise();
        let builder = thread::Builder::new().name("cenote-helper".to_owned());
        builder.spawn(move || answer.give(work()))?;
        Ok(promise)
    }
}

/// What comes once, for whoever asks first.
pub(crate) struct Promise<R>(Arc<Mutex<Promised<R>>>);

/// Owes it.
pub(crate) struct Answer<R>(Arc<Mutex<Promised<R>>>);

struct Promised<R> {
    result: Option<R>,
    is_over: bool,
    wakers: Vec<Waker>,
}

pub(crate) fn promise<R>() -> (Promise<R>, Answer<R>) {
    let promised = Promised { result: None, is_over: false, wakers: Vec::new() };
    let promised = Arc::new(Mutex::new(promised));
    (Promise(Arc::clone(&promised)), Answer(promised))
}

impl<R> Promise<R> {
    /// The result, moved to who asks.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        let mut promised = lock(&self.0);
        match promised.result.take() {
            Some(result) => Poll::Ready(Ok(result)),
            None if promised.is_over => Poll::Ready(Err(io::Error::other("nothing came of it"))),
            None => {
                if !promised.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                    promised.wakers.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}

impl<R: Clone> Promise<R> {
    /// A copy of the result, for as many as ask.
    pub(crate) fn poll_copy(&self, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        let result = self.poll(cx)?;
        if let Poll::Ready(result) = &result {
            lock(&self.0).result = Some(result.clone());
        }
        result.map(Ok)
    }
}

impl<R> Clone for Promise<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> Answer<R> {
    pub(crate) fn give(self, result: R) {
        lock(&self.0).result = Some(result);
        // And wakes, as it does if nothing is given.
    }
}

impl<R> Drop for Answer<R> {
    fn drop(&mut self) {
        let wakers = {
            let mut promised = lock(&self.0);
            promised.is_over = true;
            std::mem::take(&mut promised.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

fn lock<R>(promised: &Mutex<Promised<R>>) -> MutexGuard<'_, Promised<R>> {
    promised.lock().unwrap_or_else(PoisonError::into_inner)
}
