use std::io::{self, ErrorKind};
use std::thread;

use futures_channel::oneshot;

use super::{EventLoop, Owner};

impl EventLoop {
    /// Runs work that blocks on a thread of its own, which ends with it: a driver's own way to connect,
    /// for example. Dropping the future does not end the work; its result is dropped then.
    ///
    /// # Errors
    ///
    /// The operating system has no thread, or the work panicked. In an
    /// [embedded](crate::PoolSource) pool, which has no threads, always.
    pub async fn on_thread<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> io::Result<R> {
        let (sender, receiver) = oneshot::channel();
        // The receiver may be gone.
        self.start_helper(move || drop(sender.send(work())))?;
        receiver.await.map_err(|_| io::Error::other("the work on the helper thread panicked"))
    }

    pub(super) fn start_helper(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        if self.inner.owner == Owner::Application {
            let reason = "an embedded pool has no threads of its own";
            return Err(io::Error::new(ErrorKind::Unsupported, reason));
        }
        thread::Builder::new().name("cenote-helper".to_owned()).spawn(work)?;
        Ok(())
    }
}
