//! Each runtime feeds the machine every kind of input, on real sockets.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{Input, PoolOptions, PoolTypes, Purpose};
use cenote_core::trace::{Replay, StageRecord, Step};
use cenote_core::uri::Credential;
use cenote_endpoint::{Ending, Fault, LoadBalanced, Script, Settings, TlsFault, Topology, User};
use cenote_mio::PoolSource;
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::trace::Recording;

use crate::shell::{AnyPool, Shell, on_all_runtimes, paused_pool};
use crate::world::{at, block_ping, closed, plain, refusal, set, subscriber, tls, with};

on_all_runtimes!(every_input_is_produced, establishments_have_stages);

/// Lists the variants, so that a new one does not compile before it stands here.
macro_rules! inputs {
    ($($name:ident),* $(,)?) => {
        const INPUTS: &[&str] = &[$(stringify!($name)),*];

        fn name<S: PoolTypes>(input: &Input<S>) -> &'static str {
            match input {
                $(Input::$name { .. } => stringify!($name),)*
            }
        }
    };
}

inputs!(
    CheckOutRequested,
    CheckOutCancelled,
    CheckedIn,
    Repurposed,
    Handshaken,
    EstablishSucceeded,
    EstablishFailed,
    IdleClosedByPeer,
    DrainSucceeded,
    DrainFailed,
    DrainProgress,
    RetireConnections,
    ReleaseIdle,
    Ready,
    Close,
    Timer,
    ResetAfterFork,
    Clear,
    SetOptions,
);

/// What no runtime produces here.
const MISSING: [&str; 1] = [
    // Needs a child process: `tests/fork` and `only_mio/fork.rs` check that it is recorded there, on tokio and
    // mio. Without threads of its executor, smol cannot go on in a child.
    "ResetAfterFork",
];

fn every_input_is_produced(shell: Shell) {
    let mut produced = inputs_of_a_pool(shell);
    produced.extend(inputs_of_late_replies_and_new_credentials(shell));
    produced.extend(inputs_of_a_load_balanced_pool(shell));
    if shell == Shell::Mio {
        produced.extend(inputs_of_an_embedded_pool());
    }
    let missing: Vec<_> = INPUTS.iter().filter(|name| !produced.contains(name)).collect();
    assert_eq!(missing, MISSING.iter().collect::<Vec<_>>(), "{shell:?} produces {produced:?}");
}

fn inputs_of_a_pool(shell: Shell) -> Vec<&'static str> {
    let endpoint = plain();
    let trace = Trace::default();
    let (subscriber, events) = subscriber();
    let uri = with(&endpoint.uri(), "maxPoolSize=1&waitQueueTimeoutMS=60000");
    let pool = paused_pool(shell, &uri, subscriber, Some(Recording::to_writer(trace.clone())));
    pool.ready();
    let mut connection = pool.check_out().expect("a connection");
    connection.set_purpose(Purpose::Cursor);
    // A thread that waits cannot be cancelled.
    if shell != Shell::Mio {
        let waiting = Arc::clone(&pool).start_check_out(Purpose::Other, None, Box::new(drop));
        while pool.snapshot().waiting == 0 {
            thread::yield_now();
        }
        waiting.expect("a future")();
    }
    drop(connection);
    pool.clear(ConnectionError::network(Stage::Operation, "reset"), false);
    pool.ready();
    set(&endpoint, Script::new(Fault::Refuse));
    refusal(&pool);
    endpoint.with(cenote_endpoint::Server::clear_faults);
    drop(pool.check_out().expect("a connection"));
    endpoint.with(|server, now| server.break_connections(now, Ending::Close, None));
    assert_eq!(closed(&events, 3), ["stale", "error", "error"]);
    drop(pool.check_out().expect("a connection"));
    // The timer closes the connection that is idle.
    let options = PoolOptions::default().with_max_idle_time(Duration::from_millis(10));
    pool.set_options(options).expect("good options");
    assert_eq!(closed(&events, 4), ["stale", "error", "error", "idle"]);
    end(&pool, &trace)
}

fn inputs_of_late_replies_and_new_credentials(shell: Shell) -> Vec<&'static str> {
    let endpoint = plain();
    let trace = Trace::default();
    let recording = Recording::to_writer(trace.clone());
    let pool = paused_pool(
        shell,
        &with(&endpoint.uri(), "maxPoolSize=1"),
        subscriber().0,
        Some(recording),
    );
    let options = pool.options().with_experimental_pending_response(true);
    pool.set_options(options).expect("good options");
    pool.ready();
    for fault in [Fault::Garbage { bytes: 64 }, Fault::Drip { bytes: 8, every: MS(100) }] {
        block_ping(&endpoint, 1_500);
        set(&endpoint, at(fault, "ping").times(1));
        let mut connection = pool.check_out().expect("a connection");
        let options = OperationOptions::new().with_timeout(MS(300));
        let ping = rawdoc! { "ping": 1 };
        connection.command_with("admin", &ping, options).expect_err("it is late");
        drop(connection);
        drop(pool.check_out().expect("a connection"));
    }
    let credential = Credential::of_user("app", "pencil", "admin");
    pool.replace_credential(credential).expect("it can be used");
    pool.release_idle();
    end(&pool, &trace)
}

const MS: fn(u64) -> Duration = Duration::from_millis;

fn inputs_of_a_load_balanced_pool(shell: Shell) -> Vec<&'static str> {
    let topology = Topology::LoadBalanced(LoadBalanced { services: 1 });
    let endpoint = tls(Settings { topology, ..Settings::default() });
    let trace = Trace::default();
    let pool = paused_pool(
        shell,
        &endpoint.uri(),
        subscriber().0,
        Some(Recording::to_writer(trace.clone())),
    );
    pool.ready();
    drop(pool.check_out().expect("a connection"));
    end(&pool, &trace)
}

/// Callers of other pools on mio block, and cannot cancel.
fn inputs_of_an_embedded_pool() -> Vec<&'static str> {
    let endpoint = plain();
    let trace = Trace::default();
    let poll = mio::Poll::new().expect("an event loop");
    let builder = cenote_mio::Pool::builder(&endpoint.uri()).expect("a connection string");
    let builder = builder.record(Recording::to_writer(trace.clone()));
    let mut source = PoolSource::new(builder, poll.registry(), 0..8, || ()).expect("a pool");
    source.pool().ready();
    let request = source.check_out();
    source.cancel(request);
    source.close();
    source.pool().end_recording().expect("a whole trace");
    trace.inputs()
}

/// Where the time of an establishment went, and how far one came that failed.
fn establishments_have_stages(shell: Shell) {
    let user = User::new("app", "pencil");
    let endpoint = tls(Settings { auth: true, users: vec![user], ..Settings::default() });
    let trace = Trace::default();
    let recording = Some(Recording::to_writer(trace.clone()));
    let pool = paused_pool(shell, &endpoint.uri(), subscriber().0, recording);
    pool.ready();
    let good = pool.check_out().expect("a connection");
    endpoint.set_tls_fault(Some(TlsFault::Garbage));
    refusal(&pool);
    drop(good);
    pool.close();
    pool.end_recording().expect("a whole trace");
    let stages = trace.stages();
    let of = |connection| -> Vec<_> {
        stages.iter().filter(|it| it.connection == connection).map(|it| it.stage).collect()
    };
    assert_eq!(of(1), [Stage::Tcp, Stage::TlsIo, Stage::Hello, Stage::Authentication]);
    assert_eq!(of(2), [Stage::Tcp, Stage::TlsIo]);
    assert!(stages.is_sorted_by_key(|it| it.at));
}

fn end(pool: &Arc<dyn AnyPool>, trace: &Trace) -> Vec<&'static str> {
    pool.close();
    pool.end_recording().expect("a whole trace");
    trace.inputs()
}

/// A trace in memory.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<u8>>>);

impl Trace {
    /// The inputs of the trace, which replays as it was recorded.
    fn inputs(&self) -> Vec<&'static str> {
        self.steps().iter().map(|step| name(&step.input)).collect()
    }

    fn stages(&self) -> Vec<StageRecord> {
        self.steps().into_iter().flat_map(|step| step.stages).collect()
    }

    fn steps(&self) -> Vec<Step> {
        let trace = self.0.lock().expect("no panic");
        let mut replay = Replay::new(trace.as_slice()).expect("a trace");
        let step = || replay.step(&mut |_| {}).expect("it replays");
        std::iter::from_fn(step).collect()
    }
}

impl Write for Trace {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
