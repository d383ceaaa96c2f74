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

const CONNECTION: &str = "\
description: a ping
requirements: [HS-01]
uri: \"mongodb://{server}/\"
connections:
- - hears:
      command: isMaster
      body: { isMaster: 1, client: { $$exists: true } }
      more: true
  - says: { body: { ok: 1 } }
  - hears: { command: ping, body: {}, more: true }
  - says: { body: { ok: 1 }, flags: [moreToCome] }
  - isLeft
operations:
- connect: { gives: { kind: Standalone } }
- command:
    body: { ping: 1 }
    fails: { stage: hello, kind: protocol }
";

#[test]
fn mistakes_about_connections_are_told_with_their_line_too() {
    for (change, line, complaint) in [
        (("requirements: [HS-01]", "rules: [HS-01]"), 2, "rules: unknown field `rules`"),
        (("[HS-01]", "[hello]"), 2, "requirements.0: `hello` is no id of a rule"),
        (("{server}/", "{server}/?w"), 3, "uri: "),
        (("- - hears:", "- - hear:"), 5, "unknown variant `hear`"),
        (("      more: true", "      some: true"), 8, "unknown field `some`"),
        (("$$exists", "$$type"), 7, "client: unknown operator `$$type`"),
        (("body: {}, more: true", "body: { pong: 1 }"), 10, "hears.body: it has no `ping`"),
        (("[moreToCome]", "[more]"), 11, "unknown variant `more`"),
        (("{ ok: 1 } }\n  - hears: {", "{ _id: { $oid: 1 } } }\n  - hears: {"), 9, "says.body: "),
        (
            ("  - isLeft", "  - isLeft\n  - closes"),
            5,
            "1 steps come after the connection is closed",
        ),
        (("kind: Standalone", "sort: Standalone"), 14, "gives.sort: unknown key"),
        (("body: { ping: 1 }", "body: { ping: 1, x: 2 }"), 16, "which of its keys is its name?"),
        (("stage: hello", "stage: later"), 17, "unknown variant `later`"),
        (("fails: {", "gives: {}\n    fails: {"), 15, "it cannot give anything and fail, too"),
        (("- connect:", "- connects:"), 14, "unknown variant `connects`"),
    ] {
        let said = refusal("0.yml", "scenarios/connection", &replaced(CONNECTION, change));
        let begin = format!("/0.yml:{line}: ");
        assert!(said.contains(&begin), "{change:?}: no {begin:?} in {said}");
        assert!(said.contains(complaint), "{change:?}: no {complaint:?} in {said}");
    }
}

const SERVERS: &str = "\
description: two servers
requirements: [OP-12]
notOn:
  core: why
uri: \"mongodb://{server},{server2}/\"
options:
  maxPoolSize: 3
connections:
- - hears: { command: isMaster, body: {}, more: true }
  - isLeft
- [isLeft]
otherServers:
- - - answersAlways:
        hears: { command: isMaster, body: {}, more: true }
        says: { body: { ok: 1 } }
operations:
- connect: {}
- connect: { fasterThan: 0 }
- watch
- isSeen: { server: 2, kind: Mongos }
- clientConnect: { to: { server: 2 } }
- hasTold: { server: 2, type: ConnectionReady, times: 1, with: { connectionId: 1 } }
";

#[test]
fn mistakes_about_several_servers_are_told_with_their_line_too() {
    for (change, line, complaint) in [
        (("core: why", "core: 5"), 4, "notOn.core: invalid type: integer `5`"),
        (("core: why", "moon: why"), 4, "notOn.moon: unknown target, known are core, tokio, mio"),
        (("core: why", "core: ''"), 4, "notOn.core: for each target where it is not played"),
        ((",{server2}", ""), 5, "uri: it does not contain {server2}"),
        (("  maxPoolSize: 3", "  maxPoolSise: 3"), 7, "options.maxPoolSise: unknown field"),
        (("maxPoolSize: 3", "maxConnecting: 0"), 6, "options: maxConnecting is 0"),
        (("answersAlways", "answers"), 13, "otherServers.0.0.0: unknown variant `answers`"),
        (
            (
                "hears: { command: isMaster, body: {}, more: true }\n        says",
                "hears: { command: isMaster, body: {} }\n        says",
            ),
            14,
            "otherServers.0.0.0.answersAlways.hears.body: it has no `isMaster`",
        ),
        (("{ ok: 1 } }", "{ ok: 1 }, hint: 1 }"), 15, "answersAlways.says.hint: unknown field"),
        (
            ("{ ok: 1 } }\n", "{ ok: 1 } }\n    - isLeft\n"),
            13,
            "otherServers.0.0: 1 steps come after the connection is closed",
        ),
        (("fasterThan: 0", "fasterThan: 1"), 18, "connect.fasterThan: operation 1 is no connect"),
        (("fasterThan: 0", "fasterThan: -1"), 18, "connect.fasterThan: invalid value"),
        (("kind: Mongos", "kind: Router"), 20, "isSeen.kind: unknown kind, known are Unknown"),
        (("{ server: 2, kind", "{ server: 3, kind"), 20, "isSeen.server: there is no server 3"),
        (("to: { server: 2 }", "to: { server: 0 }"), 21, "to.server: there is no server 0"),
        (("to: { server: 2 }", "to: { kind: 2 }"), 21, "clientConnect.to: unknown variant `kind`"),
        (("ConnectionReady", "ConnectionLost"), 22, "hasTold.type: unknown event, known are"),
        (("times: 1", "time: 1"), 22, "hasTold.time: unknown field `time`"),
        (("connectionId: 1 }", "connectionId: { $$type: 1 } }"), 22, "unknown operator `$$type`"),
    ] {
        let said = refusal("0.yml", "scenarios/connection", &replaced(SERVERS, change));
        let begin = format!("/0.yml:{line}: ");
        assert!(said.contains(&begin), "{change:?}: no {begin:?} in {said}");
        assert!(said.contains(complaint), "{change:?}: no {complaint:?} in {said}");
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
