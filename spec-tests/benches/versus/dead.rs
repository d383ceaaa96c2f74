//! All connections are out, many ask and give up, one asks and stays: how long it takes until that
//! one has the connection that comes back.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::bare::HandMade;
use crate::measure::{Contestant, Sample, nanoseconds};
use crate::peer::Peer;
use crate::pools;

/// So many times a round.
const TIMES: u32 = 20;

pub(crate) fn contestants(dead: usize) -> Vec<Contestant> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let silent = runtime.block_on(pools::cenote(pools::plain(1), false));
    let timed = runtime.block_on(pools::cenote(pools::timed(1), false));
    let deadpool = runtime.block_on(pools::deadpool(1, None));
    let bb8 = runtime.block_on(pools::bb8(1, None));
    let mobc = runtime.block_on(pools::mobc(1, None));
    vec![
        ("bare: a oneshot wake-up", wake_up(&runtime)),
        ("semaphore and mutex, by hand", on(&runtime, dead, HandMade::new(1))),
        ("cenote", on(&runtime, dead, silent)),
        ("cenote, timed", on(&runtime, dead, timed)),
        ("deadpool", on(&runtime, dead, deadpool)),
        ("bb8", on(&runtime, dead, bb8)),
        ("mobc", on(&runtime, dead, mobc)),
    ]
}

fn on<P: Peer>(runtime: &Arc<Runtime>, dead: usize, pool: P) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        runtime.block_on(async {
            let mut sum = 0.0;
            for _ in 0..TIMES {
                sum += once(&pool, dead).await;
            }
            vec![sum / f64::from(TIMES)]
        })
    })
}

async fn once<P: Peer>(pool: &P, dead: usize) -> f64 {
    let held = pool.take().await.expect("a connection");
    let mut gone: Vec<_> = (0..dead).map(|_| Box::pin(pool.take())).collect();
    poll_fn(|cx| {
        for request in &mut gone {
            assert!(request.as_mut().poll(cx).is_pending(), "it is out");
        }
        Poll::Ready(())
    })
    .await;
    let mut live = pin!(pool.take());
    poll_fn(|cx| {
        assert!(live.as_mut().poll(cx).is_pending(), "it is out");
        Poll::Ready(())
    })
    .await;
    drop(gone);
    let began = Instant::now();
    drop(held);
    assert!(live.await.is_some(), "it came back");
    nanoseconds(began.elapsed())
}

fn wake_up(runtime: &Arc<Runtime>) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        runtime.block_on(async {
            let mut sum = 0.0;
            for _ in 0..TIMES {
                let (wake, mut live) = oneshot::channel::<()>();
                poll_fn(|cx| {
                    assert!(pin!(&mut live).poll(cx).is_pending(), "nothing was sent");
                    Poll::Ready(())
                })
                .await;
                let began = Instant::now();
                drop(wake);
                assert!(live.await.is_err(), "nothing is sent");
                sum += nanoseconds(began.elapsed());
            }
            vec![sum / f64::from(TIMES)]
        })
    })
}
