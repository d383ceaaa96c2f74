//! The command `cenote conform`: its outputs, and what it says to bad input.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::{cenote, command};

fn conform(arguments: &[&str]) -> Output {
    cenote(&[&["conform"], arguments].concat())
}

/// A folder of its own for a test, in which files are told to be of this format.
fn folder(test: &str, format: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("conform").join(test).join(format);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("writable");
    folder
}

/// One with a file that passes.
fn good_folder(test: &str) -> PathBuf {
    let folder = folder(test, "cmap-format");
    std::fs::write(folder.join("good.yml"), SCENARIO).expect("writable");
    folder
}

/// Its status, and what it prints.
fn printed(arguments: &[&str]) -> (Option<i32>, String) {
    let output = conform(arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

const SCENARIO: &str = "version: 1
style: unit
description: a pool is closed
operations:
- name: close
events:
- type: ConnectionPoolCreated
- type: ConnectionPoolClosed
";

#[test]
fn every_report_says_the_same() {
    let folder = good_folder("reports");
    let bad = SCENARIO.replace("PoolClosed", "PoolReady").replace("closed", "closed <&>");
    std::fs::write(folder.join("bad.yaml"), bad).unwrap();
    let junit = folder.join("junit.xml");
    let output = conform(&[text(&folder), "--target", "core", "--json", "--junit", text(&junit)]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!([&report["passed"], &report["failed"], &report["skipped"]], [1, 1, 0]);
    let counts = json!({ "passed": 0, "failed": 1, "notApplicable": 0, "verdict": "failed" });
    let counts = json!({ "core": counts });
    assert_eq!(report["files"][0], json!({ "file": "cmap-format/bad", "targets": counts }));
    assert_eq!(report["tests"][1]["file"], "cmap-format/good");

    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"1\""), "{xml}");
    assert!(xml.contains("a pool is closed &lt;&amp;&gt;"), "{xml}");
}

#[test]
fn bad_files_are_refused_with_file_line_and_key() {
    for (path, content, complaint) in [
        (
            "cmap-format/operation.yml",
            SCENARIO.replace("name: close", "name: reset"),
            "operation.yml:5: not a test file: operations.0.name: unknown variant `reset`",
        ),
        (
            "cmap-format/field.yml",
            SCENARIO.replace("version: 1", "version: 1\nhint: 2"),
            "field.yml:2: not a test file: hint: unknown field `hint`",
        ),
        (
            "cmap-format/event.yml",
            SCENARIO.replace("events:", "ignore:\n- ConnectionLost\nevents:"),
            "event.yml:7: not a test file: ignore.0: unknown event `ConnectionLost`",
        ),
        (
            "cmap-format/label.yml",
            SCENARIO.replace("name: close", "{ name: checkIn, connection: a }"),
            "label.yml:5: not a test file: operations.0: nothing is checked out as a before",
        ),
        (
            "cmap-format/yaml.yml",
            SCENARIO.replace("name: close", "{ name: close"),
            "yaml.yml:7: not a YAML document",
        ),
        (
            "cmap-format/twice.yml",
            SCENARIO.replace("version: 1", "version: 1\nversion: 1"),
            "twice.yml:2: not a YAML document: duplicated key in mapping",
        ),
        (
            "cmap-format/json.json",
            "{ \"version\": 1,\n ]".to_owned(),
            "json.json:2: not a JSON document: key must be a string (column 2)",
        ),
        (
            "load-balancers/tests/empty.json",
            "{\n\"description\": \"\" }".to_owned(),
            "empty.json:1: not a test file: missing field `schemaVersion`",
        ),
        (
            "surprise/tests/some.json",
            "{}".to_owned(),
            "no format is known for files of this folder",
        ),
        // What would be read as if it had the keys.
        (
            "cmap-format/list.yml",
            "[1, unit, a list, [], ~, {}, [], ~, [], ~, [], {}, ~, []]".to_owned(),
            "list.yml:1: not a test file: it is no object",
        ),
        (
            "server-discovery-and-monitoring/tests/errors/pair.json",
            PHASES.replace("[\"a:27017\", {}]", "[\"a:27017\"]"),
            "pair.json:5: not a test file: phases.0.responses.0: invalid length 1",
        ),
        (
            "server-discovery-and-monitoring/tests/errors/server.json",
            PHASES.replace("[\"a:27017\", {}]", "").replace("mongodb://a", "mongodb://a:0"),
            "server.json:3: not a test file: uri: ",
        ),
        // What would pass, whatever there is.
        ("scenarios/uri/none.yml", "tests: []".to_owned(), "none.yml:1: not a test file: tests: "),
        (
            "load-balancers/tests/none.yml",
            "description: x\nschemaVersion: '1.4'\ntests: []".to_owned(),
            "none.yml:3: not a test file: tests: a file without a test shows nothing",
        ),
        (
            "load-balancers/tests/idle.yml",
            "description: x\nschemaVersion: '1.4'\ntests:\n- description: y\n  operations: []"
                .to_owned(),
            "idle.yml:5: not a test file: tests.0.operations: a test that does nothing",
        ),
        (
            "server-discovery-and-monitoring/tests/errors/none.json",
            "{ \"description\": \"x\",\n\"uri\": \"y\",\n\"phases\": [] }".to_owned(),
            "none.json:3: not a test file: phases: a file without a test shows nothing",
        ),
    ] {
        let (format, name) = path.rsplit_once('/').expect("a folder");
        let folder = folder("bad", format);
        std::fs::write(folder.join(name), content).unwrap();
        let (status, said) = printed(&[text(&folder)]);
        assert_eq!(status, Some(1), "{name}: {said}");
        let lines: Vec<&str> = said.lines().collect();
        let [line, files, tests] = lines[..] else { panic!("{name}: {said}") };
        assert!(line.starts_with("unreadable     "), "{name}: {said}");
        assert!(line.contains(complaint), "{name}: no {complaint:?} in {said}");
        assert_eq!(files, "1 files: 0 played, 0 not applicable, 0 left out, 1 unreadable");
        assert_eq!(tests, "0 passed, 0 failed, 0 skipped");
    }
}

const PHASES: &str = "{
  \"description\": \"x\",
  \"uri\": \"mongodb://a\",
  \"phases\": [ {
    \"responses\": [ [\"a:27017\", {}] ],
    \"outcome\": { \"servers\": {}, \"topologyType\": \"ReplicaSetNoPrimary\", \"setName\": null,
                   \"logicalSessionTimeoutMinutes\": null } } ]
}";

/// What cannot be read, and what is not played, does not keep the rest from being played.
#[test]
fn every_file_is_accounted_for() {
    let tests = folder("whole", "");
    let write = |path: &str, content: &str| {
        let path = tests.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write("connection-monitoring-and-pooling/tests/cmap-format/good.yml", SCENARIO);
    write("connection-monitoring-and-pooling/tests/cmap-format/torn.json", "{");
    write("surprise/tests/find.json", "{}");
    write("read-write-concern/tests/operation/find.json", "{}");
    write("command-logging-and-monitoring/tests/unified/one.json", "{}");
    write("transactions/tests/unified/commit.json", "{}");
    let (status, said) = printed(&[text(&tests), "--target", "core"]);
    assert_eq!(status, Some(1));
    for line in [
        "passed         core  good: a pool is closed\n",
        "cmap-format/torn.json:1: not a JSON document: ",
        "surprise/tests/find.json: no format is known for files of this folder\n",
        "not applicable read-write-concern/tests/operation/find: read and write concerns",
        "not applicable command-logging-and-monitoring/tests/unified/one: events and log messages",
        "left out       transactions/tests/unified/commit: needs ",
    ] {
        assert!(said.contains(line), "no {line:?} in {said}");
    }
    let end = "6 files: 1 played, 2 not applicable, 1 left out, 2 unreadable\n\
               1 passed, 0 failed, 0 skipped\n";
    assert!(said.ends_with(end), "{said}");
}

/// One file is one file, however often it is named, and a link is no way round in circles.
#[cfg(unix)]
#[test]
fn no_file_is_counted_twice() {
    let whole = folder("twice", "");
    let folder = whole.join("cmap-format");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("good.yml"), SCENARIO).unwrap();
    std::os::unix::fs::symlink(".", folder.join("loop")).unwrap();
    let (_, said) = printed(&[text(&whole), text(&folder), text(&whole), "--target", "core"]);
    let end = "1 files: 1 played, 0 not applicable, 0 left out, 0 unreadable\n\
               1 passed, 0 failed, 0 skipped\n";
    assert!(said.ends_with(end), "{said}");

    std::os::unix::fs::symlink("nowhere", folder.join("lost.json")).unwrap();
    std::fs::write(folder.join("good.yaml"), SCENARIO).unwrap();
    std::fs::write(folder.join("odd|name.yml"), SCENARIO).unwrap();
    for name in ["a", "b"] {
        std::fs::create_dir(whole.join(name)).unwrap();
        std::fs::write(whole.join(name).join("x.json"), "{}").unwrap();
    }
    let junit = whole.join("junit.xml");
    let (status, said) = printed(&[text(&whole), "--target", "core", "--junit", text(&junit)]);
    assert_eq!(status, Some(1));
    for part in [
        "lost.json: ",
        "good.yml is there, too\n",
        "odd|name.yml: a name that no table can show\n",
        "a/x.json: no format",
        "b/x.json: no format",
        "5 unreadable\n1 passed",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("tests=\"6\" failures=\"0\" errors=\"5\""), "{xml}");
}

/// A format is told by the folder, wherever the command is run.
#[test]
fn paths_may_be_relative() {
    let folder = good_folder("relative");
    for path in [".", "good.yml"] {
        let mut conform = command(&["conform", path, "--target", "core"]);
        let output = conform.current_dir(&folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.ends_with("1 passed, 0 failed, 0 skipped\n"), "{path}: {said}");
    }
}

#[test]
fn a_folder_without_files_and_what_is_no_file_are_bad_input() {
    let folder = folder("no-files", "cmap-format");
    let output = conform(&[text(&folder)]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    let complaint = "cmap-format: not a test file: there is no test file in it, JSON or YAML";
    assert!(error.contains(complaint), "no {complaint:?} in {error}");
    // A pipe, which would never end.
    let pipe = folder.join("pipe.yml");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let (status, said) = printed(&[text(&folder)]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("pipe.yml: not a regular file"), "{said}");
}

/// Whatever cannot be written is told before anything is played; and no file gives orders to terminals.
#[test]
fn where_reports_go_is_looked_at_first() {
    let folder = folder("unwritable", "cmap-format");
    let pretty = SCENARIO.replace("a pool is closed", "\"a \\e[31mred\\a pool\"");
    std::fs::write(folder.join("good.yml"), pretty).unwrap();
    let junit = folder.join("none/junit.xml");
    let output = conform(&[text(&folder), "--target", "core", "--junit", text(&junit)]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("none/junit.xml: No such file") && output.stdout.is_empty(), "{error}");
    let (_, said) = printed(&[text(&folder), "--target", "core"]);
    assert!(said.contains("good: a  [31mred  pool"), "{said}");
}

#[test]
fn a_server_that_is_not_there_is_bad_input() {
    let folder = good_folder("nobody");
    let uri = "mongodb://127.0.0.1:1/?connectTimeoutMS=1000";
    let output = conform(&[text(&folder), "--uri", uri]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("127.0.0.1:1: connect: "), "{error}");
    assert!(error.contains(" (check host and port, and whether the server runs)"), "{error}");
}
