//! Ways to spoil the scenario.

/// What is replaced by what, in either; and the line, the place and the reason.
pub(crate) struct Spoiled {
    pub(crate) yaml: (&'static str, &'static str),
    pub(crate) json: (&'static str, &'static str),
    pub(crate) line: usize,
    pub(crate) complaint: &'static str,
}

const fn spoiled(
    yaml: (&'static str, &'static str),
    json: (&'static str, &'static str),
    line: usize,
    complaint: &'static str,
) -> Spoiled {
    Spoiled { yaml, json, line, complaint }
}

pub(crate) const SPOILED: &[Spoiled] = &[
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
