//! The log messages of the shells, through `tracing`. The subscriber is that of the whole process.

use std::fmt::{Debug, Write};
use std::panic::resume_unwind;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::log::LogSettings;
use cenote_core::pool::PoolOptions;
use cenote_mio::{EventLoop, Recording};
use cenote_shell::builder::Builder;
use cenote_shell::connection::MongoConnector;
use cenote_shell::runtime::Network;
use cenote_smol::Smol;
use cenote_test_runtimes::alone;
use cenote_tokio::Tokio;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::pool::blocking::{TestPool, TestRuntime};
use crate::pool::world::{Gate, at_most, unobserved};
use crate::recording::shared_buffer::Broken;

/// A line for each message, with its fields in their order.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Lines {
    // LG-43
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        ["cenote::connection", "cenote::trace"].contains(&metadata.target())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        match *event.metadata().level() {
            Level::DEBUG => {}
            level => line.0.insert_str(0, level.as_str()),
        }
        self.0.lock().expect("no panic").push(line.0);
    }
}

impl Lines {
    fn wait_for(&self, is_it: impl Fn(&str) -> bool) {
        let began = Instant::now();
        while !self.0.lock().expect("no panic").iter().any(|line| is_it(line)) {
            assert!(began.elapsed() < Duration::from_secs(20), "{self:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

struct Line(String);

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let name = field.name();
        // Times are what they are.
        let result = match name {
            "durationMS" => write!(self.0, " {name}"),
            _ => write!(self.0, " {name}={value:?}"),
        };
        result.expect("text");
    }
}

// OP-35, OP-36: has an option without effect, whose value must not be logged.
const URI: &str = "mongodb://db.example.com/?maxConecting=3&maxPoolSize=secret";

fn check_messages<R: TestRuntime + Network>(lines: &Lines) {
    Builder::<R::Pool<MongoConnector<R>>>::from_uri(URI).expect("a builder");
    let gate = Gate::open();
    gate.refuse(2);
    let pool = unobserved::<R::Pool<_>>(&gate, at_most(2)).build().expect("a pool");
    pool.ready();
    let first = pool.check_out().expect("a connection");
    pool.check_out().expect_err("it is refused");
    drop(first);
    pool.close();
    let mut said = std::mem::take(&mut *lines.0.lock().expect("no panic"));
    let messages = said.split_off(WARNINGS.len());
    for (warning, expected) in said.iter().zip(WARNINGS) {
        assert!(warning.starts_with(expected) && !warning.contains("secret"), "{warning}");
    }
    assert_eq!(messages, expected(), "{messages:#?}");
}

// PS-07, LG-01, LG-40, LG-41, LG-43, LG-47
#[test]
fn messages_have_the_words_and_keys_of_the_specification() {
    alone(|| {
        let lines = Lines::default();
        let collector = tracing_subscriber::registry().with(lines.clone());
        tracing::subscriber::set_global_default(collector).unwrap();
        check_messages::<Tokio>(&lines);
        check_messages::<EventLoop>(&lines);
        check_messages::<Smol>(&lines);
        with_a_subscriber_that_blocks();
        with_traces_that_fail_and_succeed(&lines);
        with_a_possible_leak(&lines);
        with_a_connector_that_does_not_return(&lines);
        let said = lines.0.lock().unwrap();
        let dropped: Vec<_> = said.iter().filter(|line| line.contains("dropped")).collect();
        let text = "WARN message=Events are dropped: a subscriber blocks, or takes too long";
        assert_eq!(dropped, [&format!("{text} serverHost=db.example.com serverPort=27017")]);
        let gave_up: Vec<_> = said.iter().filter(|line| line.contains("without waiting")).collect();
        let text =
            "WARN message=Connection pool closed without waiting longer: a subscriber blocks";
        assert_eq!(gave_up, [&format!("{text} serverHost=db.example.com serverPort=27017")]);
    });
}

fn on_mio(gate: &Gate, options: PoolOptions) -> cenote_mio::Builder<Gate> {
    unobserved(gate, options)
}

/// Which is logged once, without a callback.
fn with_a_possible_leak(lines: &Lines) {
    let threshold = Duration::from_millis(200);
    let options = PoolOptions::default().with_leak_detection_threshold(threshold);
    let pool = on_mio(&Gate::open(), options).build().expect("a pool");
    pool.ready();
    let held = pool.check_out().expect("a connection");
    let text = "WARN message=Possible connection leak: checked out for leak_detection_threshold \
                serverHost=db.example.com serverPort=27017 driverConnectionId=1 heldMS=";
    lines.wait_for(|line| {
        line.starts_with(text) && line.contains(" checkedOutAt=core/shell/tests/logging.rs:")
    });
    drop(held);
    pool.close();
}

/// Whose connection is logged once.
fn with_a_connector_that_does_not_return(lines: &Lines) {
    let threshold = Duration::from_millis(200);
    let options = PoolOptions::default().with_min_pool_size(1).with_unanswered_threshold(threshold);
    let pool = on_mio(&Gate::closed(), options).build().expect("a pool");
    pool.ready();
    let text = "WARN message=Connection still not established after unanswered_threshold \
                serverHost=db.example.com serverPort=27017 driverConnectionId=1 pendingMS=";
    lines.wait_for(|line| line.starts_with(text));
    assert_eq!(pool.snapshot().pending, 1, "it goes on");
    pool.close();
    let lines = lines.0.lock().expect("no panic");
    assert_eq!(lines.iter().filter(|line| line.starts_with(text)).count(), 1);
}

/// A recording that cannot be written, and a dump of the first timeout.
fn with_traces_that_fail_and_succeed(lines: &Lines) {
    let folder = tempfile::tempdir().expect("a folder");
    let options = at_most(1).with_wait_queue_timeout(Duration::from_millis(1));
    let pool = on_mio(&Gate::open(), options)
        .record(Recording::to_writer(Broken { panics: false }))
        .dump_traces_into(folder.path())
        .build()
        .expect("a pool");
    pool.ready();
    let patient = Instant::now() + Duration::from_secs(60);
    let first = pool.check_out_before(patient).expect("a connection");
    pool.check_out().expect_err("nothing is there");
    pool.end_recording().expect_err("it cannot be written");
    drop(first);
    pool.close();
    let said = lines.0.lock().expect("no panic");
    let mut of_traces: Vec<_> = said.iter().filter(|line| line.contains("Trace ")).collect();
    of_traces.sort_unstable_by_key(|line| line.contains("cannot"));
    let [dumped, failed] = of_traces[..] else { panic!("{of_traces:?}") };
    let path = folder.path().display();
    assert!(dumped.starts_with(&format!("WARN message=Trace of a timeout path={path}/")));
    let error = "no trace can be written: no space left";
    assert_eq!(failed, &format!("WARN message=Trace cannot be written error={error}"));
}

/// Drops several events.
fn with_a_subscriber_that_blocks() {
    let (entered, is_in) = channel();
    let (leave, may_leave) = channel::<()>();
    let may_leave = Mutex::new(may_leave);
    let pool = on_mio(&Gate::open(), at_most(1))
        .event_queue(1)
        .on_event(move |event| {
            if event.event.name() == "ConnectionCheckedIn" && entered.send(()).is_ok() {
                may_leave.lock().expect("no panic").recv().expect_err("the test lets it go on");
            }
        })
        .build()
        .expect("a pool");
    pool.ready();
    let first = pool.check_out().expect("a connection");
    thread::scope(|scope| {
        scope.spawn(|| drop(first));
        is_in.recv().expect("a message");
        drop(is_in);
        (0..3).for_each(|_| drop(pool.check_out().expect("a connection")));
        assert!(pool.dropped_events() > 1);
        pool.close(); // It waits for the subscriber, and gives up.
        drop(leave);
    });
}

/// About the connection string.
const WARNINGS: [&str; 2] = [
    "WARN message=Connection string: maxConecting: no such option, did you mean maxConnecting? It is ignored",
    "WARN message=Connection string: maxPoolSize: ",
];

fn expected() -> [String; 13] {
    let server = "serverHost=db.example.com serverPort=27017";
    let error = match std::env::var(LogSettings::VARIABLE).as_deref() {
        Ok("3") => "ope...",
        _ => "operation: reset by the test",
    };
    [
        format!(" message=Connection pool created {server} maxPoolSize=2"),
        format!(" message=Connection pool ready {server}"),
        format!(" message=Connection checkout started {server} request=1"),
        format!(" message=Connection created {server} driverConnectionId=1"),
        format!(" message=Connection ready {server} driverConnectionId=1 durationMS"),
        format!(
            " message=Connection checked out {server} driverConnectionId=1 durationMS request=1"
        ),
        format!(" message=Connection checkout started {server} request=2"),
        format!(" message=Connection created {server} driverConnectionId=2"),
        format!(
            " message=Connection closed {server} driverConnectionId=2 \
             reason=An error occurred while using the connection error={error}"
        ),
        format!(
            " message=Connection checkout failed {server} durationMS \
             reason=An error occurred while trying to establish a new connection \
             error={error} request=2"
        ),
        format!(" message=Connection checked in {server} driverConnectionId=1"),
        format!(
            " message=Connection closed {server} driverConnectionId=1 \
             reason=Connection pool was closed"
        ),
        format!(" message=Connection pool closed {server}"),
    ]
}

// LG-54, LG-48: the same in a process whose environment says so.
#[test]
fn errors_are_cut_where_the_environment_says() {
    let same = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "logging::messages_have_the_words_and_keys_of_the_specification"])
        .env(LogSettings::VARIABLE, "3")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&same.stdout);
    assert!(same.status.success() && said.contains("1 passed"), "{said}");
}

/// At every message.
struct Panics;

impl<S: Subscriber> Layer<S> for Panics {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target() == "cenote::connection"
    }

    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        // Quietly: a panic with a payload and no message.
        resume_unwind(Box::new("on purpose"));
    }
}

#[test]
fn a_collector_that_panics_affects_neither_callers_nor_subscribers() {
    alone(|| {
        let collector = tracing_subscriber::registry().with(Panics);
        tracing::subscriber::set_global_default(collector).unwrap();
        beside_panics::<Tokio>();
        beside_panics::<EventLoop>();
        beside_panics::<Smol>();
    });
}

fn beside_panics<R: TestRuntime>() {
    let told = Arc::new(AtomicUsize::new(0));
    let heard = Arc::clone(&told);
    let pool = unobserved::<R::Pool<_>>(&Gate::open(), PoolOptions::default())
        .on_event(move |_| _ = heard.fetch_add(1, Ordering::Relaxed))
        .build()
        .expect("a pool");
    pool.ready();
    drop(pool.check_out().expect("a connection"));
    pool.close();
    // Created, ready; started, created, ready, checked out; checked in, closed; closed.
    assert_eq!(told.load(Ordering::Relaxed), 9);
}
