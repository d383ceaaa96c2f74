//! Documents and cursors, and which connections may use them.

use std::sync::{Arc, Mutex};

use bson::raw::RawArrayBuf;
use bson::{Document, RawDocumentBuf, rawdoc};
use cenote_core::wire::Flags;
use cenote_endpoint::{ConnectionId, Limits, LoadBalanced, ReplicaSet, Role, Settings, Topology};

use crate::server::client::World;

/// A world with so many documents in `test.birds`.
fn with_birds(count: i32) -> (World, ConnectionId) {
    let mut world = World::seeded();
    let id = world.connect();
    if count > 0 {
        let birds: Vec<_> = (0..count).map(|n| rawdoc! { "_id": n, "even": n % 2 == 0 }).collect();
        let reply = insert(&mut world, id, &birds);
        assert_eq!(reply.get_i32("n").ok(), Some(count));
    }
    (world, id)
}

/// Inserts with a document sequence.
fn insert(world: &mut World, id: ConnectionId, documents: &[RawDocumentBuf]) -> Document {
    let command = rawdoc! { "insert": "birds" };
    let (_, bytes) = world.message("test", &command, Flags::NONE, &[("documents", documents)]);
    world.push(id, &bytes);
    world.answer(id).expect("an answer").body
}

fn batch(reply: &Document) -> (Vec<i32>, i64) {
    let cursor = reply.get_document("cursor").expect("a cursor");
    let documents = cursor.get_array("firstBatch").or(cursor.get_array("nextBatch"));
    let id = |it: &bson::Bson| it.as_document().and_then(|it| it.get_i32("_id").ok());
    let ids = documents.expect("a batch").iter().map(|it| id(it).expect("an _id")).collect();
    (ids, cursor.get_i64("id").expect("an id"))
}

fn get_more(id: i64, size: i32) -> RawDocumentBuf {
    rawdoc! { "getMore": id, "collection": "birds", "batchSize": size }
}

#[test]
fn documents_come_back_as_they_were_stored() {
    let (mut world, id) = with_birds(0);
    let documents: RawArrayBuf =
        [rawdoc! { "name": "wren" }, rawdoc! { "_id": "x", "deep": { "a": [1, null] } }]
            .into_iter()
            .collect();
    let reply = world.good(id, "test", &rawdoc! { "insert": "birds", "documents": documents });
    assert_eq!(reply.get_i32("n").unwrap(), 2);
    let reply = world.good(id, "test", &rawdoc! { "find": "birds" });
    let cursor = reply.get_document("cursor").unwrap();
    assert_eq!((cursor.get_str("ns").unwrap(), cursor.get_i64("id").unwrap()), ("test.birds", 0));
    let found = cursor.get_array("firstBatch").unwrap();
    let first = found[0].as_document().unwrap();
    assert_eq!(first.keys().collect::<Vec<_>>(), ["_id", "name"], "an _id comes in front");
    assert!(first.get_object_id("_id").is_ok());
    assert_eq!(found[1], bson::bson!({ "_id": "x", "deep": { "a": [1, null] } }));
}

#[test]
fn a_duplicate_ends_an_ordered_batch_and_not_another() {
    for (ordered, count, errors) in [(true, 1, 1), (false, 2, 2)] {
        let (mut world, id) = with_birds(2);
        let documents: RawArrayBuf =
            [7, 1, 0, 8].map(|n| rawdoc! { "_id": n }).into_iter().collect();
        let command = rawdoc! { "insert": "birds", "ordered": ordered, "documents": documents };
        let reply = world.good(id, "test", &command);
        assert_eq!(reply.get_i32("n").unwrap(), count);
        let write_errors = reply.get_array("writeErrors").unwrap();
        assert_eq!(write_errors.len(), errors);
        let first = write_errors[0].as_document().unwrap();
        assert_eq!(first.get_i32("index").unwrap(), 1);
        assert_eq!(first.get_i32("code").unwrap(), 11000);
        assert!(first.get_str("errmsg").unwrap().contains("test.birds index: _id_"));
    }
}

#[test]
fn a_cursor_goes_on_where_it_was() {
    let (mut world, id) = with_birds(5);
    let reply = world.good(id, "test", &rawdoc! { "find": "birds", "batchSize": 2 });
    let (ids, cursor) = batch(&reply);
    assert_eq!(ids, [0, 1]);
    assert_ne!(cursor, 0);
    let (ids, same) = batch(&world.good(id, "test", &get_more(cursor, 2)));
    assert_eq!((ids, same), (vec![2, 3], cursor));
    assert_eq!(batch(&world.good(id, "test", &get_more(cursor, 2))), (vec![4], 0));
    assert_eq!(world.refused(id, "test", &get_more(cursor, 2)), 43);
}

#[test]
fn limits_skips_and_single_batches_leave_no_cursor() {
    let (mut world, id) = with_birds(150);
    let mut find = |command: RawDocumentBuf| batch(&world.good(id, "test", &command));
    let (ids, cursor) = find(rawdoc! { "find": "birds" });
    assert!(ids.len() == 101 && cursor != 0, "101 by default");
    assert_eq!(
        find(rawdoc! { "find": "birds", "skip": 3, "limit": 2, "batchSize": 2 }),
        (vec![3, 4], 0)
    );
    let single = rawdoc! { "find": "birds", "batchSize": 2, "singleBatch": true };
    assert_eq!(find(single), (vec![0, 1], 0));
    let odd = rawdoc! { "find": "birds", "filter": { "even": false }, "limit": 3 };
    assert_eq!(find(odd), (vec![1, 3, 5], 0));
    assert_eq!(find(rawdoc! { "find": "birds", "filter": { "_id": 77.0 } }), (vec![77], 0));
    assert_eq!(find(rawdoc! { "find": "nothing" }), (vec![], 0));
    let (ids, cursor) = find(rawdoc! { "find": "birds", "batchSize": 0 });
    assert!(ids.is_empty() && cursor != 0);
}

#[test]
fn documents_come_in_the_order_that_is_asked_for() {
    let (mut world, id) = with_birds(5);
    let mut find = |command: RawDocumentBuf| batch(&world.good(id, "test", &command));
    let down = rawdoc! { "find": "birds", "sort": { "_id": -1 }, "skip": 1, "limit": 3 };
    assert_eq!(find(down), (vec![3, 2, 1], 0));
    let both = rawdoc! { "find": "birds", "sort": { "even": -1, "_id": 1 } };
    assert_eq!(find(both), (vec![0, 2, 4, 1, 3], 0));
    let (ids, cursor) =
        find(rawdoc! { "find": "birds", "sort": { "_id": -1, "none": 1 }, "batchSize": 2 });
    assert_eq!(ids, [4, 3]);
    assert_eq!(batch(&world.good(id, "test", &get_more(cursor, 9))), (vec![2, 1, 0], 0));
    insert(&mut world, id, &[rawdoc! { "_id": 9, "even": "perhaps" }]);
    let mixed = rawdoc! { "find": "birds", "sort": { "even": 1 } };
    assert_eq!(world.refused(id, "test", &mixed), 238);
}

#[test]
fn killed_cursors_are_gone() {
    let (mut world, id) = with_birds(5);
    let (_, cursor) = batch(&world.good(id, "test", &rawdoc! { "find": "birds", "batchSize": 2 }));
    let kill = rawdoc! { "killCursors": "birds", "cursors": [cursor, 99_i64] };
    let reply = world.good(id, "test", &kill);
    assert_eq!(reply.get_array("cursorsKilled").unwrap(), &vec![cursor.into()]);
    assert_eq!(reply.get_array("cursorsNotFound").unwrap(), &vec![99_i64.into()]);
    assert_eq!(world.refused(id, "test", &get_more(cursor, 2)), 43);
}

#[test]
fn a_router_does_not_know_the_cursors_of_another() {
    let topology = Topology::LoadBalanced(LoadBalanced { services: 2 });
    let mut world = World::new(Settings { topology, ..Settings::seeded(1) });
    let ids: Vec<_> = (0..3).map(|_| world.connect()).collect();
    insert(&mut world, ids[0], &[rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }, rawdoc! { "_id": 3 }]);
    let find = rawdoc! { "find": "birds", "batchSize": 1 };
    let (_, cursor) = batch(&world.good(ids[0], "test", &find));
    assert_eq!(world.refused(ids[1], "test", &get_more(cursor, 1)), 43);
    assert_eq!(batch(&world.good(ids[2], "test", &get_more(cursor, 1))), (vec![2], cursor));
}

#[test]
fn documents_are_counted_in_both_ways() {
    let (mut world, id) = with_birds(9);
    let command = rawdoc! { "count": "birds", "query": { "even": true } };
    assert_eq!(world.good(id, "test", &command).get_i32("n").unwrap(), 5);
    let count = |filter: RawDocumentBuf| {
        let stages: RawArrayBuf = [
            rawdoc! { "$match": filter },
            rawdoc! { "$skip": 1 },
            rawdoc! { "$group": { "_id": 1, "n": { "$sum": 1 } } },
        ]
        .into_iter()
        .collect();
        rawdoc! { "aggregate": "birds", "pipeline": stages, "cursor": {} }
    };
    let reply = world.good(id, "test", &count(rawdoc! { "even": true }));
    let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    assert_eq!(batch, &vec![bson::bson!({ "_id": 1, "n": 4 })]);
    let reply = world.good(id, "test", &count(rawdoc! { "even": 7 }));
    assert!(reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().is_empty());
    let command = rawdoc! { "aggregate": "birds", "pipeline": [{ "$lookup": {} }], "cursor": {} };
    assert_eq!(world.refused(id, "test", &command), 238);
}

#[test]
fn documents_are_deleted_and_updated() {
    let (mut world, id) = with_birds(4);
    let run = |world: &mut World, name: &str, field: &str, one: RawDocumentBuf| {
        let (_, bytes) = world.message(
            "test",
            &RawDocumentBuf::try_from(&bson::doc! { name: "birds" }).unwrap(),
            Flags::NONE,
            &[(field, &[one])],
        );
        world.push(id, &bytes);
        world.answer(id).unwrap().body
    };
    let one = rawdoc! { "q": { "even": true }, "limit": 1 };
    assert_eq!(run(&mut world, "delete", "deletes", one).get_i32("n").unwrap(), 1);
    let all = rawdoc! { "q": { "even": false }, "u": { "$inc": { "age": 1 } }, "multi": true };
    let reply = run(&mut world, "update", "updates", all);
    assert_eq!((reply.get_i32("n").unwrap(), reply.get_i32("nModified").unwrap()), (2, 2));
    let new = rawdoc! { "q": { "_id": 9, "x": { "$gt": 1 } }, "u": { "$set": { "a": 1 } }, "upsert": true };
    let reply = run(&mut world, "update", "updates", new);
    assert_eq!(reply.get_array("upserted").unwrap(), &vec![bson::bson!({ "index": 0, "_id": 9 })]);
    let found = world.good(id, "test", &rawdoc! { "find": "birds", "filter": { "age": 1 } });
    assert_eq!(batch(&found).0, [1, 3]);
    let found = world.good(id, "test", &rawdoc! { "find": "birds" });
    assert_eq!(batch(&found).0, [1, 2, 3, 9]);
}

#[test]
fn a_document_is_found_and_modified() {
    let (mut world, id) = with_birds(3);
    let modify = |rest: RawDocumentBuf| {
        let mut command = rawdoc! { "findAndModify": "birds", "query": { "even": true } };
        rest.iter().flatten().for_each(|(key, value)| command.append(key, value));
        command
    };
    let reply = world.good(id, "test", &modify(rawdoc! { "update": { "$set": { "age": 1 } } }));
    assert_eq!(reply.get_document("value").unwrap(), &bson::doc! { "_id": 0, "even": true });
    let reply = world.good(id, "test", &modify(rawdoc! { "remove": true }));
    let old = bson::doc! { "_id": 0, "even": true, "age": 1 };
    assert_eq!(reply.get_document("value").unwrap(), &old);
    let found = world.good(id, "test", &rawdoc! { "find": "birds" });
    assert_eq!(batch(&found).0, [1, 2]);
    let none = rawdoc! { "findAndModify": "birds", "query": { "_id": 9 }, "remove": true };
    assert_eq!(world.good(id, "test", &none).get("value"), Some(&bson::Bson::Null));
    let both = modify(rawdoc! { "remove": true, "update": { "even": false } });
    assert_eq!(world.refused(id, "test", &both), 9);
    assert_eq!(world.refused(id, "test", &modify(rawdoc! {})), 9);
    assert_eq!(world.refused(id, "test", &modify(rawdoc! { "remove": true, "new": true })), 238);
}

#[test]
fn values_are_listed_once() {
    let (mut world, id) = with_birds(4);
    let distinct = |key: &str| rawdoc! { "distinct": "birds", "key": key, "query": {} };
    let reply = world.good(id, "test", &distinct("even"));
    assert_eq!(reply.get_array("values").unwrap(), &vec![false.into(), true.into()]);
    let reply = world.good(id, "test", &distinct("age"));
    assert!(reply.get_array("values").unwrap().is_empty());
    assert_eq!(world.refused(id, "test", &distinct("a.b")), 238);
}

#[test]
fn indexes_are_created_and_dropped() {
    let (mut world, id) = with_birds(0);
    let drop = |index: &str| rawdoc! { "dropIndexes": "birds", "index": index };
    assert_eq!(world.refused(id, "test", &drop("*")), 26);
    for name in ["x_1", "y_1", "z_1"] {
        let index = rawdoc! { "name": name, "key": { "x": 1 } };
        world.good(id, "test", &rawdoc! { "createIndexes": "birds", "indexes": [index] });
    }
    for (name, before) in [("y_1", 4), ("*", 3), ("*", 1)] {
        let reply = world.good(id, "test", &drop(name));
        assert_eq!(reply.get_i32("nIndexesWas").ok(), Some(before), "{name}");
    }
    assert_eq!(world.refused(id, "test", &drop("y_1")), 27);
    let reply = world.good(id, "test", &rawdoc! { "listIndexes": "birds" });
    assert_eq!(reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len(), 1);
}

#[test]
fn there_are_no_sessions_to_list() {
    let (mut world, id) = with_birds(1);
    let command =
        rawdoc! { "aggregate": 1, "pipeline": [{ "$listLocalSessions": {} }], "cursor": {} };
    assert_eq!(batch(&world.good(id, "test", &command)), (Vec::new(), 0));
}

#[test]
fn each_command_is_shown_to_the_observer() {
    let (mut world, id) = with_birds(0);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let observed = Arc::clone(&seen);
    world.server.observe_commands(move |command| observed.lock().unwrap().push(command.to_owned()));
    world.good(id, "test", &rawdoc! { "ping": 1, "maxTimeMS": 5 });
    world.refused(id, "test", &rawdoc! { "none": 1 });
    let expected = [
        rawdoc! { "ping": 1, "maxTimeMS": 5, "$db": "test" },
        rawdoc! { "none": 1, "$db": "test" },
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn collections_come_and_go() {
    let (mut world, id) = with_birds(1);
    world.good(id, "test", &rawdoc! { "create": "fish" });
    assert_eq!(world.refused(id, "test", &rawdoc! { "create": "fish" }), 48);
    let names = |world: &mut World| {
        let reply = world.good(id, "test", &rawdoc! { "listCollections": 1, "nameOnly": true });
        let cursor = reply.get_document("cursor").unwrap();
        let batch = cursor.get_array("firstBatch").unwrap();
        let name = |it: &bson::Bson| it.as_document().unwrap().get_str("name").unwrap().to_owned();
        batch.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut world), ["birds", "fish"]);
    let reply = world.good(id, "admin", &rawdoc! { "listDatabases": 1 });
    assert_eq!(reply.get_array("databases").unwrap().len(), 4);
    world.good(id, "test", &rawdoc! { "drop": "birds" });
    assert_eq!(names(&mut world), ["fish"]);
    world.good(id, "test", &rawdoc! { "dropDatabase": 1 });
    assert!(names(&mut world).is_empty());
    world.good(id, "test", &rawdoc! { "drop": "birds" });
}

#[test]
fn an_unacknowledged_write_has_no_reply() {
    let (mut world, id) = with_birds(0);
    let documents: RawArrayBuf = [rawdoc! { "_id": 1 }].into_iter().collect();
    let insert = rawdoc! { "insert": "birds", "documents": documents, "writeConcern": { "w": 0 } };
    world.send(id, "test", &insert, Flags::MORE_TO_COME);
    assert!(world.answer(id).is_none());
    assert_eq!(batch(&world.good(id, "test", &rawdoc! { "find": "birds" })).0, [1]);
}

#[test]
fn what_is_no_command_has_an_error_of_its_own() {
    let (mut world, id) = with_birds(0);
    assert_eq!(world.refused(id, "test", &rawdoc! { "frobnicate": 1 }), 59);
    assert_eq!(world.refused(id, "test", &rawdoc! { "listDatabases": 1 }), 13);
    assert_eq!(world.refused(id, "te.st", &rawdoc! { "ping": 1 }), 73);
    assert_eq!(world.refused(id, "test", &rawdoc! { "find": "" }), 73);
    assert_eq!(world.refused(id, "test", &rawdoc! { "find": "a", "sort": { "b": 0 } }), 2);
    assert_eq!(world.refused(id, "test", &rawdoc! { "find": "a", "projection": { "b": 1 } }), 238);
    assert_eq!(world.refused(id, "test", &rawdoc! { "find": "a", "filter": 1 }), 14);
    assert_eq!(world.refused(id, "test", &rawdoc! { "find": "a", "skip": -1 }), 2);
    assert_eq!(world.refused(id, "test", &rawdoc! { "ping": 1, "apiVersion": "2" }), 322);
    assert_eq!(world.refused(id, "test", &rawdoc! { "insert": "a", "txnNumber": 1_i64 }), 20);
    // A command without its database.
    let mut bytes = Vec::new();
    let ids = cenote_core::wire::Ids::request(1);
    let body = rawdoc! { "ping": 1 };
    cenote_core::wire::MessageWriter::new(&mut bytes, ids, Flags::NONE, &body)
        .finish(cenote_core::wire::MessageLimit::DEFAULT)
        .unwrap();
    world.push(id, &bytes);
    assert_eq!(world.answer(id).unwrap().body.get_i32("code").unwrap(), 40571);
    assert_eq!(world.server.statistics().unknown_commands, 1);
}

#[test]
fn a_secondary_takes_no_writes_and_only_some_reads() {
    let set = ReplicaSet { role: Role::Secondary, ..ReplicaSet::primary("rs") };
    let topology = Topology::ReplicaSet(set);
    let mut world = World::new(Settings { topology, ..Settings::seeded(1) });
    let id = world.connect();
    let insert = rawdoc! { "insert": "birds", "documents": [{ "_id": 1 }] };
    let reply = world.run(id, "test", &insert);
    assert_eq!(reply.get_i32("code").unwrap(), 10107);
    assert_eq!(reply.get_str("codeName").unwrap(), "NotWritablePrimary");
    assert!(reply.contains_key("topologyVersion"));
    assert_eq!(world.refused(id, "test", &rawdoc! { "find": "birds" }), 13435);
    let anywhere = rawdoc! { "find": "birds", "$readPreference": { "mode": "primaryPreferred" } };
    world.good(id, "test", &anywhere);
    world.server.step_up(world.now);
    world.good(id, "test", &insert);
    world.good(id, "admin", &rawdoc! { "replSetStepDown": 1 });
    assert_eq!(world.refused(id, "test", &insert), 10107);
    let set = ReplicaSet { role: Role::Other, ..ReplicaSet::primary("rs") };
    world.server.set_topology(world.now, Topology::ReplicaSet(set));
    assert_eq!(world.refused(id, "test", &rawdoc! { "find": "birds" }), 13435);
    assert_eq!(world.refused(id, "test", &anywhere), 13436);
}

/// Members do not know of each other: what one stores, another one gets when a test says so.
#[test]
fn a_member_catches_up() {
    let ((mut one, of_one), (mut other, of_other)) = (with_birds(3), with_birds(0));
    other.server.set_documents(one.server.documents());
    let find = rawdoc! { "find": "birds" };
    assert_eq!(batch(&other.good(of_other, "test", &find)), (vec![0, 1, 2], 0));
    assert_eq!(insert(&mut other, of_other, &[rawdoc! { "_id": 3 }]).get_i32("n").unwrap(), 1);
    assert_eq!(batch(&one.good(of_one, "test", &find)), (vec![0, 1, 2], 0), "it is a copy");
    one.good(of_one, "admin", &rawdoc! { "replSetFreeze": 0 });
}

#[test]
fn a_bulk_write_inserts_into_any_collections() {
    let (mut world, id) = with_birds(2);
    let insert = |at: i32, number: i32| rawdoc! { "insert": at, "document": { "_id": number } };
    let namespaces = || [rawdoc! { "ns": "test.birds" }, rawdoc! { "ns": "zoo.fish" }];
    let bulk = |operations: &[RawDocumentBuf]| {
        let operations: RawArrayBuf = operations.iter().cloned().collect();
        let namespaces: RawArrayBuf = namespaces().into_iter().collect();
        rawdoc! { "bulkWrite": 1, "ops": operations, "nsInfo": namespaces }
    };
    let reply =
        world.good(id, "admin", &bulk(&[insert(0, 7), insert(1, 1), insert(0, 1), insert(0, 8)]));
    let counts =
        |reply: &Document| ["nInserted", "nErrors"].map(|key| reply.get_i32(key).expect("a count"));
    assert_eq!(counts(&reply), [2, 1], "the first error ends it");
    let results = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    let failed = results[2].as_document().unwrap();
    assert_eq!((failed.get_i32("idx").unwrap(), failed.get_i32("code").unwrap()), (2, 11000));
    let found = world.good(id, "test", &rawdoc! { "find": "birds" });
    assert_eq!(batch(&found).0, [0, 1, 7]);
    assert_eq!(batch(&world.good(id, "zoo", &rawdoc! { "find": "fish" })).0, [1]);

    let mut unordered = bulk(&[insert(0, 7), insert(0, 9)]);
    unordered.append(bson::cstr!("ordered"), false);
    unordered.append(bson::cstr!("errorsOnly"), true);
    let reply = world.good(id, "admin", &unordered);
    assert_eq!(counts(&reply), [1, 1]);
    let results = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    assert_eq!(results.len(), 1);

    for (command, code) in [
        (bulk(&[insert(2, 1)]), 2),
        (bulk(&[rawdoc! { "delete": 0, "filter": {} }]), 238),
        (bulk(&[rawdoc! { "insert": 0 }]), 14),
        (rawdoc! { "bulkWrite": 1, "ops": [insert(0, 1)], "nsInfo": [{ "ns": "birds" }] }, 73),
        (rawdoc! { "bulkWrite": 1, "nsInfo": [{ "ns": "test.birds" }] }, 14),
    ] {
        assert_eq!(world.refused(id, "admin", &command), code, "{command:?}");
    }
}

#[test]
fn no_more_is_stored_than_was_allowed() {
    let limits = Limits { stored_bytes: 10_000, cursors: 2, ..Limits::default() };
    let mut world = World::new(Settings { limits, ..Settings::seeded(1) });
    let id = world.connect();
    let large = |n: i32| rawdoc! { "_id": n, "padding": "x".repeat(1_000) };
    let reply = insert(&mut world, id, &(0..20).map(large).collect::<Vec<_>>());
    assert!((1..10).contains(&reply.get_i32("n").unwrap()));
    let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap();
    assert_eq!(error.get_i32("code").unwrap(), 14031);
    let find = rawdoc! { "find": "birds", "batchSize": 1 };
    world.good(id, "test", &find);
    world.good(id, "test", &find);
    assert_eq!(world.refused(id, "test", &find), 96);
    // What is dropped makes room again.
    world.good(id, "test", &rawdoc! { "drop": "birds" });
    assert_eq!(insert(&mut world, id, &[large(1)]).get_i32("n").unwrap(), 1);
}

#[test]
fn the_server_tells_of_itself() {
    let (mut world, id) = with_birds(1);
    let status = world.good(id, "admin", &rawdoc! { "serverStatus": 1 });
    assert_eq!(status.get_document("connections").unwrap().get_i64("current").unwrap(), 1);
    world.good(id, "admin", &rawdoc! { "getParameter": "*" });
    assert_eq!(world.refused(id, "admin", &rawdoc! { "getParameter": 1, "x": 1 }), 72);
    world.good(id, "admin", &rawdoc! { "whatsmyuri": 1 });
    for name in ["endSessions", "refreshSessions", "killAllSessions", "commitTransaction"] {
        let command = RawDocumentBuf::try_from(&bson::doc! { name: [] }).unwrap();
        world.good(id, "admin", &command);
    }
}
