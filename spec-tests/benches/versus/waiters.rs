//! Many wait while all connections are out; then these come back, or most callers give up before.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::bare::HandMade;
use crate::measure::{Contestant, Sample, nanoseconds};
use crate::pools;

/// What becomes of the callers that wait.
#[derive(Clone, Copy)]
pub(crate) enum Scene {
    /// So many tasks, all of which are served.
    Served(u32),
    /// [`CALLERS`] callers, fifteen of sixteen of which give up, in scattered order.
    GivenUp,
}

/// How many wait to give up.
pub(crate) const CALLERS: u32 = 256;

pub(crate) fn contestants(scene: Scene) -> Vec<Contestant> {
    let connections = scene.connections();
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let made = HandMade::new(connections.into());
    let silent = runtime.block_on(pools::cenote(pools::plain(connections), false));
    let timed = runtime.block_on(pools::cenote(pools::timed(connections), false));
    let deadpool = runtime.block_on(pools::deadpool(connections as usize, None));
    let limit = Some(Duration::from_secs(30));
    let limited = runtime.block_on(pools::deadpool(connections as usize, limit));
    let bb8 = runtime.block_on(pools::bb8(connections, None));
    let cenote = |pool: cenote_tokio::Pool<pools::Numbers>| {
        on(&runtime, scene, move |held| {
            let pool = pool.clone();
            async move {
                let connection = pool.check_out().await;
                wait_for(held).await;
                drop(connection);
            }
        })
    };
    let made = on(&runtime, scene, move |held| {
        let made = made.clone();
        async move { made.with(async || wait_for(held).await).await }
    });
    let of_deadpool = |pool: deadpool::managed::Pool<pools::Numbers>| {
        on(&runtime, scene, move |held| {
            let pool = pool.clone();
            async move {
                let connection = pool.get().await;
                wait_for(held).await;
                drop(connection);
            }
        })
    };
    let bb8 = on(&runtime, scene, move |held| {
        let pool = bb8.clone();
        async move {
            let connection = pool.get().await;
            wait_for(held).await;
            drop(connection);
        }
    });
    let mut contestants = vec![
        ("semaphore and mutex, by hand", made),
        ("cenote", cenote(silent)),
        ("cenote, timed", cenote(timed)),
        ("deadpool", of_deadpool(deadpool)),
        ("deadpool with a timeout", of_deadpool(limited)),
        ("bb8", bb8),
    ];
    if let Scene::Served(waiters) = scene {
        contestants.insert(0, ("bare: a chain of oneshot wake-ups", chain(&runtime, waiters)));
    }
    contestants
}

impl Scene {
    const fn connections(self) -> u32 {
        match self {
            Self::Served(_) => 4,
            Self::GivenUp => 1,
        }
    }
}

/// The first holders of the connections keep them until they are told.
async fn wait_for(held: Option<oneshot::Receiver<()>>) {
    if let Some(held) = held {
        let _ = held.await;
    }
}

fn on<F: Future<Output = ()> + Send + 'static>(
    runtime: &Arc<Runtime>,
    scene: Scene,
    take: impl Fn(Option<oneshot::Receiver<()>>) -> F + 'static,
) -> Box<dyn FnMut() -> Sample> {
    match scene {
        Scene::Served(waiters) => served(runtime, waiters, take),
        Scene::GivenUp => given_up(runtime, take),
    }
}

/// Without tasks, whose ends would cost more than what is compared.
fn given_up<F: Future<Output = ()>>(
    runtime: &Arc<Runtime>,
    take: impl Fn(Option<oneshot::Receiver<()>>) -> F + 'static,
) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    let poll = |caller: Pin<&mut F>| caller.poll(&mut Context::from_waker(Waker::noop()));
    Box::new(move || {
        let _runtime = runtime.enter();
        let (release, held) = oneshot::channel();
        let mut holder = pin!(take(Some(held)));
        assert_eq!(poll(holder.as_mut()), Poll::Pending, "it has the connection");
        let began = Instant::now();
        let mut callers: Vec<_> = (0..CALLERS).map(|_| Some(Box::pin(take(None)))).collect();
        for caller in callers.iter_mut().flatten() {
            assert_eq!(poll(caller.as_mut()), Poll::Pending, "it waits");
        }
        let scattered = (0..CALLERS as usize).map(|i| i * 97 % CALLERS as usize);
        for place in scattered.filter(|place| place % 16 > 0) {
            callers[place] = None;
        }
        drop(release);
        assert_eq!(poll(holder), Poll::Ready(()), "the connection comes back");
        for caller in callers.iter_mut().flatten() {
            assert_eq!(poll(caller.as_mut()), Poll::Ready(()), "it is its turn");
        }
        vec![nanoseconds(began.elapsed() / CALLERS)]
    })
}

fn served<F: Future<Output = ()> + Send + 'static>(
    runtime: &Arc<Runtime>,
    waiters: u32,
    take: impl Fn(Option<oneshot::Receiver<()>>) -> F + 'static,
) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            let mut releases = Vec::new();
            for _ in 0..Scene::Served(waiters).connections() {
                let (release, held) = oneshot::channel();
                releases.push(release);
                tasks.spawn(take(Some(held)));
            }
            settle().await;
            for _ in 0..waiters {
                tasks.spawn(take(None));
            }
            settle().await;
            let began = Instant::now();
            drop(releases);
            tasks.join_all().await;
            vec![nanoseconds(began.elapsed() / waiters)]
        })
    })
}

/// Each one wakes the next.
fn chain(runtime: &Arc<Runtime>, waiters: u32) -> Box<dyn FnMut() -> Sample> {
    let runtime = Arc::clone(runtime);
    Box::new(move || {
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            let (first, mut before) = oneshot::channel::<()>();
            for _ in 0..waiters {
                let (wake, next) = oneshot::channel();
                let waits = std::mem::replace(&mut before, next);
                tasks.spawn(async move {
                    let _ = waits.await;
                    drop(wake);
                });
            }
            settle().await;
            let began = Instant::now();
            drop(first);
            tasks.join_all().await;
            vec![nanoseconds(began.elapsed() / waiters)]
        })
    })
}

/// Lets every task start to wait: the runtime, which is one thread, polls new tasks in the order in
/// which they are spawned, so that this one comes after all of them.
async fn settle() {
    tokio::spawn(async {}).await.expect("it does nothing");
}
