//! What children do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::client::{ClientError, SelectionError};
use cenote_core::error::{Kind, Stage};
use cenote_core::pool::{Purpose, Status};
use cenote_test_runtimes::AnyClient;
use cenote_tokio::{Client, ForkError, MongoConnector, OperationError, Pool, PooledConnection};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::Parent;
use crate::shared_buffer::inputs;

/// After this time it counts as hanging. Normally it takes less than a hundredth of that.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Child {
    pub(crate) name: &'static str,
    /// Whether the second connection of the parent lies idle in the pool.
    pub(crate) finds_one_idle: bool,
    /// Whether a request of the parent waits, because nothing is idle and there is no room.
    pub(crate) finds_one_waiting: bool,
    /// How many connections the child opens.
    pub(crate) opens: usize,
    acts: fn(Parent),
}

/// With one connection in use and one idle.
const IDLE: Child = Child {
    name: "drops everything",
    finds_one_idle: true,
    finds_one_waiting: false,
    opens: 0,
    acts: drops_everything,
};

/// With two connections in use.
const BUSY: Child = Child {
    name: "has no runtime",
    finds_one_idle: false,
    finds_one_waiting: false,
    opens: 0,
    acts: has_no_runtime,
};

pub(crate) const CHILDREN: &[Child] = &[
    IDLE,
    Child { name: "resets", opens: 1, acts: resets, ..IDLE },
    Child { name: "uses what is idle", opens: 1, acts: uses_what_is_idle, ..IDLE },
    Child { name: "closes the pool", acts: closes_the_pool, ..IDLE },
    BUSY,
    Child { name: "opens another one", opens: 1, acts: opens_another_one, ..BUSY },
    Child { name: "uses what is out", opens: 1, acts: uses_what_is_out, ..BUSY },
    Child {
        name: "does not wait with others",
        finds_one_waiting: true,
        opens: 1,
        acts: does_not_wait_with_others,
        ..BUSY
    },
];

/// In the child: never returns to what the parent does next.
pub(crate) fn run(child: &Child, parent: Parent) -> ! {
    run_with(|| (child.acts)(parent))
}

pub(crate) fn run_with(act: impl FnOnce()) -> ! {
    thread::spawn(|| {
        thread::sleep(PATIENCE);
        eprintln!("the child hangs");
        exit(3);
    });
    let outcome = catch_unwind(AssertUnwindSafe(act));
    exit(i32::from(outcome.is_err()))
}

/// The documented way.
// FK-02
fn resets(parent: Parent) {
    let Parent { runtime, pool, mut first, second, judge, .. } = parent;
    assert!(second.is_none());
    std::mem::forget(runtime);
    in_a_new_runtime(async {
        judge.sentry().is_reset_after_fork(pool.address());
        pool.reset_after_fork().expect("a runtime of its own");
        let snapshot = pool.snapshot();
        assert_eq!((snapshot.status, snapshot.total, snapshot.generation), (Status::Ready, 0, 1));
        let own = ping(&pool).await;
        assert_eq!(own.id(), 3, "numbers go on");
        assert_foreign(&mut first).await;
        first.set_purpose(Purpose::Cursor); // It has no pool any more; that must not panic.
        drop(first);
        assert_eq!(pool.snapshot().total, 1, "it counts no longer");
        pool.reset_after_fork().expect("a runtime of its own"); // Once more is nothing.

        // The flight recorder goes on; the recording is the parent's, and has nothing to end here.
        let recorded = inputs(&pool.write_trace(Vec::new()).expect("memory"));
        assert_eq!(recorded.iter().filter(|name| **name == "ResetAfterFork").count(), 1);
        pool.end_recording().await.expect("nothing");
        assert_eq!(pool.snapshot().in_use, 1);

        // Deadlines work, though the parent's timer is not here.
        let options = pool.options().with_max_pool_size(1);
        judge.sentry().options_change(&options, pool.address());
        pool.set_options(options).expect("good options");
        let deadline = Instant::now() + Duration::from_millis(20);
        assert!(pool.check_out_before(deadline).await.expect_err("nothing is there").is_timeout());
        drop(own);
        pool.close().await;
    });
}

/// Without a reset: the idle one is refused, and the pool begins anew by itself.
// FK-03
fn uses_what_is_idle(parent: Parent) {
    let Parent { runtime, pool, first, second: _, judge, .. } = parent;
    std::mem::forget(runtime);
    in_a_new_runtime(async {
        let mut idle = pool.check_out().await.expect("a connection");
        assert_eq!(idle.id(), 2);
        judge.lets_it_notice();
        assert_foreign(&mut idle).await;
        assert_eq!(ping(&pool).await.id(), 3);
        drop((idle, first));
        assert_eq!(pool.snapshot().total, 1);
        drop(pool);
    });
}

/// Without a reset: what would open a connection fails, and the next attempt opens it.
// PS-04, FK-03
fn opens_another_one(parent: Parent) {
    let Parent { runtime, pool, first, second, judge, .. } = parent;
    std::mem::forget(runtime);
    in_a_new_runtime(async {
        judge.lets_it_notice();
        let error = pool.check_out().await.expect_err("it is refused");
        assert_eq!(error.name(), "PoolClearedError", "{error}");
        assert!(error.is_retryable());
        assert_eq!(ping(&pool).await.id(), 4, "the third never was");
    });
    drop((first, second, pool));
}

/// A full pool, and a queue: neither is the child's.
fn does_not_wait_with_others(parent: Parent) {
    let Parent { runtime, pool, first, second, judge, .. } = parent;
    std::mem::forget(runtime);
    assert_eq!(pool.snapshot().waiting, 1);
    in_a_new_runtime(async {
        judge.sentry().is_reset_after_fork(pool.address());
        pool.reset_after_fork().expect("a runtime of its own");
        let snapshot = pool.snapshot();
        assert_eq!((snapshot.waiting, snapshot.total), (0, 0), "{snapshot}");
        assert_eq!(ping(&pool).await.id(), 3);
    });
    drop((first, second, pool));
}

/// Neither commands nor what goes past the guard.
// FK-04
fn uses_what_is_out(parent: Parent) {
    let Parent { runtime, pool, mut first, second, judge, .. } = parent;
    std::mem::forget(runtime);
    in_a_new_runtime(async {
        judge.lets_it_notice();
        let past =
            (*first).command("admin", &rawdoc! { "ping": 1 }).await.expect_err("it is refused");
        assert!(past.to_string().contains("forked"), "{past}");
        let error = first.raw_stream().expect_err("its bytes are not ours either");
        assert!(error.to_string().contains("reset_after_fork"), "{error}");
        assert_foreign(&mut first).await;
        assert_eq!(ping(&pool).await.id(), 3, "the pool has noticed");
    });
    drop((first, second, pool));
}

fn drops_everything(parent: Parent) {
    let Parent { runtime, pool, first, second, .. } = parent;
    std::mem::forget(runtime);
    drop(first);
    drop(second);
    drop(pool);
}

/// Without a reset: the child's copy is closed, the sockets are not.
fn closes_the_pool(parent: Parent) {
    let Parent { runtime, pool, first, second, .. } = parent;
    std::mem::forget(runtime);
    drop((first, second));
    in_a_new_runtime(async { pool.close().await });
    assert_eq!(pool.snapshot().total, 0);
}

/// Its monitors are not waited for.
pub(crate) fn closes_the_client(runtime: Runtime, client: &Client) {
    std::mem::forget(runtime);
    in_a_new_runtime(async {
        for server in client.servers() {
            let pool = client.pool(&server.address).expect("of this client");
            pool.reset_after_fork().expect("a runtime of its own");
            drop(ping(&pool).await);
        }
        client.close().await;
    });
}

/// No server is waited for, and no lock, which another thread of the parent may hold.
pub(crate) fn uses_the_client(client: &dyn AnyClient) {
    let error = client.command("admin", &rawdoc! { "ping": 1 }).expect_err("it is the parent's");
    assert!(matches!(error, ClientError::Selection(SelectionError::Inherited)), "{error}");
}

fn has_no_runtime(parent: Parent) {
    let Parent { runtime, pool, first, second, .. } = parent;
    assert_eq!(pool.reset_after_fork(), Err(ForkError::NoRuntime));
    let inherited = runtime.enter();
    assert_eq!(pool.reset_after_fork(), Err(ForkError::InheritedRuntime));
    drop(inherited);
    std::mem::forget(runtime);
    drop((first, second, pool));
}

fn in_a_new_runtime(work: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work);
}

async fn ping(pool: &Pool) -> PooledConnection<MongoConnector> {
    let mut connection = pool.check_out().await.expect("a connection");
    connection.command("admin", &rawdoc! { "ping": 1 }).await.expect("a reply");
    connection
}

async fn assert_foreign(connection: &mut PooledConnection<MongoConnector>) {
    let error =
        connection.command("admin", &rawdoc! { "ping": 1 }).await.expect_err("it is refused");
    let OperationError::Connection(error) = error else { panic!("{error}") };
    assert_eq!((error.stage(), error.kind()), (Stage::Operation, &Kind::Configuration), "{error}");
    assert!(error.to_string().contains("reset_after_fork"), "{error}");
}
