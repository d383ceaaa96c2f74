//! `cenote run`, as people and scripts use it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use cenote::command::signals::ignores_hang_up;
use cenote_core::trace::Replay;
use cenote_core::uri::srv::{SrvRecord, TxtRecord};
use cenote_endpoint::{
    Endpoint, ListenOptions, NameServer, ReplicaSet, Role, Server, Settings, Topology, User,
};
use serde_json::Value;

use super::{bad, command, good, refused, text};

/// What a run writes.
const FILES: [&str; 3] = ["--events", "--trace", "--html"];
/// Where they are counted.
const NO_SOCKETS: Option<u64> = if cfg!(target_os = "linux") { Some(0) } else { None };

fn run(arguments: &[&str]) -> Output {
    command(&["run", "--yes"]).args(arguments).output().expect("a child process")
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one object of JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// An address at which nothing listens.
fn nowhere() -> String {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    free.local_addr().expect("a port").to_string()
}

#[test]
fn in_a_pipe_it_is_a_summary_without_escape_codes() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = command(&["run", "--seconds", "3", "--tasks", "20"]);
    let output = run.env("TMPDIR", folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.starts_with("20 tasks, 10 connections, on tokio, to 127.0.0.1:"), "{out}");
    for part in ["check-out wait", "p99.9", "establishment", "judged: every rule kept"] {
        assert!(out.contains(part), "{out}");
    }
    assert!(out.contains("left behind     nothing"), "{out}");
    // A line now and then says how it goes.
    assert!(
        err.lines().any(|line| line.contains("operations  ") && line.contains("ready")),
        "{err}"
    );
    assert!(!out.contains('\x1b') && !err.contains('\x1b') && !err.contains('\r'), "{out}{err}");
    // The endpoint's certificates have gone with it.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn json_is_one_object_and_ops_are_that_many() {
    let output = run(&["--json", "--ops", "300", "--tasks", "8", "--options", "maxPoolSize=3"]);
    let summary = json(&output);
    assert_eq!(summary["good"], true);
    assert_eq!((&summary["stoppedBy"], &summary["maxPoolSize"]), (&"operations".into(), &3.into()));
    assert_eq!(summary["operations"]["good"], 300);
    for latencies in ["checkOutWait", "operationTime", "establishment"] {
        let latencies = &summary[latencies];
        let [p50, p99, p999, max] =
            ["p50MS", "p99MS", "p999MS", "maxMS"].map(|name| latencies[name].as_f64().unwrap());
        assert!(0.0 < p50 && p50 <= p99 && p99 <= p999 && p999 <= max, "{latencies}");
    }
    assert_eq!(summary["checkOutWait"]["count"], 300);
    assert!((1..=3).contains(&number(&summary["connections"]["created"])), "{summary}");
    assert_eq!(summary["left"]["sockets"].as_u64(), NO_SOCKETS);
}

/// The same summary, of threads and without a runtime.
#[test]
fn on_mio_it_is_the_same() {
    let summary = json(&run(&["--shell", "mio", "--json", "--ops", "300", "--tasks", "8"]));
    let on_tokio = json(&run(&["--json", "--ops", "20", "--tasks", "8"]));
    let keys =
        |summary: &Value| -> Vec<String> { summary.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys(&summary), keys(&on_tokio));
    assert_eq!((&summary["shell"], &summary["good"]), (&"mio".into(), &true.into()));
    assert_eq!(summary["operations"]["good"], 300);
    assert_eq!(summary["checkOutWait"]["count"], 300);
    let summary =
        json(&run(&["--shell", "mio", "--chaos", "--seconds", "4", "--tasks", "16", "--json"]));
    let restart = &summary["troubles"][0];
    assert!(number(&restart["failed"]) > 0, "{restart}");
    assert!(restart["goodAgainMS"].as_f64() > restart["lastedMS"].as_f64(), "{restart}");
    expect_no_growth(&summary);
}

#[test]
fn the_file_of_events_can_be_judged_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("the events.jsonl");
    let path = path.to_str().unwrap();
    let output = run(&["--ops", "200", "--events", path]);
    let out = text(&output.stdout);
    // By the command that the summary names.
    let look = out.lines().find_map(|line| line.strip_prefix("look")).expect("a command");
    let checked = Command::new("sh").args(["-c", look.trim()]).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    let says = text(&checked.stdout);
    assert!(says.contains("200 check-outs: no rule is broken"), "{says}");
    // The same that were judged as they came.
    let events = fs::read_to_string(path).unwrap().lines().count();
    let judged: u64 = says.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(u64::try_from(events).unwrap(), judged);
}

#[test]
fn what_happened_can_be_replayed_and_looked_at() {
    for shell in ["tokio", "mio"] {
        what_happened_on(shell);
    }
}

fn what_happened_on(shell: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let [trace, page] =
        ["the trace.bson", "page.html"].map(|name| folder.path().join(name).display().to_string());
    let arguments = ["--chaos", "--seconds", "3", "--tasks", "16", "--shell", shell];
    let files = ["--trace", &trace, "--html", &page];
    let output = run(&[&arguments[..], &files].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let out = text(&output.stdout);
    assert!(out.contains("pool cleared") && out.contains("steps, for a browser"), "{out}");
    // By the command that the summary names: status 0 is that every step goes as it went.
    let look = out.lines().find_map(|line| line.strip_prefix("look")).expect("a command");
    let replayed = Command::new("sh").args(["-c", look.trim()]).output().expect("a child process");
    assert_eq!(replayed.status.code(), Some(0), "{replayed:?}");
    let says = text(&replayed.stdout);
    assert!(says.starts_with("trace ") && says.contains("\nclears "), "{says}");
    // Where the time of connecting goes, of all connections and of one.
    assert!(says.contains("\nconnecting connect "), "{says}");
    let one = ["replay", &trace, "--connection", "1"];
    assert!(good(&one).contains("  c1: TLS handshake\n"));
    let objects = good(&[&one[..], &["--json"]].concat());
    assert!(objects.contains(r#""connectionId":1,"stage":"TLS handshake""#), "{objects}");
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.contains("127.0.0.1:"), "a page");
}

/// Without `tlsCAFile`, exactly the operating system's authorities are trusted.
// Reports lakekeeper#438: the operating system's authorities are not trusted.
#[test]
fn system_roots_are_trusted() {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::with_tls()).unwrap();
    let authority = endpoint.certificates().expect("TLS").ca_file();
    let strangers = Endpoint::start(Settings::default(), ListenOptions::with_tls()).unwrap();
    let stranger = strangers.certificates().expect("TLS").ca_file();
    let uri = format!("mongodb://{}/?tls=true", endpoint.address());
    for shell in ["tokio", "mio"] {
        let arguments =
            [uri.as_str(), "--yes", "--json", "--ops", "5", "--seconds", "5", "--shell", shell];
        let run =
            |roots| command(&["run"]).args(arguments).env("SSL_CERT_FILE", roots).output().unwrap();
        assert_eq!(json(&run(&authority))["operations"]["good"], 5);
        let refused = run(&stranger);
        assert_ne!(refused.status.code(), Some(0), "{refused:?}");
        let told = text(&refused.stdout) + &text(&refused.stderr);
        assert!(told.contains("TLS verification"), "{told}");
    }
}

/// Not even in what a server says that repeats them.
#[test]
fn a_trace_holds_no_credential_and_nothing_that_was_sent() {
    let users = vec![User::new("somebody", "hunter2hunter2")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for shell in ["tokio", "mio"] {
        let trace = folder.path().join(shell);
        let path = trace.to_str().unwrap();
        json(&run(&[&endpoint.uri(), "--json", "--ops", "50", "--trace", path, "--shell", shell]));
        let bytes = fs::read(&trace).unwrap();
        let holds = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(holds("cenote-trace") && holds("127.0.0.1"), "it is a trace");
        for secret in ["hunter2", "somebody", "ping", "sasl", "$db"] {
            assert!(!holds(secret), "{shell}: {secret}");
        }
    }
}

#[test]
fn a_page_alone_leaves_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html").display().to_string();
    for shell in ["tokio", "mio"] {
        let arguments = ["--ops", "50", "--html", &page, "--json", "--shell", shell];
        let mut run = command(&["run"]);
        run.args(arguments);
        let summary = json(&run.env("TMPDIR", folder.path()).output().unwrap());
        let recorded = &summary["recorded"];
        assert_eq!((&recorded["page"], &recorded["trace"]), (&page.as_str().into(), &Value::Null));
        assert!(number(&recorded["steps"]) >= 100, "{summary}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

/// Nor is anything lost that was there.
#[test]
fn a_server_is_not_loaded_without_permission() {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::default()).unwrap();
    let uri = format!("mongodb://app:pencil@{}/?authMechanism=PLAIN", endpoint.address());
    for (limit, until) in [(["--seconds", "2"], "for 2s"), (["--ops", "7"], "until 7 are done")] {
        let arguments = [&[uri.as_str(), "--tasks", "3"][..], &limit].concat();
        let output = command(&["run"]).args(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let expected = format!(
            "cenote: not begun: 3 tasks would run as many operations as {} can serve, {until}; --yes \
             does so without asking\n",
            endpoint.address()
        );
        assert_eq!(text(&output.stderr), expected);
    }
}

/// `script` gives it a terminal.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_is_asked_before_a_server_is_loaded() {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::default()).unwrap();
    let program = env!("CARGO_BIN_EXE_cenote");
    let command = format!("{program} run --json --ops 5 mongodb://{}", endpoint.address());
    for (answer, good) in [("y\n", true), ("\n", false)] {
        let mut child = Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let shown = text(&output.stdout);
        assert!(shown.contains("this is a load generator: 64 tasks would run as many"), "{shown}");
        assert_eq!(output.status.success(), good, "{shown}");
        assert_eq!(shown.contains("not begun: "), !good, "{shown}");
    }
}

#[test]
fn a_run_that_does_not_begin_leaves_no_file() {
    let unreachable = format!("mongodb://{}", nowhere());
    let folder = tempfile::tempdir().unwrap();
    let [new, old] = ["new", "old"].map(|name| folder.path().join(name));
    fs::write(&old, "of yesterday").unwrap();
    for shell in ["tokio", "mio"] {
        for (option, file) in FILES.into_iter().flat_map(|option| [(option, &new), (option, &old)])
        {
            let output = run(&[&unreachable, "--shell", shell, option, file.to_str().unwrap()]);
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            assert!(!new.exists(), "{option}");
            assert_eq!(fs::read_to_string(&old).unwrap(), "of yesterday", "{option}");
        }
    }
}

#[test]
fn files_that_cannot_be_written_are_told_before_the_work_begins() {
    for (option, shell) in FILES.into_iter().flat_map(|option| [(option, "tokio"), (option, "mio")])
    {
        let arguments = ["run", option, "/nowhere/at/all", "--seconds", "600", "--shell", shell];
        refused(&arguments, 2, "/nowhere/at/all");
    }
}

#[test]
fn chaos_shows_each_loss_and_recovery() {
    let output = run(&["--chaos", "--seconds", "4", "--tasks", "16", "--json"]);
    let summary = json(&output);
    let troubles = summary["troubles"].as_array().unwrap();
    assert!(!troubles.is_empty(), "{summary}");
    let restart = &troubles[0];
    assert_eq!(restart["trouble"], "restart");
    assert!(number(&restart["failed"]) > 0, "{restart}");
    let time = |name: &str| restart[name].as_f64().unwrap_or_else(|| panic!("{name}: {restart}"));
    assert!(time("clearedMS") <= time("readyMS"), "{restart}");
    // While connections were refused, no operation succeeded.
    assert!(time("lastedMS") <= time("goodAgainMS"), "{restart}");
    assert!(number(&summary["connections"]["poolCleared"]) > 0);
    assert!(number(&summary["operations"]["good"]) > 0);
    assert!(troubles.iter().any(|it| it["trouble"] == "reset of all"), "{summary}");
    let failures: Vec<_> = summary["failures"].as_object().unwrap().keys().collect();
    assert!(failures.iter().any(|it| it.contains("reset by peer")), "{failures:?}");
    expect_no_growth(&summary);
    // Progress shows it while it happens.
    let told = text(&output.stderr);
    assert!(told.contains("trouble: restart") && told.contains("good again after"), "{told}");
}

/// As far as the hostile texts: the faults come one after the other.
#[test]
fn chaos_pauses_the_client_ends_idle_connections_and_lies() {
    let options = "maxPoolSize=10&connectTimeoutMS=2000";
    let arguments = |shell| {
        ["--chaos", "--seconds", "40", "--tasks", "16", "--options", options, "--shell", shell]
    };
    let [json_of_tokio, text_of_mio] = thread::scope(|scope| {
        let on_tokio = scope.spawn(|| run(&[&arguments("tokio")[..], &["--json"]].concat()));
        let on_mio = scope.spawn(|| run(&arguments("mio")));
        [on_tokio, on_mio].map(|run| run.join().expect("no panic"))
    });

    let summary = json(&json_of_tokio);
    assert_eq!(summary["operations"]["foreignReplies"], 0);
    let incident = |name: &str| {
        let troubles = summary["troubles"].as_array().expect("troubles");
        let found = troubles.iter().find(|it| it["trouble"] == name);
        found.unwrap_or_else(|| panic!("{name}: {summary}"))
    };
    let pause = incident("the client is paused");
    assert!(number(&pause["hits"]) == 1 && pause["lastedMS"].as_f64() > Some(2000.0), "{pause}");
    for ending in ["FIN", "RST", "close_notify", "unasked reply"] {
        let it = incident(&format!("idle: {ending}"));
        let [hits, closed] = ["hits", "closed"].map(|count| number(&it[count]));
        assert!(closed > 0 && closed <= hits && number(&it["failed"]) == 0, "{it}");
        assert_eq!(it["clearedMS"], Value::Null, "{it}");
    }
    let crossed = incident("crossed replies");
    assert!(number(&crossed["hits"]) > 0 && number(&crossed["refused"]) > 0, "{crossed}");
    let hostile = incident("hostile texts");
    assert!(number(&hostile["hits"]) > 0 && number(&hostile["failed"]) > 0, "{hostile}");
    let failures = summary["failures"].as_object().expect("failures");
    // A text of 64 KiB is cut before its code.
    let is_hostile = |reason: &String| reason.contains("(code 8, ") || reason.contains("xxxxxxxx");
    assert!(failures.keys().any(is_hostile), "{summary}");
    expect_no_growth(&summary);

    assert_eq!(text_of_mio.status.code(), Some(0), "{text_of_mio:?}");
    let (out, err) = (text(&text_of_mio.stdout), text(&text_of_mio.stderr));
    for name in ["the client is paused", "idle: FIN", "crossed replies", "hostile texts"] {
        assert!(out.contains(name), "{out}");
    }
    let is_control = |letter: char| letter != '\n' && letter.is_control();
    assert!(!out.contains(is_control) && !err.contains(is_control), "{out}{err}");
}

// WQ-02, PS-22
#[test]
fn a_thousand_callers_of_which_some_give_up_leave_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    thread::scope(|scope| {
        for shell in ["tokio", "mio"] {
            let trace = folder.path().join(shell);
            scope.spawn(move || some_of_a_thousand_give_up(shell, &trace));
        }
    });
}

fn some_of_a_thousand_give_up(shell: &str, trace: &Path) {
    let options = "maxPoolSize=50&minPoolSize=2&maxConnecting=4&maxIdleTimeMS=500&waitQueueTimeoutMS=3000&\
                   compressors=zstd";
    let arguments = ["--chaos", "--give-up", "8", "--seconds", "4", "--tasks", "1000"];
    let output = ["--shell", shell, "--trace", trace.to_str().expect("UTF-8"), "--json"];
    let summary = json(&run(&[&arguments[..], &["--options", options], &output].concat()));
    let [check_outs, operations] = ["checkOuts", "operations"].map(|of| &summary[of]);
    for counts in [check_outs, operations] {
        assert!(number(&counts["givenUp"]) > 0, "{summary}");
    }
    assert!(number(&check_outs["failed"]) > 0, "{summary}");
    expect_no_growth(&summary);

    // All of it was recorded, and goes the same way without sockets, threads and faults.
    let mut replay = Replay::new(fs::File::open(trace).expect("a trace")).expect("a trace");
    let mut lost = 0;
    while let Some(step) = replay.step(&mut |_| {}).unwrap_or_else(|error| panic!("{error}")) {
        lost += step.lost_before.unwrap_or(0);
    }
    assert_eq!((lost, replay.pool().snapshot().total), (0, 0));
    assert!(replay.steps() > 2 * number(&check_outs["delivered"]), "{} steps", replay.steps());
}

/// As the operating system counts, where it does.
fn expect_no_growth(summary: &Value) {
    let growth = &summary["growth"];
    if growth.is_null() {
        return assert_ne!(std::env::consts::OS, "linux", "{summary}");
    }
    for what in ["descriptors", "threads"] {
        let [before, after] = ["before", "after"].map(|when| number(&growth[when][what]));
        assert!(after <= before && before > 0, "{what}: {growth}");
    }
    assert!(number(&growth["memoryBytes"]) > 1 << 20, "{growth}");
    assert!(number(&growth["memoryWarmBytes"]) > 1 << 20, "{growth}");
}

#[test]
fn signals_stop_it_with_a_summary_and_nothing_left() {
    let hang_up = if ignores_hang_up() { "-TERM" } else { "-HUP" };
    // A second signal at once does not count working tasks as hanging.
    for signals in [&["-INT"][..], &["-TERM"], &[hang_up], &["-INT", "-TERM"]] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = command(&["run", "--seconds", "600", "--json"])
            .env("TMPDIR", folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It says so when it has begun, and how it goes when something has been done.
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(" a second  ")), "progress");
        for signal in signals {
            let killed = Command::new("kill").args([*signal, &child.id().to_string()]).status();
            assert!(killed.unwrap().success());
        }
        let mut out = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let summary: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((&summary["stoppedBy"], &summary["good"]), (&"signal".into(), &true.into()));
        assert!(number(&summary["operations"]["good"]) > 0, "{summary}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_server_elsewhere_is_a_connection_string() {
    let users = vec![User::new("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::with_tls()).unwrap();
    let uri = format!("{}&maxPoolSize=2&minPoolSize=1", endpoint.uri());
    let summary = json(&run(&[&uri, "--json", "--ops", "100"]));
    assert_eq!((&summary["embedded"], &summary["maxPoolSize"]), (&false.into(), &2.into()));
    assert_eq!(summary["operations"]["good"], 100);
    endpoint.with(|server, _| assert!(server.statistics().commands["ping"] > 100));
}

/// As with a replica set in a container, whose port is known outside by another name.
#[test]
fn a_member_that_has_another_name_in_its_replica_set_is_loaded() {
    let name = "db.internal:27017".to_owned();
    let set =
        ReplicaSet { hosts: vec![name.clone()], me: Some(name), ..ReplicaSet::primary("rs0") };
    let settings = Settings { topology: Topology::ReplicaSet(set), ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).unwrap();
    for shell in ["tokio", "mio"] {
        for options in ["", "?replicaSet=rs0"] {
            let uri = format!("mongodb://{}/{options}", endpoint.address());
            let summary = json(&run(&[&uri, "--shell", shell, "--json", "--ops", "100"]));
            assert_eq!(summary["operations"]["good"], 100, "{summary}");
        }
    }
}

/// Of several hosts, and of one with `directConnection=false`, the client finds the whole set and loads all of it.
#[test]
fn a_replica_set_is_found_and_each_pool_is_shown() {
    let set = replica_set();
    let hosts = set.each_ref().map(|member| member.address().to_string());
    for shell in ["tokio", "mio"] {
        for uri in [
            format!("mongodb://{},{}/?maxPoolSize=3&localThresholdMS=60000", hosts[1], hosts[0]),
            format!(
                "mongodb://{}/?maxPoolSize=3&localThresholdMS=60000&directConnection=false",
                hosts[2]
            ),
            // The first one does not answer, and is no member.
            format!("mongodb://127.0.0.1:1,{}/?maxPoolSize=3&localThresholdMS=60000", hosts[0]),
        ] {
            let run = |more: &[&str]| {
                run(&[&[uri.as_str(), "--shell", shell, "--ops", "600", "--tasks", "12"], more]
                    .concat())
            };
            let summary = json(&run(&["--json"]));
            assert_eq!(summary["operations"]["good"], 600, "{summary}");
            let deployment = &summary["deployment"];
            assert_eq!(deployment["kind"], "ReplicaSetWithPrimary", "{summary}");
            assert_eq!(deployment["setName"], "rs0", "{summary}");
            let servers = deployment["servers"].as_array().expect("three");
            let mut found: Vec<_> = servers
                .iter()
                .map(|server| {
                    assert!((1..=3).contains(&number(&server["connections"])), "{summary}");
                    assert_eq!(number(&server["inUse"]), 0, "{summary}");
                    [&server["address"], &server["kind"]].map(|it| it.as_str().expect("a text"))
                })
                .collect();
            found.sort_by_key(|[address, _]| hosts.iter().position(|host| host == address));
            let kinds = ["RSPrimary", "RSSecondary", "RSSecondary"];
            let expected: Vec<_> = hosts.iter().zip(kinds).map(|(it, kind)| [it, kind]).collect();
            assert_eq!(found, expected);
            assert_eq!(summary["left"]["sockets"].as_u64(), NO_SOCKETS);

            let output = run(&[]);
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            assert!(out.contains("12 tasks, 3 connections to each server, on"), "{out}");
            assert!(out.contains("\ntopology        ReplicaSetWithPrimary rs0\n"), "{out}");
            assert!(!out.contains("--html"), "it would be refused: {out}");
            assert!(err.contains("found ReplicaSetWithPrimary rs0: "), "{err}");
            for (host, kind) in hosts.iter().zip(kinds) {
                assert!(err.contains(&format!("{host}: {kind} of rs0")), "{err}");
                let line =
                    out.lines().find(|line| line.contains(&format!("  {host}: {kind} of rs0")));
                assert!(line.is_some_and(|line| line.contains("[ready ")), "{out}");
            }
        }
    }
    let uri = format!("mongodb://{},{}", hosts[0], hosts[1]);
    let output = run(&[&uri, "--seconds", "3", "--tasks", "2"]);
    let err = text(&output.stderr);
    let line = err.lines().find(|line| line.contains(" operations  "));
    let is_shown = |line: &str| hosts.iter().all(|host| line.contains(&format!("{host} ready, ")));
    assert!(line.is_some_and(is_shown), "{err}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.html");
    let output = run(&[&uri, "--html", file.to_str().unwrap()]);
    let expected = format!(
        "cenote: --html is about one pool, and a client of {}, {} may have several: name one host in the URI, without \
         directConnection=false\n",
        hosts[0], hosts[1]
    );
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), expected));
    assert!(!file.exists());
}

/// Which member stepped down, which callers waited, and which member was elected.
#[test]
fn a_failover_is_recorded_as_one_story() {
    for shell in ["tokio", "mio"] {
        let set = replica_set();
        let [a, b, _] = set.each_ref().map(|member| member.address().to_string());
        let folder = tempfile::tempdir().unwrap();
        let traces = folder.path().join("traces");
        let uri = format!("mongodb://{a}/?directConnection=false&readPreference=primary");
        let mut child = Command::new(env!("CARGO_BIN_EXE_cenote"))
            .args(["run", &uri, "--yes", "--shell", shell, "--seconds", "3", "--tasks", "4"])
            .args(["--trace", traces.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let mut told = || lines.next().expect("it goes on").expect("a text");
        while !told().contains(" at work on ") {}
        set[0].with(Server::step_down);
        // Four tasks ask for a primary meanwhile.
        thread::sleep(Duration::from_millis(500));
        set[1].with(Server::step_up);
        lines.for_each(drop);
        assert!(child.wait().expect("its end").success());

        let story = good(&["replay", traces.to_str().unwrap()]);
        let story = story.split_once("\n\n").expect("a line for each trace, and the story").1;
        let events = [
            format!("{a}: RSPrimary -> RSSecondary of rs0"),
            format!("{b}: RSSecondary -> RSPrimary of rs0"),
            " for a member for primary waited ".to_owned(),
            format!(" for {b}\n"),
        ];
        let rest = events
            .iter()
            .try_fold(story, |rest, event| rest.split_once(event.as_str()).map(|(_, rest)| rest));
        assert!(rest.is_some(), "{story}");
        let explained = good(&["explain", traces.to_str().unwrap()]);
        assert!(explained.contains("\nwaits      "), "{explained}");
    }
}

/// A primary and two secondaries.
fn replica_set() -> [Endpoint; 3] {
    let set = [Role::Primary, Role::Secondary, Role::Secondary].map(|role| {
        let set = ReplicaSet { role, ..ReplicaSet::primary("rs0") };
        let settings = Settings { topology: Topology::ReplicaSet(set), ..Settings::default() };
        Endpoint::start(settings, ListenOptions::default()).expect("it starts")
    });
    Endpoint::join(&set.each_ref());
    set
}

/// Other users see the arguments of a process.
#[test]
fn a_password_does_not_have_to_be_an_argument() {
    let settings =
        Settings { auth: true, users: vec![User::new("app", "pencil")], ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("uri");
    fs::write(&file, format!("{}\n", endpoint.uri())).unwrap();
    let file = file.to_str().unwrap();
    let summary = json(&run(&["--uri-file", file, "--json", "--ops", "10"]));
    assert_eq!(summary["operations"]["good"], 10);
    let mut from_input = command(&["run", "--uri-file", "-", "--yes", "--json", "--ops", "10"]);
    from_input.stdin(fs::File::open(file).unwrap());
    assert_eq!(json(&from_input.output().unwrap())["operations"]["good"], 10);
    for (arguments, says) in [
        (&["--uri-file", "/nowhere/uri"][..], "--uri-file: /nowhere/uri: No such file"),
        (&["--uri-file", file, "--chaos"], "--chaos injects faults into the built-in mock server"),
    ] {
        refused(&[&["run"], arguments].concat(), 2, &format!("cenote: {says}"));
    }
    let both = run(&["mongodb://app:pencil@h", "--uri-file", file]);
    assert_eq!(both.status.code(), Some(2));
    assert!(!text(&both.stderr).contains("pencil"), "{both:?}");
}

/// As a shell that outlives its terminal starts it.
#[cfg(target_os = "linux")]
#[test]
fn an_ignored_hang_up_stays_ignored() {
    let binary = env!("CARGO_BIN_EXE_cenote");
    let script = format!("trap '' HUP; exec {binary} run --seconds 600 --json");
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut progress = || lines.any(|line| line.unwrap().contains(" a second  "));
    assert!(progress());
    let kill = |signal: &str| {
        let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(status.unwrap().success());
    };
    kill("-HUP");
    assert!(progress() && progress(), "it goes on");
    kill("-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_cannot_be_done_is_2_with_one_line() {
    let unreachable = format!("mongodb://u:secret@{}", nowhere());
    for (arguments, says) in [
        (&["nonsense"][..], "the connection string does not begin with `mongodb://`"),
        (&["mongodb://h", "--chaos"], "--chaos injects faults into the built-in mock server"),
        (
            &["mongodb://h", "--options", "maxPoolSize=1"],
            "--options is for the built-in mock server",
        ),
        (
            &["--options", "maxPoolSiz=1"],
            "--options: maxPoolSiz: no such option, did you mean maxPoolSize?",
        ),
        (&["--options", "maxPoolSize=few"], "--options: maxPoolSize: the value is not"),
        (&["--options", "minPoolSize=9&maxPoolSize=3"], "minPoolSize is 9 but maxPoolSize is 3"),
        (&[&unreachable], "127.0.0.1:"),
        (&["--events", "/nowhere/events.jsonl"], "/nowhere/events.jsonl: No such file"),
        (&["--events", "one", "--trace", "./one"], "--events and --trace are one file"),
        (
            &["--shell", "mio", "--tasks", "10001"],
            "--tasks 10001: on mio each is a thread, at most",
        ),
        (
            &["mongodb://a,b", "--give-up", "8"],
            "--give-up is about one pool, and a client of a:27017",
        ),
        (&["--give-up", "0"], "invalid value '0' for '--give-up <N>': a whole number above 0"),
        (&["--ops", "0"], "invalid value '0' for '--ops <K>': a whole number above 0"),
    ] {
        let output = run(arguments);
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
        assert!(error.starts_with(&format!("cenote: {says}")), "{error}");
        assert!(output.stdout.is_empty() && !error.contains("secret"), "{output:?}");
    }
    for arguments in [
        ["--tasks", "0"],
        ["--tasks", "100001"],
        ["--seconds", "-1"],
        ["--seconds", "1e300"],
        ["--shell", "none"],
    ] {
        assert_eq!(run(&arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_shown_with_advice() {
    let nowhere = nowhere();
    let users = vec![User::new("app", "pencil")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let plain = Endpoint::start(settings.clone(), ListenOptions::default()).unwrap();
    let tls = Endpoint::start(settings, ListenOptions::with_tls()).unwrap();
    let web = web_server();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_at = silent.local_addr().expect("bound");
    let credentials = "(check user, password, authSource and authMechanism)";
    for (uri, advice) in [
        (format!("mongodb://{nowhere}"), "(check host and port, and whether the server runs)"),
        ("mongodb://db.invalid".to_owned(), "(check the host name and the resolver)"),
        (format!("mongodb://{}", tls.address()), "speaks TLS"),
        (format!("mongodb://{}/?tls=true", plain.address()), "leave tls=true out"),
        (format!("mongodb://{}/?tls=true", tls.address()), "of an authority in tlsCAFile"),
        (format!("mongodb://{web}"), "(check the port"),
        (format!("mongodb://{web}/?tls=true"), "the port speaks no TLS (check the port"),
        (format!("mongodb://app:pencil@{}/?authSource=shop", plain.address()), credentials),
        (format!("mongodb://{}/?authMechanism=MONGODB-X509", plain.address()), credentials),
        (format!("mongodb://app:eraser@{}", plain.address()), credentials),
        (format!("mongodb://{silent_at}/?timeoutMS=100"), "Timed out while"),
    ] {
        let (status, error) = bad(&["run", "--yes", &uri]);
        assert_eq!(status, 2, "{error}");
        assert!(error.contains(" cannot be reached: ") && error.contains(advice), "{error}");
    }
}

#[test]
fn a_server_of_another_set_ends_it_at_once() {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::default()).unwrap();
    let uri = format!("mongodb://{}/?replicaSet=rs1", endpoint.address());
    let output = run(&[&uri]);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains(" cannot be used: ") && error.contains("not to `rs1`"), "{error}");
}

/// Answers whatever comes as a server of HTTP does, and goes with the test.
fn web_server() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("a socket");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a socket");
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    address
}

/// If nothing reads the progress, the summary is not lost.
#[cfg(target_os = "linux")]
#[test]
fn progress_may_get_lost() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut run = command(&["run", "--ops", "50", "--json"]);
    let output = run.stderr(full.try_clone().unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(json(&output)["operations"]["good"], 50);
    let refused = command(&["run", "--bogus"]).stderr(full).status().unwrap();
    assert_eq!(refused.code(), Some(2));
}

/// A device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_fills_up_ends_it_at_once() {
    let output = run(&["--seconds", "600", "--events", "/dev/full"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.lines().last().unwrap().starts_with("cenote: /dev/full: No space"), "{error}");
}

/// `cluster.0.0.1` has the domain `0.0.1`, and 127.0.0.1 is in it.
#[test]
fn the_servers_of_srv_records_are_looked_up() {
    let users = vec![User { database: "shop".to_owned(), ..User::new("app", "pencil") }];
    let settings = Settings { auth: true, users, ..Settings::default() };
    let endpoint = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let names = NameServer::start().expect("a port");
    let port = endpoint.address().port().expect("a port");
    names.set_srv("_mongodb._tcp.cluster.0.0.1", &[SrvRecord::new("127.0.0.1.", port)]);
    names.set_txt("cluster.0.0.1", &[TxtRecord::from("authSource=shop")]);
    let at = names.address().to_string();
    let run = |uri: &str, more: &[&str]| run(&[&[uri, "--name-server", &at], more].concat());

    let uri = "mongodb+srv://app:pencil@cluster.0.0.1/?tls=false";
    for shell in ["tokio", "mio"] {
        let summary = json(&run(uri, &["--json", "--ops", "20", "--shell", shell]));
        assert_eq!(summary["operations"]["good"], 20, "{shell}");
    }
    let nowhere = run("mongodb+srv://app:pencil@nowhere.0.0.1/", &[]);
    let error = text(&nowhere.stderr);
    let expected = "no servers for nowhere.0.0.1: SRV records of _mongodb._tcp.nowhere.0.0.1: the name does not exist";
    assert!(error.contains(expected) && !error.contains("pencil"), "{error}");
    assert_eq!(nowhere.status.code(), Some(2), "{nowhere:?}");
    let asked = command(&["run", uri, "--name-server", &at]).output().expect("a child process");
    assert!(text(&asked.stderr).contains("as the servers of cluster.0.0.1 can serve"), "{asked:?}");
}
