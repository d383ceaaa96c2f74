//! smol's global executor.

use std::future::{Future, pending};

use cenote_smol::Smol;
use smol::channel;
use smol::future::{or, yield_now};

use super::Cancel;
use super::asynchronous::Executor;

#[derive(Clone)]
pub(super) struct OnSmol;

impl Executor for OnSmol {
    type Runtime = Smol;

    fn enter<T>(&self, make: impl FnOnce() -> T) -> T {
        make()
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        smol::block_on(future)
    }

    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> Cancel {
        let (cancel, cancelled) = channel::bounded::<()>(1);
        let (ended, end) = channel::bounded::<()>(1);
        let cancelled = async move {
            if cancelled.recv().await.is_err() {
                // The check-out is not cancelled any more.
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

    fn flush(&self) {
        smol::block_on(smol::spawn(yield_now()));
    }
}
