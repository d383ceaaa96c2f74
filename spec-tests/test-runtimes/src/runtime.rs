//! How calls of asynchronous pools block.

use std::future::{Future, pending};
use std::sync::{Arc, Barrier, LazyLock, Mutex};

use cenote_shell::connection::Connection;
use cenote_shell::runtime::{CurrentRuntime, Network};
use cenote_smol::Smol;
use cenote_tokio::Tokio;
use smol::channel;
use smol::future::{or, yield_now};

use crate::Cancel;

/// A runtime whose pools are asynchronous.
pub trait AsyncRuntime: CurrentRuntime + Network<Connection = Connection<Self>> {
    /// Blocks on the future, where [`CurrentRuntime::current`] finds the runtime.
    fn block_on<T>(future: impl Future<Output = T>) -> T;

    /// Runs a future to its end, unless the returned function cancels it: that returns when the future is dropped.
    fn start(future: impl Future<Output = ()> + Send + 'static) -> Cancel;

    /// Returns when all tasks that were spawned or woken before have run.
    fn flush();
}

/// A subscriber that blocks does not keep the other from its work.
const WORKERS: usize = 2;

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(WORKERS).enable_all().build().expect("a runtime")
});

impl AsyncRuntime for Tokio {
    fn block_on<T>(future: impl Future<Output = T>) -> T {
        RUNTIME.block_on(future)
    }

    fn start(future: impl Future<Output = ()> + Send + 'static) -> Cancel {
        let task = RUNTIME.spawn(future);
        Box::new(move || {
            task.abort();
            // Once the task has ended, its future is dropped.
            let _ = RUNTIME.block_on(task);
        })
    }

    fn flush() {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock();
        // All workers meet, when each has done what came before.
        let barrier = Arc::new(Barrier::new(WORKERS));
        let meet = |_| {
            let barrier = Arc::clone(&barrier);
            RUNTIME.spawn(async move { barrier.wait() })
        };
        let tasks: Vec<_> = (0..WORKERS).map(meet).collect();
        for task in tasks {
            let _ = RUNTIME.block_on(task);
        }
    }
}

impl AsyncRuntime for Smol {
    fn block_on<T>(future: impl Future<Output = T>) -> T {
        smol::block_on(future)
    }

    fn start(future: impl Future<Output = ()> + Send + 'static) -> Cancel {
        let (cancel, cancelled) = channel::bounded::<()>(1);
        let (ended, end) = channel::bounded::<()>(1);
        let cancelled = async move {
            if cancelled.recv().await.is_err() {
                // It is not cancelled any more.
                pending::<()>().await;
            }
        };
        smol::spawn(async move {
            or(future, cancelled).await;
            drop(ended);
        })
        .detach();
        Box::new(move || {
            let _ = cancel.try_send(());
            let _ = smol::block_on(end.recv());
        })
    }

    fn flush() {
        smol::block_on(smol::spawn(yield_now()));
    }
}
