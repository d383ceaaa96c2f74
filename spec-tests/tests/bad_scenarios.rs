//! Files that are almost scenarios: each is refused with file, line and key, in YAML and in JSON.

use std::path::PathBuf;
use std::process::Command;

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

/// What is replaced by what, in either; and the line, the place and the reason.
struct Spoiled {
    yaml: (&'static str, &'static str),
    json: (&'static str, &'static str),
    line: usize,
    complaint: &'static str,
}

const fn spoiled(
    yaml: (&'static str, &'static str),
    json: (&'static str, &'static str),
    line: usize,
    complaint: &'static str,
) -> Spoiled {
    Spoiled { yaml, json, line, complaint }
}

const SPOILED: &[Spoiled] = &[
    // The file.
    spoiled(
        ("version: 1", "version: 2"),
        ("\"version\": 1", "\"version\": 2"),
        2,
        "version: version 2 is unknown",
    ),
    spoiled(
        ("version: 1", "version: '1'"),
        ("\"version\": 1", "\"version\": \"1\""),
        2,
        "version: invalid type: string \"1\"",
    ),
    spoiled(
        ("style: integration", "style: prose"),
        ("\"integration\"", "\"prose\""),
        3,
        "style: unknown variant `prose`",
    ),
    spoiled(
        ("style: integration", "stile: integration"),
        ("\"style\"", "\"stile\""),
        3,
        "stile: unknown field `stile`",
    ),
    spoiled(
        ("ignore:", "ignored:"),
        ("\"ignore\"", "\"ignored\""),
        28,
        "ignored: unknown field `ignored`",
    ),
    spoiled(
        ("  - ConnectionCreated", "  - ConnectionMade"),
        ("\"ConnectionCreated\"", "\"ConnectionMade\""),
        29,
        "ignore.0: unknown event `ConnectionMade`",
    ),
    spoiled(
        ("  - ConnectionCreated", "  - 3"),
        ("\"ConnectionCreated\"", "3"),
        29,
        "ignore.0: invalid type: integer `3`",
    ),
    spoiled(
        ("style: integration", "style: integration # \nstyle: unit"),
        ("\"style\": \"integration\",", "\"style\": \"integration\",\n\"style\": \"unit\","),
        4,
        "the key `style` is there twice",
    ),
    // The fail point.
    spoiled(
        ("failCommand\n", "failQuery\n"),
        ("\"failCommand\"", "\"failQuery\""),
        6,
        "failPoint.configureFailPoint: unknown variant `failQuery`",
    ),
    spoiled(
        ("{ times: 1 }", "{ times: -1 }"),
        ("\"times\": 1", "\"times\": -1"),
        7,
        "failPoint.mode.times: invalid value: integer `-1`",
    ),
    spoiled(
        ("[hello]", "[ping]"),
        ("[\"hello\"]", "[\"ping\"]"),
        9,
        "failPoint.data.failCommands.0: unknown variant `ping`",
    ),
    spoiled(
        ("closeConnection: true", "closeConnection: yes"),
        ("\"closeConnection\": true", "\"closeConnection\": \"yes\""),
        10,
        "failPoint.data.closeConnection: invalid type: string \"yes\"",
    ),
    // The options.
    spoiled(
        ("  maxPoolSize: 3\n", "  maxPoolSise: 3\n"),
        ("  \"maxPoolSize\": 3 },\n\"op", "  \"maxPoolSise\": 3 },\n\"op"),
        12,
        "poolOptions.maxPoolSise: unknown field `maxPoolSise`",
    ),
    spoiled(
        ("  maxPoolSize: 3\n", "  maxPoolSize: -3\n"),
        ("  \"maxPoolSize\": 3 },\n\"op", "  \"maxPoolSize\": -3 },\n\"op"),
        12,
        "poolOptions.maxPoolSize: invalid value: integer `-3`",
    ),
    // Operations.
    spoiled(
        ("name: close", "name: shut"),
        ("\"name\": \"close\"", "\"name\": \"shut\""),
        19,
        "operations.3.name: unknown variant `shut`",
    ),
    spoiled(
        ("name: close", "label: x"),
        ("\"name\": \"close\"", "\"label\": \"x\""),
        19,
        "operations.3: missing field `name`",
    ),
    spoiled(
        ("    label: c", "    label: 3"),
        ("\"label\": \"c\"", "\"label\": 3"),
        16,
        "operations.1.label: invalid type: integer `3`",
    ),
    spoiled(
        ("    label: c", "    lable: c"),
        ("\"label\": \"c\"", "\"lable\": \"c\""),
        16,
        "operations.1.lable: unknown field `lable`",
    ),
    spoiled(
        ("    label: c", "    thread: 3"),
        ("\"label\": \"c\"", "\"thread\": 3"),
        16,
        "operations.1.thread: `3` does not name a thread",
    ),
    spoiled(
        ("    connection: c", "    connection: d"),
        ("\"connection\": \"c\"", "\"connection\": \"d\""),
        17,
        "operations.2: nothing is checked out as d before",
    ),
    spoiled(
        ("    connection: c", "    "),
        ("\"checkIn\",\n    \"connection\": \"c\"", "\"checkIn\"\n"),
        17,
        "operations.2: missing field `connection`",
    ),
    // What is expected.
    spoiled(
        ("type: PoolClosedError", "type: PoolShutError"),
        ("\"PoolClosedError\"", "\"PoolShutError\""),
        21,
        "error.type: \"PoolShutError\" is unknown, known are PoolClosedError",
    ),
    spoiled(
        ("type: PoolClosedError", "kind: PoolClosedError"),
        ("\"type\": \"PoolClosedError\"", "\"kind\": \"PoolClosedError\""),
        21,
        "error.kind: unknown key, known are type",
    ),
    spoiled(
        ("  - type: ConnectionPoolClosed", "  - type: ConnectionPoolShut"),
        ("\"ConnectionPoolClosed\"", "\"ConnectionPoolShut\""),
        27,
        "events.2.type: unknown event `ConnectionPoolShut`",
    ),
    spoiled(
        ("  - type: ConnectionPoolClosed", "  - connectionId: 1"),
        ("\"type\": \"ConnectionPoolClosed\"", "\"connectionId\": 1"),
        27,
        "events.2: missing field `type`",
    ),
    spoiled(
        ("    reason: error", "    reason: boredom"),
        ("\"reason\": \"error\"", "\"reason\": \"boredom\""),
        26,
        "events.1.reason: \"boredom\" is unknown, known are stale, idle, error, poolClosed",
    ),
    spoiled(
        ("    reason: error", "    duration: 42"),
        ("\"reason\": \"error\"", "\"duration\": 42"),
        26,
        "events.1.duration: unknown key, known are type, address, connectionId, reason",
    ),
    spoiled(
        ("    reason: error", "    connectionId: one"),
        ("\"reason\": \"error\"", "\"connectionId\": \"one\""),
        26,
        "events.1.connectionId: \"one\" is not a number without a fraction",
    ),
    spoiled(
        ("    options: { maxPoolSize: 3 }", "    options: { maxPoolSise: 3 }"),
        ("\"options\": { \"maxPoolSize\": 3 }", "\"options\": { \"maxPoolSise\": 3 }"),
        24,
        "events.0.options.maxPoolSise: unknown key",
    ),
    spoiled(
        ("    options: { maxPoolSize: 3 }", "    options: 3"),
        ("\"options\": { \"maxPoolSize\": 3 }", "\"options\": 3"),
        24,
        "events.0.options: 3 is no object",
    ),
    // No document at all.
    spoiled(
        ("style: integration", "style: [integration"),
        ("\"style\": \"integration\"", "\"style\": [\"integration\""),
        4,
        "document: ",
    ),
];

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
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{name}, not refused:\n{text}\n{said}");
    assert!(output.stdout.is_empty(), "nothing was played");
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
        ("- client: {", "- bucket: {", 4, "createEntities.0: unknown variant `bucket`"),
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
