//! Our own pool tests in the format of the official ones, on shells with real sockets, in real
//! time; and proof that these runners notice, too, when a file and the pool disagree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{iter, thread};

use cenote::formats::{
    self, Document, Outcome, Place, Played, Reason, Target, Unplayed, Verdict, cmap,
};
use serde_json::{Value, json};

use crate::bites::Bite;
use crate::{folder, scenario};

const SHELLS: [Target; 3] = Target::SHELLS;

/// The only verdict of a document.
fn verdict(document: Value, target: Target) -> Verdict {
    let outcomes = cmap::play_document(
        &Document::of(Path::new("changed.json"), document),
        target,
        &Place::Endpoint,
    );
    let [Outcome { verdict, .. }] = outcomes.expect("still a test").try_into().expect("one test");
    verdict
}

#[test]
fn every_scenario_passes() {
    let Played { outcomes, unplayed } =
        formats::play(&[folder()], &SHELLS, &Place::Endpoint).unwrap();
    assert_eq!(unplayed, []);
    assert_eq!(outcomes.len(), 56 * SHELLS.len());
    let mut not_here = Vec::new();
    for Outcome { file, target, verdict, .. } in outcomes {
        if let Verdict::NotApplicable(_) = verdict {
            let name = file.file_stem().expect("a file").to_string_lossy().into_owned();
            not_here.push((name, target));
            continue;
        }
        assert_eq!(verdict, Verdict::Passed, "{} on {target}", file.display());
    }
    let on = |target| move |(name, its): &(String, Target)| (*its == target).then(|| name.clone());
    let names = |target| not_here.iter().filter_map(on(target)).collect::<Vec<_>>();
    let stand_ins = ["log-stand-in-less-severe", "log-stand-in-more-severe"];
    for target in [Target::Tokio, Target::Smol] {
        assert_eq!(names(target), [&["check-in-twice", "fork"], &stand_ins[..]].concat());
    }
    assert_eq!(
        names(Target::Mio),
        [&["abandoned", "check-in-twice", "fork"], &stand_ins[..]].concat()
    );
}

/// What is told not to be for a target has to be so.
#[test]
fn a_reason_that_is_none_is_a_failure() {
    for target in Target::ALL {
        let mut document = scenario("interrupt-in-use");
        document["notOn"] = json!({ target.name(): "because" });
        let what = Verdict::Failed("listed in notOn, but it passes".to_owned());
        assert_eq!(verdict(document, target), what);
    }
}

/// Also what files do not ask about: the same script, and each event as often, in the same order for
/// each connection and for the pool itself. (Which of two connections that are opened side by side is
/// first is the network's affair.)
#[test]
fn all_shells_emit_the_same_events() {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let files = Mutex::new(files);
    let next = || files.lock().expect("no panic").next();
    let some = || iter::from_fn(next).filter(|file| emit_the_same_events(file)).count();
    // Several side by side, because most of the time is spent waiting.
    let compared: usize = thread::scope(|scope| {
        let workers = [(); 8].map(|()| scope.spawn(some));
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(compared, 51);
}

/// Whether the file is for all shells.
fn emit_the_same_events(file: &Path) -> bool {
    let document = Document::read(file).expect("one of the scenarios");
    let [on_tokio, on_mio, on_smol] = SHELLS.map(|target| {
        let told = cmap::events(&document, target);
        by_subject(told.unwrap_or_else(|error| panic!("{} on {target}: {error}", file.display())))
    });
    if document.value().get("notOn").is_some() {
        return false;
    }
    let has_no_pool = document.value().get("invalidOptions").is_some();
    assert_eq!(on_tokio.is_empty(), has_no_pool);
    assert_eq!(on_tokio, on_mio, "{}", file.display());
    assert_eq!(on_tokio, on_smol, "{}", file.display());
    true
}

/// What was told of each connection, of check-outs, and of the pool.
fn by_subject(events: Vec<Value>) -> BTreeMap<String, Vec<String>> {
    let mut subjects = BTreeMap::<_, Vec<_>>::new();
    for event in events {
        let name = event["type"].as_str().expect("a name");
        let subject = match event.get("connectionId") {
            Some(id) => format!("connection {id}"),
            None if name.starts_with("ConnectionPool") => "the pool".to_owned(),
            None => name.to_owned(),
        };
        subjects.entry(subject).or_default().push(event.to_string());
    }
    subjects
}

/// What the core has no sockets, no real time, and no subscriber of its own for.
const BITES: &[Bite] = &[
    (
        "close-fails-waiters", // another address than the endpoint's
        |document| document["events"][0]["address"] = json!("elsewhere:27017"),
        &["event 0: address: expected \"elsewhere:27017\", saw \"127.0.0.1:"],
    ),
    (
        "close-fails-waiters", // waiting for too many events; those that are ignored count
        |document| {
            document["ignore"] = json!(["ConnectionCheckOutStarted"]);
            document["operations"][6]["count"] = json!(4);
            document["operations"][6]["timeout"] = json!(30);
        },
        &["the main thread waited 30 ms for ConnectionCheckOutStarted 4 times", "saw it 3 times"],
    ),
    (
        "hello-error-clears", // a fail point for another application
        |document| document["failPoint"]["data"]["appName"] = json!("well"),
        &["expected an error", "saw none", "event 3: type: expected \"ConnectionPoolCleared\""],
    ),
    (
        "log-own-before-all", // another message
        |document| document["log"]["messages"][7]["message"] = json!("Connection ready"),
        &["message 7: expected \"Connection ready\", saw \"Connection checked in\""],
    ),
    (
        "log-own-before-all", // a field that is not there
        |document| document["log"]["messages"][0]["data"]["maxPoolSize"] = json!(42),
        &["message 0: maxPoolSize: expected any value, saw nothing"],
    ),
    (
        "log-cut", // not cut there
        |document| {
            document["log"]["variables"]["MONGODB_LOG_MAX_DOCUMENT_LENGTH"] = json!("15");
        },
        &["message 8: error: expected \"operation: ü€𝄞...\", saw \"operation: ü€𝄞é\""],
    ),
    (
        "log-other-components", // with this level it is logged
        |document| document["log"]["variables"]["MONGODB_LOG_CONNECTION"] = json!("trace"),
        &["message 0: expected nothing more, saw", "Connection checkout failed"],
    ),
    (
        "log-stand-in-less-severe", // levels that tracing does not have
        |document| drop(document.as_object_mut().expect("a map").remove("notOn")),
        &["log.levels: the levels of `tracing` are fixed"],
    ),
];

#[test]
fn the_runners_bite() {
    for target in SHELLS {
        for (index, (name, spoil, complaints)) in BITES.iter().enumerate() {
            let mut document = scenario(name);
            spoil(&mut document);
            let Verdict::Failed(verdict) = verdict(document, target) else {
                panic!("bite {index} on {target}, {name}: not noticed")
            };
            for complaint in *complaints {
                let missing = format!("bite {index} on {target}: no {complaint:?} in:\n{verdict}");
                assert!(verdict.contains(complaint), "{missing}");
            }
        }
    }
}

/// The file ends while a thread waits and another one has been told to do more, and while
/// connections are being established, are held, and are available: all of it comes to its end.
#[test]
fn a_file_that_ends_in_the_middle_leaves_nothing_behind() {
    let document = json!({
        "version": 1, "style": "integration", "description": "much is going on",
        "failPoint": {
            "configureFailPoint": "failCommand", "mode": { "times": 2 },
            "data": {
                "failCommands": ["isMaster", "hello"], "blockConnection": true, "blockTimeMS": 60000
            },
        },
        "poolOptions": { "maxPoolSize": 2 },
        "operations": [
            { "name": "ready" },
            { "name": "start", "target": "connects" },
            { "name": "checkOut", "thread": "connects" },
            { "name": "start", "target": "connects too" },
            { "name": "checkOut", "thread": "connects too" },
            { "name": "start", "target": "queues" },
            { "name": "checkOut", "thread": "queues" },
            { "name": "checkOut", "thread": "queues" },
            { "name": "start", "target": "sleeps" },
            { "name": "wait", "ms": 600_000, "thread": "sleeps" },
            { "name": "checkOut", "thread": "sleeps" },
            { "name": "waitForEvent", "event": "ConnectionCheckOutStarted", "count": 3 },
            { "name": "wait", "ms": 50 },
        ],
        "events": [
            { "type": "ConnectionCreated", "connectionId": 1 },
            { "type": "ConnectionCreated", "connectionId": 2 },
        ],
        "ignore":
            ["ConnectionPoolCreated", "ConnectionPoolReady", "ConnectionCheckOutStarted"],
    });
    for target in SHELLS {
        assert_eq!(verdict(document.clone(), target), Verdict::Passed);
    }
}

#[test]
fn what_has_no_sockets_is_not_played_on_them() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("on-sockets/uri-options/tests");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("some.json"), r#"{ "tests": [] }"#).unwrap();
    let played = formats::play(&[&folder], &SHELLS, &Place::Endpoint).unwrap();
    let reason = Reason::NotApplicable("played on core alone".to_owned());
    let unplayed = vec![Unplayed { file: folder.join("some.json"), reason }];
    assert_eq!(played, Played { outcomes: Vec::new(), unplayed });
}
