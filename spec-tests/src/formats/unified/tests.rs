use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::format::File;
use super::play_within;
use cenote_conform::Document;

use crate::formats::target::Target;

/// A cursor keeps the only connection, and nothing limits how long one may wait for it.
#[test]
fn a_wait_without_end_comes_to_its_end() {
    let document = json!({
        "description": "a connection is never checked in", "schemaVersion": "1.4",
        "runOnRequirements": [{ "topologies": ["load-balanced"] }],
        "createEntities": [
            { "client": {
                "id": "client", "uriOptions": { "maxPoolSize": 1 },
                "observeEvents": ["connectionCheckedOutEvent"] } },
            { "database": { "id": "database", "client": "client", "databaseName": "zoo" } },
            { "collection": {
                "id": "birds", "database": "database", "collectionName": "birds" } },
        ],
        "initialData": [{
            "databaseName": "zoo", "collectionName": "birds",
            "documents": [{ "_id": 1 }, { "_id": 2 }, { "_id": 3 }] }],
        "tests": [{ "description": "a ping", "operations": [
            { "name": "createFindCursor", "object": "birds", "saveResultAsEntity": "cursor",
              "arguments": { "filter": {}, "batchSize": 1 } },
            { "name": "runCommand", "object": "database",
              "arguments": { "command": { "ping": 1 }, "commandName": "ping" } },
        ] }],
    });
    let file: File = Document::of(Path::new("never.json"), document).parse().unwrap();
    for target in [Target::Tokio, Target::Mio] {
        let test = &file.tests[0];
        let what = play_within(Duration::from_millis(500), &file, test, target).unwrap_err();
        assert!(what.starts_with("the test was still waiting after 500 ms\n"), "{target}: {what}");
    }
}
