//! Files that are almost scenarios: each is refused with file, line and key, in YAML and in JSON.

mod spoiled;

use std::path::PathBuf;
use std::process::Command;

use self::spoiled::{SPOILED, Spoiled};

/// A scenario in both languages, with the same lines.
const YAML: &str = "\
# The first line of the other one is a brace.
version: 1
style: integration
description: a pool is closed
failPoint:
  configureFailPoint: failCommand
  mode: { times: 1 }
  data:
    failCommands: [hello]
    closeConnection: true
poolOptions:
  maxPoolSize: 3
operations:
  - name: ready
  - name: checkOut
    label: c
  - name: checkIn
    connection: c
  - name: close
error:
  type: PoolClosedError
events:
  - type: ConnectionPoolCreated
    options: { maxPoolSize: 3 }
  - type: ConnectionClosed
    reason: error
  - type: ConnectionPoolClosed
ignore:
  - ConnectionCreated
";

const JSON: &str = r#"{
"version": 1,
"style": "integration",
"description": "a pool is closed",
"failPoint": {
  "configureFailPoint": "failCommand",
  "mode": { "times": 1 },
  "data": {
    "failCommands": ["hello"],
    "closeConnection": true } },
"poolOptions": {
  "maxPoolSize": 3 },
"operations": [
  { "name": "ready" },
  { "name": "checkOut",
    "label": "c" },
  { "name": "checkIn",
    "connection": "c" },
  { "name": "close" } ],
"error": {
  "type": "PoolClosedError" },
"events": [
  { "type": "ConnectionPoolCreated",
    "options": { "maxPoolSize": 3 } },
  { "type": "ConnectionClosed",
    "reason": "error" },
  { "type": "ConnectionPoolClosed" } ],
"ignore": [
  "ConnectionCreated" ]
}
"#;

/// What the command says to a file of this name in a folder of this format.
fn refusal(name: &str, format: &str, text: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bad-scenarios").join(format);
    std::fs::create_dir_all(&folder).expect("writable");
    let file = folder.join(name);
    std::fs::write(&file, text).expect("writable");
    let output = Command::new(env!("CARGO_BIN_EXE_cenote"))
        .args(["conform", "--target", "tokio"])
        .arg(&file)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{name}, not refused:\n{text}\n{said}");
    let end = "1 files: 0 played, 0 not applicable, 0 left out, 1 unreadable\n\
               0 passed, 0 failed, 0 skipped\n";
    assert!(said.starts_with("unreadable ") && said.ends_with(end), "{said}");
    said
}

fn replaced(text: &str, (old, new): (&str, &str)) -> String {
    assert!(text.contains(old), "no {old:?}");
    text.replacen(old, new, 1)
}

#[test]
fn every_mistake_is_told_with_file_line_and_key_in_either_language() {
    for (index, Spoiled { yaml, json, line, complaint }) in SPOILED.iter().enumerate() {
        for (name, text) in [
            (format!("{index}.yml"), replaced(YAML, *yaml)),
            (format!("{index}.json"), replaced(JSON, *json)),
        ] {
            let said = refusal(&name, "cmap-format", &text);
            let begin = format!("/{name}:{line}: ");
            assert!(said.contains(&begin), "no {begin:?} in {said}\n{text}");
            assert!(said.contains(complaint), "no {complaint:?} in {said}");
        }
    }
}

/// Tabs, halves of characters and slashes with a stroke before them are JSON, and no YAML.
#[test]
fn lines_are_those_of_any_json() {
    let odd = JSON.replace("  ", "\t").replace("a pool is", "a\\/pool \\ud83d\\ude00 \\\" is \\\\");
    let said = refusal("odd.json", "cmap-format", &odd.replace("\"error\" }", "\"boredom\" }"));
    assert!(said.contains("odd.json:26: not a test file: events.1.reason: "), "{said}");
    let said = refusal("late.json", "cmap-format", &format!("{JSON}\n]"));
    assert!(said.contains("late.json:32: not a JSON document: trailing characters"), "{said}");
}

const UNIFIED: &str = "\
description: a ping
schemaVersion: '1.4'
createEntities:
  - client: { id: client }
  - database: { id: database, client: client, databaseName: zoo }
tests:
  - description: a ping
    operations:
      - name: runCommand
        object: database
        arguments:
          command: { ping: 1 }
          commandName: ping
        expectError:
          errorCode: 1
      - name: failPoint
        object: testRunner
        arguments:
          client: client
          failPoint: {}
    expectEvents:
      - client: client
        eventType: cmap
        events:
          - connectionClosedEvent: { reason: error }
";

#[test]
fn so_it_is_with_unified_files() {
    for (old, new, line, complaint) in [
        ("'1.4'", "'2.0'", 2, "schemaVersion: schema version 2.0 is unknown"),
        ("tests:", "test:", 6, "test: unknown field `test`"),
        ("{ id: client }", "{ id: 3 }", 4, "createEntities.0.client.id: invalid type: integer `3`"),
        ("- client: {", "- pail: {", 4, "createEntities.0: unknown variant `pail`"),
        ("name: runCommand", "name: drop", 9, "tests.0.operations.0.name: unknown variant `drop`"),
        ("object: database", "subject: x", 9, "tests.0.operations.0: missing field `object`"),
        ("object: database", "object: [x]", 10, "tests.0.operations.0.object: invalid type"),
        (
            "object: database",
            "object: database\n        skip: true",
            11,
            "tests.0.operations.0.skip: unknown field `skip`",
        ),
        (
            "commandName: ping",
            "commandname: ping",
            13,
            "tests.0.operations.0.arguments.commandname: unknown field `commandname`",
        ),
        (
            "commandName: ping",
            "commandName: 4",
            13,
            "tests.0.operations.0.arguments.commandName: invalid type: integer `4`",
        ),
        (
            "errorCode: 1",
            "errorCode: one",
            15,
            "tests.0.operations.0.expectError.errorCode: invalid",
        ),
        ("errorCode: 1", "errorKind: 1", 15, "tests.0.operations.0.expectError.errorKind: unknown"),
        (
            "eventType: cmap",
            "eventType: sql",
            23,
            "tests.0.expectEvents.0.eventType: unknown variant",
        ),
        (
            "connectionClosedEvent:",
            "connectionShutEvent:",
            25,
            "tests.0.expectEvents.0.events.0: unknown event `connectionShutEvent`",
        ),
        (
            "reason: error",
            "cause: error",
            25,
            "tests.0.expectEvents.0.events.0: connectionClosedEvent: unknown field `cause`",
        ),
    ] {
        let said = refusal("unified.yml", "load-balancers/tests", &replaced(UNIFIED, (old, new)));
        let expected = format!("/unified.yml:{line}: not a test file: {complaint}");
        assert!(said.contains(&expected), "no {expected:?} in {said}");
    }
}

const LOGGED: &str = "\
version: 1
style: unit
description: nothing is logged
operations: []
log:
  variables: { MONGODB_LOG_ALL: debug }
  messages:
    - level: debug
      component: connection
      message: Connection pool created
      data: { serverPort: 42 }
events: []
";

#[test]
fn mistakes_about_the_log_are_told_with_their_line_too() {
    for (change, line, complaint) in [
        (("MONGODB_LOG_ALL", "MONGODB_LOG"), 6, "log.variables.MONGODB_LOG: unknown variable"),
        (("debug }", "7 }"), 6, "log.variables.MONGODB_LOG_ALL: invalid type: integer `7`"),
        (("  messages:", "  levels: []\n  messages:"), 7, "log.levels: a framework has some"),
        (("level: debug", "level: loud"), 8, "log.messages.0.level: unknown level `loud`"),
        (("component: conn", "component: disconn"), 9, "log.messages.0.component: unknown variant"),
        (("pool created", "pool lost"), 10, "log.messages.0.message: it is unknown, known are"),
        (("serverPort", "port"), 11, "log.messages.0.data.port: unknown key, known are"),
        (("      data", "      date"), 11, "log.messages.0.date: unknown field `date`"),
        (("  messages:", "  message:"), 7, "log.message: unknown field `message`"),
    ] {
        let said = refusal("log.yml", "cmap-format", &replaced(LOGGED, change));
        let expected = format!("/log.yml:{line}: not a test file: {complaint}");
        assert!(said.contains(&expected), "{change:?}: no {expected:?} in {said}");
    }
}
