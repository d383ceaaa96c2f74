//! `cenote top`, as people and scripts use it.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::tempdir;

use super::{command, text};

/// Longer than a start takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn top(socket: &Path, arguments: &[&str]) -> Output {
    command(&["top"]).arg(socket).args(arguments).output().expect("a child process")
}

/// What is said of a socket that cannot be used.
fn complaint(socket: &Path) -> String {
    let output = top(socket, &["--once"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

/// A run that ends with this.
struct Run(Child);

impl Run {
    /// With more tasks than connections.
    fn start(socket: &Path, shell: &str) -> Self {
        let mut run = command(&["run", "--seconds", "600", "--tasks", "12", "--shell", shell]);
        run.args(["--options", "maxPoolSize=2&waitQueueTimeoutMS=60000", "--inspect"]).arg(socket);
        let run = Self(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process"));
        let began = Instant::now();
        while UnixStream::connect(socket).is_err() {
            assert!(began.elapsed() < PATIENCE, "no socket");
            thread::sleep(Duration::from_millis(20));
        }
        run
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn the_pool_of_a_run(shell: &str) {
    let folder = tempdir().expect("a folder");
    let socket = folder.path().join("pool.sock");
    let _run = Run::start(&socket, shell);
    // Until the tasks are at work.
    let began = Instant::now();
    let (whole, pool) = loop {
        let output = top(&socket, &["--once", "--json", "--interval", "0.2"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let whole: Value = serde_json::from_slice(&output.stdout).expect("one object of JSON");
        let pool = whole["pools"][0].clone();
        let has_begun = pool["perSecond"]["checkOuts"].as_f64() > Some(0.0)
            && pool["waiting"].as_u64() > Some(0)
            && pool["connections"].as_array().is_some_and(|list| !list.is_empty());
        if has_begun {
            break (whole, pool);
        }
        assert!(began.elapsed() < PATIENCE, "{whole}");
    };
    assert!(
        whole["program"].as_str().expect("a text").starts_with(&format!("cenote-{shell} ")),
        "{whole}"
    );
    assert_eq!((&pool["status"], &pool["maxPoolSize"]), (&"ready".into(), &2.into()));
    assert_eq!((&pool["flightRecorder"], &pool["recorded"]), (&true.into(), &false.into()));
    assert!(pool["inUse"].as_u64().expect("a number") <= 2, "{pool}");
    for request in pool["requests"].as_array().expect("a list") {
        assert!(request["request"].as_u64() > Some(0), "{request}");
        assert!(request["waitedMS"].as_f64().expect("a number") < 60_000.0, "{request}");
        assert_eq!(request["exact"], true, "{request}");
    }

    // The same as text, by its number and by its address.
    let output = top(&socket, &["--once", "--interval", "0.1"]);
    let table = text(&output.stdout);
    assert!(table.starts_with("#  pool ") && table.contains("longest wait"), "{table}");
    assert_eq!(table.lines().count(), 2, "{table}");
    let address = pool["address"].as_str().expect("a text");
    for name in ["1", address] {
        let output = top(&socket, &["--once", "--interval", "0.1", "--pool", name]);
        let pool = text(&output.stdout);
        assert!(pool.starts_with(&format!("{address}: ready, generation 0; ")), "{pool}");
        assert!(pool.contains("It has a flight recorder."), "{pool}");
    }
    let output = top(&socket, &["--once", "--pool", "7"]);
    let said = text(&output.stderr);
    assert!(said.contains(&format!("no such pool; it has 1 ({address})")), "{said}");
    // Without a terminal there is no screen.
    let output = top(&socket, &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a terminal"), "{output:?}");
}

#[test]
fn the_pool_of_a_run_on_tokio() {
    the_pool_of_a_run("tokio");
}

#[test]
fn the_pool_of_a_run_on_mio() {
    the_pool_of_a_run("mio");
}

#[test]
fn lines_of_json_end_when_the_process_does() {
    let folder = tempdir().unwrap();
    let socket = folder.path().join("pool.sock");
    let run = Run::start(&socket, "tokio");
    let mut top = command(&["top", "--json", "--interval", "0.1"]);
    let top = top.arg(&socket).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut top = top.expect("a process");
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let line = lines.next().expect("a line").expect("text");
        assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON")["pools"][0]["pool"], 1);
    }
    // One whose reader has seen enough ends.
    let mut other = command(&["top", "--json", "--interval", "0.1"]);
    let mut other = other.arg(&socket).stdout(Stdio::piped()).spawn().expect("a process");
    drop(other.stdout.take());
    assert_eq!(other.wait().expect("it ends").code(), Some(0));
    drop(run);
    while lines.next().is_some() {}
    let output = top.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("has closed the socket"),
        "{output:?}"
    );
    // A killed process leaves its socket behind; the next one replaces it.
    assert!(complaint(&socket).contains("no process listens"));
    let _run = Run::start(&socket, "tokio");
    let began = Instant::now();
    while top_status(&socket) != Some(0) {
        assert!(began.elapsed() < PATIENCE, "the old socket stays");
    }
}

fn top_status(socket: &Path) -> Option<i32> {
    top(socket, &["--once", "--interval", "0.1"]).status.code()
}

#[test]
fn a_socket_that_cannot_be_used_is_explained() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    assert!(complaint(&path("absent")).contains("there is no such socket"));
    assert!(complaint(folder.path()).contains("this is not a socket"));
    fs::write(path("file"), "x").unwrap();
    assert!(complaint(&path("file")).contains("this is not a socket"));
    drop(UnixListener::bind(path("left")).unwrap());
    assert!(complaint(&path("left")).contains("no process listens"));
    assert!(complaint(&path(&"x".repeat(300))).contains("x".repeat(300).as_str()));

    // A server of something else, or of another version, or one that answers with nonsense.
    let says = |name: &str, lines: &[&str]| {
        let listener = UnixListener::bind(path(name)).unwrap();
        let lines: Vec<_> = lines.iter().map(|line| format!("{line}\n")).collect();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a command");
            stream.write_all(lines.concat().as_bytes()).expect("it reads");
            // Until the command hangs up.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        let said = complaint(&path(name));
        server.join().expect("no panic");
        said
    };
    let greeting = |version: u32| {
        format!(
            "{{\"protocol\":\"cenote-inspect\",\"version\":{version},\"program\":\"cenote-tokio 9\"}}"
        )
    };
    let not_cenote = "not a socket of cenote: it says ";
    for (name, lines, expected) in [
        ("http", &["HTTP/1.1 400 Bad Request"][..], &*format!("{not_cenote}\"HTTP/1.1 400")),
        ("json", &["{\"protocol\":\"other\",\"version\":1}"], not_cenote),
        ("bytes", &["\u{1b}[2J\u{202e}"], not_cenote),
        ("new", &[&greeting(2)], "cenote-tokio 9 speaks version 2 of the protocol"),
        ("full", &["{\"error\":\"16 inspectors are here\"}"], "16 inspectors are here"),
        ("odd", &[&greeting(1), "{\"pools\":[{\"pool\":\"one\"}]}"], "an answer cannot be read"),
        ("garbage", &[&greeting(1), "]]"], "it says \"]]\""),
    ] {
        let said = says(name, lines);
        assert!(said.contains(expected) && !said.contains('\u{1b}'), "{said:?}");
    }
}

#[test]
fn another_users_socket_is_forbidden() {
    const NOBODY: u32 = 65534;
    let folder = tempdir().unwrap();
    let path = folder.path().join("pool.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own file");
    };
    mode(&path, 0o000);
    let mut top = command(&["top", "--once"]);
    // The superuser may open every file, so the command is another user's then.
    if fs::metadata(&path).unwrap().uid() == 0 {
        let copy = folder.path().join("cenote");
        fs::copy(env!("CARGO_BIN_EXE_cenote"), &copy).unwrap();
        mode(folder.path(), 0o755);
        mode(&copy, 0o755);
        top = Command::new(copy);
        top.args(["top", "--once"]).uid(NOBODY);
    }
    let output = top.arg(&path).current_dir("/").output().expect("a child process");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("permission denied"), "{output:?}");
}

#[test]
fn a_run_refuses_a_path_that_is_taken() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("pool.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let run = command(&["run", "--seconds", "1", "--inspect"]).arg(&path).output().unwrap();
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    assert!(String::from_utf8_lossy(&run.stderr).contains("already listens on"), "{run:?}");
}
