//! A tokio runtime with one worker thread.

use std::future::Future;
use std::sync::Arc;

use cenote_tokio::Tokio;
use tokio::runtime::{Builder, Handle, Runtime};

use super::Cancel;
use super::asynchronous::Executor;

#[derive(Clone)]
pub(super) struct OnTokio {
    handle: Handle,
    _keep_alive: Option<Arc<Runtime>>,
}

impl OnTokio {
    /// # Errors
    ///
    /// If the runtime cannot be started.
    pub(super) fn new() -> Result<Self, String> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| format!("the runtime does not start: {error}"))?;
        Ok(Self { handle: runtime.handle().clone(), _keep_alive: Some(Arc::new(runtime)) })
    }
}

impl Executor for OnTokio {
    type Runtime = Tokio;

    fn enter<T>(&self, make: impl FnOnce() -> T) -> T {
        let _inside = self.handle.enter();
        make()
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }

    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> Cancel {
        let (task, handle) = (self.handle.spawn(future), self.handle.clone());
        Box::new(move || {
            task.abort();
            // Once the task has ended, its future is dropped.
            let _ = handle.block_on(task);
        })
    }

    fn flush(&self) {
        // The worker runs this after everything that was spawned or woken before.
        let _ = self.handle.block_on(self.handle.spawn(tokio::task::yield_now()));
    }

    fn without_keep_alive(&self) -> Self {
        Self { handle: self.handle.clone(), _keep_alive: None }
    }
}
