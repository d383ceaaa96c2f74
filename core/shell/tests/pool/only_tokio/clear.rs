//! Many callers fail together when a pool is cleared: in their order, in turns, and all of them.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use cenote_core::error::PoolError;
use cenote_tokio::{Pool, PooledConnection};

use super::world::{Gate, at_most, failure, settle, unobserved};

const CALLERS: usize = 2_000;

type Answer = Result<PooledConnection<Gate>, PoolError>;

/// One that waits, and notes when it is woken.
struct Caller<'a> {
    check_out: Pin<Box<dyn Future<Output = Answer> + Send + 'a>>,
    waker: Arc<Bell>,
}

struct Bell {
    number: usize,
    rung: Arc<Mutex<Vec<usize>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.lock().expect("no panic").push(self.number);
    }
}

impl<'a> Caller<'a> {
    fn waiting(pool: &'a Pool<Gate>, number: usize, rung: &Arc<Mutex<Vec<usize>>>) -> Self {
        let waker = Arc::new(Bell { number, rung: Arc::clone(rung) });
        let mut caller = Self { check_out: Box::pin(pool.check_out()), waker };
        assert!(caller.poll().is_pending(), "the only connection is in use");
        caller
    }

    fn poll(&mut self) -> Poll<Answer> {
        let waker = Waker::from(Arc::clone(&self.waker));
        self.check_out.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

fn is_cleared(answer: &Poll<Answer>) -> bool {
    matches!(answer, Poll::Ready(Err(error)) if error.to_string().contains("cleared"))
}

/// A pool of one connection, which is in use.
async fn busy() -> (Pool<Gate>, PooledConnection<Gate>) {
    let pool: Pool<Gate> = unobserved(&Gate::open(), at_most(1)).build().expect("good options");
    pool.ready();
    let held = pool.check_out().await.expect("a connection");
    (pool, held)
}

/// A slot of the queue is not given to the next caller while the error of the one before is on its way.
#[tokio::test]
async fn callers_fail_in_turns_and_may_give_up_meanwhile() {
    let (pool, held) = busy().await;
    let rung = Arc::default();
    // Outside of the budget of this task, after which each poll would wait.
    let unlimited = tokio::task::unconstrained(async {
        let mut callers: Vec<_> =
            (0..CALLERS).map(|number| Caller::waiting(&pool, number, &rung)).collect();
        pool.clear(failure(), false);
        let first = rung.lock().expect("no panic").len();
        assert!((1..CALLERS / 2).contains(&first), "{first} of {CALLERS} were woken by the clear");
        assert!(is_cleared(&callers[0].poll()), "the oldest is the first");
        assert!(callers[CALLERS - 1].poll().is_pending());

        // These give up; others come, and wait for the connection that is made once this one is closed.
        callers.truncate(CALLERS - 100);
        pool.ready();
        let later = CALLERS..CALLERS + 100;
        let mut later: Vec<_> = later.map(|it| Caller::waiting(&pool, it, &rung)).collect();
        settle().await;
        assert!(callers[1..].iter_mut().all(|caller| is_cleared(&caller.poll())));
        assert!(later.iter_mut().all(|caller| caller.poll().is_pending()));
        // Each that gives up has a turn done, which may wake others of those.
        let woken = rung.lock().expect("no panic").clone();
        assert!(woken.is_sorted() && woken.len() < CALLERS, "in their order, but those that left");
        assert!(woken.iter().take(CALLERS - 100).copied().eq(0..CALLERS - 100));

        drop(held);
        for caller in &mut later {
            settle().await;
            assert!(matches!(caller.poll(), Poll::Ready(Ok(_))));
        }
    });
    unlimited.await;
    assert_eq!(pool.snapshot().waiting, 0);
}

#[test]
fn the_end_of_the_runtime_loses_no_caller() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (pool, held) = runtime.block_on(busy());
    let rung = Arc::default();
    let mut callers: Vec<_> =
        (0..CALLERS).map(|number| Caller::waiting(&pool, number, &rung)).collect();
    pool.clear(failure(), false);
    let first = rung.lock().expect("no panic").len();
    // Nothing drives the runtime: the next caller that acts goes on.
    pool.ready();
    let second = rung.lock().expect("no panic").len();
    assert!(first < second && second < CALLERS, "{first}, {second} of {CALLERS}");
    drop(runtime);
    assert_eq!(rung.lock().expect("no panic").len(), CALLERS);
    assert!(callers.iter_mut().all(|caller| is_cleared(&caller.poll())));
    drop(held);
}
