//! How long callers that wait hold up the one that clears the pool.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Instant;

use cenote_core::error::{ConnectionError, Stage};
use tokio::runtime::{Builder, Runtime};

use crate::measure::{Contestant, Sample, nanoseconds};
use crate::pools;

pub(crate) fn contestants() -> Vec<Contestant> {
    let runtime = Arc::new(Builder::new_current_thread().enable_all().build().expect("a runtime"));
    vec![
        ("100 wait", with_waiters(&runtime, 100)),
        ("10,000 wait", with_waiters(&runtime, 10_000)),
        ("100,000 wait", with_waiters(&runtime, 100_000)),
    ]
}

fn with_waiters(runtime: &Arc<Runtime>, waiters: u32) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    let pool = runtime.block_on(pools::cenote(pools::plain(1), false));
    Box::new(move || {
        pool.ready();
        let held = runtime.block_on(pool.check_out()).expect("a connection");
        let mut callers: Vec<_> = (0..waiters).map(|_| Box::pin(pool.check_out())).collect();
        assert!(callers.iter_mut().all(is_pending), "they wait");
        let cause = ConnectionError::network(Stage::Operation, "reset");
        let began = Instant::now();
        pool.clear(cause, false);
        let took = began.elapsed();
        drop(callers);
        drop(held);
        vec![nanoseconds(took)]
    })
}

fn is_pending<F: Future>(caller: &mut Pin<Box<F>>) -> bool {
    caller.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
}
