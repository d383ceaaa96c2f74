//! Real forks: a child leaves its parent's connections alone, whatever it does, and has its own.
//!
//! In a process of its own, so that the thread that forks is the only one that matters. The server
//! is a third process, which counts the bytes of each connection as they come: the child has no
//! share in its sockets.

mod child;
mod judge;
mod server;
mod shared_buffer;

use std::process::ExitCode;

use bson::rawdoc;
use cenote_test_runtimes::{ClientSetup, Shell};
use cenote_tokio::{Client, MongoConnector, Pool, PooledConnection, Recording};
use fork::{Fork, fork, waitpid};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

use crate::child::{CHILDREN, Child, PATIENCE};
use crate::judge::Judge;
use crate::server::{Process, Tally};
use crate::shared_buffer::SharedBuffer;

/// What the process has before it forks, and both processes have afterwards.
struct Parent {
    runtime: Runtime,
    pool: Pool,
    /// In use.
    first: PooledConnection<MongoConnector>,
    /// In use as well, or idle.
    second: Option<PooledConnection<MongoConnector>>,
    /// Of the pool.
    trace: SharedBuffer,
    /// Of its events, in either process.
    judge: Judge,
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [role, kind] = arguments.as_slice()
        && role == server::ROLE
    {
        return server::serve(kind == server::TLS);
    }
    for tls in [false, true] {
        for threads in [false, true] {
            for child in CHILDREN {
                story(child, tls, threads);
            }
        }
    }
    client_story();
    Shell::ALL.into_iter().for_each(command_story);
    let children = 4 * CHILDREN.len() + 1 + Shell::ALL.len();
    println!("{children} children left their parents alone: ok");
    ExitCode::SUCCESS
}

// PS-04, FK-01
fn story(child: &Child, tls: bool, threads: bool) {
    let context = format!("{}, tls: {tls}, threads: {threads}", child.name);
    let mut server = Process::start(tls);
    let mut parent = Parent::new(server.uri(), child.finds_one_idle, threads);
    let waiting = child.finds_one_waiting.then(|| parent.wait());
    let before = server.tallies();
    parent.ping_both();
    let after = server.tallies();

    let parent = match parent.judge.while_quiet(fork).expect("a child") {
        Fork::Child => child::run(child, parent),
        Fork::Parent(child) => {
            assert_eq!(waitpid(child).expect("it ends"), 0, "{context}: how the child ended");
            parent
        }
    };
    let mut parent = parent;
    // What a child had sent on them would have come before this, and would be counted.
    parent.ping_both();
    let last = server.tallies();
    for number in 0..2 {
        let ping = after[number].bytes - before[number].bytes;
        let expected = Tally { bytes: after[number].bytes + ping, is_open: true };
        assert_eq!(last[number], expected, "{context}: connection {number}");
    }
    let all_but_ours = &last[2..];
    assert_eq!(all_but_ours.len(), child.opens, "{context}: connections of the child");
    assert_eq!(parent.pool.snapshot().connections_created, 2, "{context}");
    if let Some(waiting) = waiting {
        assert_eq!(parent.pool.snapshot().waiting, 1, "{context}");
        parent.serve(waiting);
    }
    parent.end();
}

/// A client, whose monitors are the parent's also after its pools were reset. Its runtime has one thread, the one
/// that forks.
fn client_story() {
    let server = Process::start(false);
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = runtime.block_on(async { Client::new(server.uri()) }).expect("a client");
    let ping = rawdoc! { "ping": 1 };
    runtime.block_on(client.command("admin", &ping)).expect("it works");
    match fork().expect("a child") {
        Fork::Child => child::run_with(|| child::closes_the_client(runtime, &client)),
        Fork::Parent(child) => assert_eq!(waitpid(child).expect("it ends"), 0, "a client"),
    }
    runtime.block_on(client.command("admin", &ping)).expect("it works");
    let closing = async { timeout(PATIENCE, client.close()).await };
    runtime.block_on(closing).expect("no socket is lost");
}

/// A child that uses its parent's client is told so at once, on every runtime.
fn command_story(shell: Shell) {
    let server = Process::start(false);
    let client = shell.build_client(server.uri(), ClientSetup::default()).expect("a client");
    let ping = rawdoc! { "ping": 1 };
    client.command("admin", &ping).expect("it works");
    match fork().expect("a child") {
        Fork::Child => child::run_with(|| child::uses_the_client(&*client)),
        Fork::Parent(child) => assert_eq!(waitpid(child).expect("it ends"), 0, "{shell:?}"),
    }
    client.command("admin", &ping).expect("it works");
    client.close();
}

impl Parent {
    fn new(uri: &str, has_one_idle: bool, threads: bool) -> Self {
        let mut builder =
            if threads { Builder::new_multi_thread() } else { Builder::new_current_thread() };
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        let trace = SharedBuffer::default();
        let recording = Recording::to_writer(trace.clone());
        let judge = Judge::default();
        let ear = judge.clone();
        let pool = runtime.block_on(async {
            let builder = Pool::builder(uri)?.flight_recorder(64 << 10).record(recording);
            builder.on_event(move |event| ear.hear(event)).build()
        });
        let pool = pool.expect("a pool");
        pool.ready();
        let [first, second] =
            [(); 2].map(|()| runtime.block_on(pool.check_out()).expect("a connection"));
        let second = (!has_one_idle).then_some(second);
        Self { runtime, pool, first, second, trace, judge }
    }

    /// On both connections.
    fn ping_both(&mut self) {
        let ping = rawdoc! { "ping": 1 };
        let Self { runtime, pool, first, second, .. } = self;
        let work = async {
            first.command("admin", &ping).await.expect("the first one works");
            let idle = match second {
                Some(second) => {
                    second.command("admin", &ping).await.expect("so does the second");
                    return;
                }
                None => pool.try_check_out().expect("a ready pool"),
            };
            let mut idle = idle.expect("it is idle");
            idle.command("admin", &ping).await.expect("so does the idle one");
        };
        // A socket that the child has taken out of epoll says nothing any more.
        let done = runtime.block_on(async { timeout(PATIENCE, work).await });
        done.expect("the parent hears from its server");
    }

    /// A request for a third connection of two.
    fn wait(&self) -> JoinHandle<u64> {
        let pool = self.pool.clone();
        let options = pool.options().with_max_pool_size(2);
        self.judge.sentry().options_change(&options, pool.address());
        pool.set_options(options).expect("good options");
        let request =
            self.runtime.spawn(async move { pool.check_out().await.expect("its turn").id() });
        self.runtime.block_on(async {
            while self.pool.snapshot().waiting == 0 {
                yield_now().await;
            }
        });
        request
    }

    /// Gives what was waited for.
    fn serve(&mut self, request: JoinHandle<u64>) {
        let second = self.second.take().expect("both are in use").id();
        let served = self.runtime.block_on(async { timeout(PATIENCE, request).await });
        assert_eq!(served.expect("it is served").expect("no panic"), second);
    }

    fn end(self) {
        let Self { runtime, pool, first, second, trace, judge: _ } = self;
        drop((first, second));
        runtime.block_on(pool.close());
        // No child has written into it.
        runtime.block_on(pool.end_recording()).expect("a whole trace");
        assert!(!trace.inputs().contains(&"ResetAfterFork"));
    }
}
