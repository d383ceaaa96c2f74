//! Pools that are looked at through a socket.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use cenote_core::trace::{Replay, TraceError};
use cenote_shell::builder::BuildError;
use cenote_shell::inspect::InspectError;
use serde_json::Value;
use tempfile::tempdir;

use crate::pool::blocking::{TestConnection, TestPool, TestRuntime, on_all_runtimes};
use crate::pool::world::{Gate, at_most, builder, failure, unobserved, until};

on_all_runtimes!(
    holders_and_requests_are_shown,
    failures_and_the_last_clear_are_counted,
    the_socket_is_its_users_and_lasts_as_long_as_the_pool,
    only_the_socket_of_a_process_that_has_ended_is_replaced,
    what_an_inspector_says_wrong_is_answered,
    an_inspector_that_does_not_read_stops_nothing,
    no_more_inspectors_than_are_allowed,
    a_dump_and_a_recording_are_written_on_demand,
);

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

struct Inspector {
    stream: BufReader<UnixStream>,
    greeting: Value,
}

impl Inspector {
    fn attach(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut inspector = Self { stream: BufReader::new(stream), greeting: Value::Null };
        inspector.greeting = inspector.read();
        inspector
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    fn ask(&mut self, request: &str) -> Value {
        self.stream.get_mut().write_all(format!("{request}\n").as_bytes()).expect("it listens");
        self.read()
    }

    fn pool(&mut self) -> Value {
        self.ask("pool 1")["pool"].clone()
    }

    fn error(&mut self, request: &str) -> String {
        let answer = self.ask(request);
        answer["error"].as_str().unwrap_or_else(|| panic!("{request}: {answer}")).to_owned()
    }
}

fn held<T>(folder: &tempfile::TempDir, make: impl FnOnce(PathBuf) -> T) -> (PathBuf, T) {
    let path = folder.path().join("pool.sock");
    (path.clone(), make(path))
}

fn holders_and_requests_are_shown<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let (path, pool) = held(&folder, |path| {
        // Without a subscriber: times are exact only while the pool is watched.
        unobserved::<R::Pool<Gate>>(&Gate::open(), at_most(2)).inspect(path).build()
    });
    let pool = pool.expect("a pool");
    pool.ready();
    let early = pool.check_out().expect("a connection");
    let mut inspector = Inspector::attach(&path);
    assert_eq!(inspector.greeting["protocol"], "cenote-inspect");
    assert_eq!(inspector.greeting["version"], 1);
    assert_eq!(inspector.greeting["process"], std::process::id());
    assert_eq!(inspector.greeting["pools"], 1);
    let held = pool.check_out().expect("a connection");
    let line = line!() - 1;
    let waiting = pool.clone();
    let waiter = thread::spawn(move || waiting.check_out().expect("its turn").id());
    until(|| pool.snapshot().waiting == 1);

    let shown = inspector.pool();
    assert_eq!(
        (&shown["inUse"], &shown["waiting"], &shown["queued"]),
        (&2.into(), &1.into(), &1.into())
    );
    assert_eq!(shown["maxPoolSize"], 2);
    assert_eq!(shown["address"], "db.example.com:27017");
    assert!(shown["longestWaitMS"].as_f64().expect("a number") >= 0.0);
    let connections = shown["connections"].as_array().expect("a list");
    let [first, second] = &connections[..] else { panic!("{connections:?}") };
    assert_eq!((&first["connection"], &first["state"]), (&early.id().into(), &"inUse".into()));
    assert_eq!((&first["place"], &first["exact"]), (&Value::Null, &false.into()));
    assert_eq!(second["connection"], held.id());
    assert_eq!(second["exact"], true);
    let place = second["place"].as_str().expect("known");
    assert!(place.contains(&format!("inspection.rs:{line}:")), "{place}");
    let [request] = &shown["requests"].as_array().expect("a list")[..] else { panic!("{shown}") };
    assert_eq!((&request["request"], &request["waitsFor"]), (&3.into(), &"connection".into()));
    assert_eq!((&request["deadlineInMS"], &request["exact"]), (&Value::Null, &true.into()));

    drop(held);
    assert_eq!(waiter.join().expect("no panic"), 2);
    let held = pool.check_out().expect("a connection");
    drop(inspector);
    // A request that had to wait is known by its number.
    let mut inspector = Inspector::attach(&path);
    let waiting = pool.clone();
    let waiter = thread::spawn(move || waiting.check_out().expect("its turn"));
    until(|| pool.snapshot().waiting == 1);
    drop(held);
    let taken = waiter.join().expect("no panic");
    let shown = inspector.pool();
    let connections = shown["connections"].as_array().expect("a list");
    let second = connections.iter().find(|it| it["connection"] == taken.id()).expect("listed");
    assert_eq!(second["request"], 5, "{shown}");
    drop((early, taken));
    pool.close();
}

fn failures_and_the_last_clear_are_counted<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let (path, pool) = held(&folder, |path| {
        builder::<R>(&Gate::open(), at_most(1)).inspect(path).build().expect("a pool")
    });
    pool.ready();
    let held = pool.check_out().expect("a connection");
    let soon = Instant::now() + Duration::from_millis(1);
    pool.check_out_before(soon).expect_err("none comes back");
    let waiting = pool.clone();
    let waiter = thread::spawn(move || waiting.check_out().expect_err("cleared"));
    until(|| pool.snapshot().waiting == 1);
    let mut inspector = Inspector::attach(&path);
    pool.clear(failure(), false);
    waiter.join().expect("no panic");
    // Another one for the same trouble is not reported.
    pool.clear(failure(), false);
    pool.check_out().expect_err("paused");
    let shown = inspector.pool();
    assert_eq!((&shown["status"], &shown["clears"]), (&"paused".into(), &1.into()));
    assert_eq!(
        (&shown["failures"]["timeout"], &shown["failures"]["cleared"]),
        (&1.into(), &2.into())
    );
    let clear = &shown["lastClear"];
    assert_eq!(
        (&clear["requests"], &clear["inUse"], &clear["idle"]),
        (&1.into(), &1.into(), &0.into())
    );
    assert!(clear["cause"].as_str().expect("a text").contains("reset by the test"), "{clear}");
    assert!(clear["agoMS"].as_f64().expect("a number") < PATIENCE.as_secs_f64() * 1e3);
    let last = shown["lastFailure"]["text"].as_str().expect("a text");
    assert!(last.contains("db.example.com"), "{last}");
    drop(held);
}

fn the_socket_is_its_users_and_lasts_as_long_as_the_pool<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let (path, pool) = held(&folder, |path| {
        builder::<R>(&Gate::open(), at_most(1)).inspect(path).build().expect("a pool")
    });
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    let mut inspector = Inspector::attach(&path);
    pool.close();
    assert!(!path.exists());
    let mut rest = Vec::new();
    assert_eq!(inspector.stream.read_to_end(&mut rest).expect("the end"), 0);
    drop(pool);

    // Dropped, not closed; and one whose file another has replaced leaves that alone.
    let build = || builder::<R>(&Gate::open(), at_most(1)).inspect(&path).build().expect("a pool");
    drop(build());
    assert!(!path.exists());
    let pool = build();
    fs::remove_file(&path).expect("it was there");
    File::create(&path).expect("a file of another program");
    drop(pool);
    assert!(path.exists());
}

fn only_the_socket_of_a_process_that_has_ended_is_replaced<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("pool.sock");
    let build = |path: &Path| builder::<R>(&Gate::open(), at_most(1)).inspect(path).build();
    // The file stays when the listener goes.
    drop(UnixListener::bind(&path).expect("a socket"));
    let pool = build(&path).expect("the old one is replaced");
    Inspector::attach(&path);
    let error = build(&path).expect_err("a process listens");
    assert!(matches!(error, BuildError::Inspect(InspectError::InUse(_))), "{error}");
    assert!(error.to_string().contains("already listens on"), "{error}");
    Inspector::attach(&path);
    drop(pool);
    fs::write(&path, "precious").expect("a file");
    let error = build(&path).expect_err("no socket");
    assert!(matches!(error, BuildError::Inspect(InspectError::NotASocket(_))), "{error}");
    assert_eq!(fs::read_to_string(&path).expect("a file"), "precious");
    for wrong in [folder.path().join("absent/pool.sock"), folder.path().join("x".repeat(200))] {
        let error = build(&wrong).expect_err("no such place");
        assert!(matches!(error, BuildError::Inspect(InspectError::Socket { .. })), "{error}");
    }
    let left: Vec<_> = fs::read_dir(&folder).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

fn what_an_inspector_says_wrong_is_answered<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let (path, pool) = held(&folder, |path| {
        builder::<R>(&Gate::open(), at_most(1)).inspect(path).build().expect("a pool")
    });
    let mut inspector = Inspector::attach(&path);
    for (request, part) in [
        ("", "no such request"),
        ("GET / HTTP/1.1", "no such request"),
        ("pool 2", "there is no pool 2"),
        ("pool one", "is not the number of a pool"),
        ("dump 1 relative", "is not the absolute path"),
        ("dump 1 /nowhere", "no flight recorder"),
        ("record 1 /nowhere/at/all", "no trace can be written"),
        ("stop 1", "does not record pool 1"),
    ] {
        let error = inspector.error(request);
        assert!(error.contains(part), "{request:?}: {error}");
    }
    let error = inspector.error(&"x".repeat(9000));
    assert!(error.contains("8192 bytes at most"), "{error}");
    let mut rest = String::new();
    // Closed, with a reset because not all of the request was read.
    assert!(inspector.stream.read_to_string(&mut rest).is_err() || rest.is_empty(), "{rest}");
    let mut inspector = Inspector::attach(&path);
    inspector.stream.get_mut().write_all(b"\xff\xfe\n").expect("it listens");
    assert!(inspector.read()["error"].is_string());
    drop(pool);
}

fn an_inspector_that_does_not_read_stops_nothing<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let (path, pool) = held(&folder, |path| {
        builder::<R>(&Gate::open(), at_most(1)).inspect(path).build().expect("a pool")
    });
    pool.ready();
    let stuck = UnixStream::connect(&path).expect("a socket");
    stuck.set_nonblocking(true).expect("a socket");
    // Until neither side takes any more: the answers fill the socket, then the requests do.
    let is_full = || (&stuck).write(b"pool 1\n").is_err();
    until(|| {
        is_full() && {
            thread::sleep(Duration::from_millis(50));
            is_full()
        }
    });
    for _ in 0..100 {
        drop(pool.check_out().expect("a connection"));
    }
    assert_eq!(Inspector::attach(&path).pool()["inUse"], 0);
    let began = Instant::now();
    pool.close();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

fn no_more_inspectors_than_are_allowed<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let (path, pool) = held(&folder, |path| {
        builder::<R>(&Gate::open(), at_most(1)).inspect(path).build().expect("a pool")
    });
    let mut all: Vec<_> = (0..16).map(|_| Inspector::attach(&path)).collect();
    let refused = Inspector::attach(&path).greeting;
    assert_eq!(refused["error"], "16 inspectors are connected already");
    all.pop();
    until(|| Inspector::attach(&path).greeting["error"].is_null());
    assert_eq!(all[0].pool()["inUse"], 0);
    drop(pool);
}

fn a_dump_and_a_recording_are_written_on_demand<R: TestRuntime>() {
    let folder = tempdir().expect("a folder");
    let (path, pool) = held(&folder, |path| {
        let builder = builder::<R>(&Gate::open(), at_most(1)).inspect(path);
        builder.flight_recorder(64 << 10).build().expect("a pool")
    });
    pool.ready();
    let into = folder.path().join("with a space");
    fs::create_dir(&into).expect("a folder");
    let mut inspector = Inspector::attach(&path);
    let shown = inspector.pool();
    assert_eq!((&shown["flightRecorder"], &shown["recorded"]), (&true.into(), &false.into()));
    drop(pool.check_out().expect("a connection"));
    let file = |answer: &Value| answer["file"].as_str().expect("a file").to_owned();
    let dump = file(&inspector.ask(&format!("dump 1 {}", into.display())));
    assert!(Path::new(&dump).starts_with(&into) && dump.ends_with("-request.bson"), "{dump}");
    assert!(names(&dump).expect("a trace").contains(&"CheckOutRequested"));

    // Twice, the second time until the inspector goes.
    for stops in [true, false] {
        let mut inspector = Inspector::attach(&path);
        let recorded = file(&inspector.ask(&format!("record 1 {}", into.display())));
        assert_eq!(inspector.pool()["recorded"], true);
        let again = inspector.error(&format!("record 1 {}", into.display()));
        assert_eq!(again, "the pool is being recorded already");
        drop(pool.check_out().expect("a connection"));
        let line = line!() - 1;
        if stops {
            assert_eq!(inspector.ask("stop 1")["stopped"], 1);
        }
        drop(inspector);
        let mut other = Inspector::attach(&path);
        until(|| other.pool()["recorded"] == false);
        // Without an answer the file is complete a moment later.
        let began = Instant::now();
        while names(&recorded).unwrap_or_default() != ["CheckOutRequested", "CheckedIn"] {
            assert!(began.elapsed() < PATIENCE, "{:?}", names(&recorded));
        }
        // The second time nothing was called anywhere else between.
        let place = first_place(&recorded).expect("the place of the check-out");
        assert!(place.contains(&format!("inspection.rs:{line}:")), "{place}");
    }
    pool.close();
}

/// Where the first check-out of a trace was called.
fn first_place(path: &str) -> Option<String> {
    let mut replay = Replay::new(File::open(path).expect("a file")).expect("a trace");
    let step = replay.step(&mut |_| {}).expect("a step");
    Some(step?.place?.to_string())
}

/// The names of the inputs of a trace.
fn names(path: &str) -> Result<Vec<&'static str>, TraceError> {
    let mut replay = Replay::new(File::open(path).expect("a file"))?;
    let mut names = Vec::new();
    while let Some(step) = replay.step(&mut |_| {})? {
        names.push(step.input.name());
    }
    Ok(names)
}
