//! Our own tests of connections, in memory and on both shells; and proof that the runner notices when
//! a file and a client disagree.

use std::path::{Path, PathBuf};

use cenote::conform::{self, Document, Outcome, Place, Played, Target, Verdict, connection};
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/connection")
}

fn scenario(name: &str) -> Value {
    Document::read(&folder().join(name).with_extension("yml")).expect("one of them").into_value()
}

/// The only verdict of a document.
fn verdict(document: Value, target: Target) -> Verdict {
    let document = Document::of(Path::new("changed.yml"), document);
    let outcomes = connection::play_document(&document, target, &Place::Endpoint);
    let [Outcome { verdict, .. }] = outcomes.expect("still a test").try_into().expect("one test");
    verdict
}

#[test]
fn every_scenario_passes() {
    let Played { outcomes, unplayed } =
        conform::play(&[folder()], &Target::WITH_CONNECTIONS, &Place::Endpoint).unwrap();
    assert_eq!(unplayed, []);
    assert_eq!(outcomes.len(), FILES * Target::WITH_CONNECTIONS.len());
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
    // Without a client, a clock, TLS and name resolution.
    assert_eq!(
        names(Target::Core),
        [
            "client-behind-a-load-balancer",
            "client-does-not-ask-at-once",
            "client-finds-a-step-down",
            "client-gets-ready",
            "client-goes-where-least-is-done",
            "client-without-round-trip-times",
            "deadline-before-anything-is-said",
            "deadline-for-all-of-it",
            "deadline-for-tls",
            "minimum-has-its-own-time",
            "no-answer-in-time",
            "no-answer",
            "options-of-the-program",
            "several-servers",
            "silence-after-a-command",
            "silence-in-the-handshake",
            "tls-cut-off",
            "tls-refused",
            "unknown-name",
        ]
    );
    for target in [Target::Tokio, Target::Mio, Target::Smol] {
        assert_eq!(names(target), ["credential-unusable"]);
    }
}

const FILES: usize = 54;

/// Whatever a file expects to be heard or to be given: anything else is a failure.
#[test]
fn every_expectation_bites() {
    let mut tried = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let document = Document::read(&path).unwrap().into_value();
        if document["notOn"].get("core").is_some() {
            continue;
        }
        let mut places = Vec::new();
        collect(&document, String::new(), &mut places);
        for place in places {
            let mut changed = document.clone();
            let value = changed.pointer_mut(&place).expect("it was there");
            *value = match value {
                Value::Bool(value) => json!(!*value),
                Value::Number(_) => json!(4_711_000),
                Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                    json!("something else")
                }
            };
            let verdict = verdict(changed, Target::Core);
            let name = path.display();
            assert!(matches!(verdict, Verdict::Failed(_)), "{name}: {place}: {verdict:?}");
            tried += 1;
        }
    }
    assert!(tried > 240, "only {tried} were tried");
}

/// The places of everything that is compared with something.
fn collect(value: &Value, place: String, places: &mut Vec<String>) {
    let is_compared =
        ["/hears/body", "/gives", "/fails/code", "/fails/labels", "/fails/says", "/isReusable"];
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                collect(value, format!("{place}/{}", key.replace('/', "~1")), places);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                collect(value, format!("{place}/{index}"), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let is_told = is_compared.iter().any(|part| place.contains(part));
            // These would make it another file, and not another expectation.
            let is_operator = place.contains("$$exists") || place.contains("$$begins");
            if is_told && !is_operator {
                places.push(place);
            }
        }
    }
}

/// What is done to a file, and what the runner must say to that.
type Change = (&'static str, fn(&mut Value), &'static str);

/// What a client says too much, too early, or not at all; a connection too many and one too few; flags
/// and compression: on every target.
#[test]
fn other_stories_are_failures_everywhere() {
    let easy = scenario("compression");
    let changes: [Change; 7] = [
        ("one command more", |it| drop(list(it, "/connections/0").splice(2..4, [])), "step 2"),
        ("one command less", |it| drop(list(it, "/operations").pop()), "step 8"),
        ("no connection", |it| drop(list(it, "/connections").pop()), "expect"),
        ("one more", |it| list(it, "/connections").push(json!(["isLeft"])), "never opened"),
        ("flags", |it| it["connections"][0][2]["hears"]["flags"] = json!(["moreToCome"]), "flags"),
        ("compressed", |it| it["connections"][0][2]["hears"]["compressed"] = json!("zstd"), "zstd"),
        ("not so", |it| it["connections"][0][6]["hears"]["compressed"] = json!("zlib"), "zlib"),
    ];
    for (what, change, complaint) in changes {
        for target in Target::WITH_CONNECTIONS {
            let mut document = easy.clone();
            change(&mut document);
            let Verdict::Failed(said) = verdict(document, target) else {
                panic!("{what} on {target}: not noticed");
            };
            assert!(said.contains(complaint), "{what} on {target}: no {complaint:?} in {said}");
        }
    }
}

/// A file, what is done to it, and what the runner must say to that.
type Spoiled = (&'static str, fn(&mut Value), &'static str);

const SPOILED: &[Spoiled] = &[
    (
        "several-servers",
        |it| it["operations"][7]["hasTold"]["with"]["options"]["maxPoolSize"] = json!(8),
        "operation 7: ConnectionPoolCreated of server 1: options: maxPoolSize: expected 8, saw 7",
    ),
    (
        "several-servers", // an option that is not named
        |it| {
            let options = &mut it["operations"][8]["hasTold"]["with"]["options"];
            drop(options.as_object_mut().expect("a map").remove("maxConnecting"));
        },
        "operation 8: ConnectionPoolCreated of server 2: options: maxConnecting: expected nothing",
    ),
    (
        "several-servers",
        |it| it["connections"][1][4]["hears"]["body"]["ping"] = json!("two"),
        "server 1: connection 1: the server's step 4: ping: expected \"two\", saw \"one again\"",
    ),
    (
        "several-servers",
        |it| drop(list(it, "/otherServers/0").pop()),
        "server 2: 1 connections more than expected",
    ),
    (
        "several-servers",
        |it| it["operations"][9]["hasTold"]["times"] = json!(0),
        "expected server 1 to have told ConnectionCheckedOut 0 times, saw it 1 times in\n{",
    ),
    (
        "several-servers",
        |it| it["operations"][1]["clientConnect"]["gives"]["kind"] = json!("Standalone"),
        "operation 1: kind: expected \"Standalone\", saw \"Mongos\"",
    ),
    (
        "options-of-the-program",
        |it| it["options"]["maxPoolSize"] = json!(4),
        "operation 0: ConnectionPoolCreated of server 1: options: maxPoolSize: expected 3, saw 4",
    ),
    (
        "options-of-the-program",
        |it| drop(it.as_object_mut().expect("a map").remove("options")),
        "operation 0: ConnectionPoolCreated of server 1: options: maxPoolSize: expected 3, saw 7",
    ),
    (
        "client-goes-where-least-is-done", // the second server is no router
        |it| {
            let hello = &mut it["otherServers"][0][0][1]["says"]["body"];
            drop(hello.as_object_mut().expect("a map").remove("msg"));
        },
        "expected server 2 to be Mongos, ",
    ),
    (
        "client-goes-where-least-is-done", // the monitor asks something else
        |it| it["connections"][0][0]["hears"]["command"] = json!("hello"),
        "server 1: connection 0: the server's step 0: command: expected hello, heard isMaster",
    ),
    (
        "client-goes-where-least-is-done", // the other server is busy
        |it| it["operations"][9]["clientConnect"]["to"]["server"] = json!(1),
        "server 2: connection 1: the server's step 4: the client says more than it should",
    ),
    (
        "scram-is-computed-once", // another question
        |it| it["connections"][1][1]["says"]["scram"]["iterations"] = json!(250_001),
        "operation 1: it took ",
    ),
];

/// What clients of several servers do, and what takes time.
#[test]
fn expectations_of_clients_bite_too() {
    for (index, (name, spoil, complaint)) in SPOILED.iter().enumerate() {
        let target = Target::SHELLS[index % Target::SHELLS.len()];
        let mut document = scenario(name);
        spoil(&mut document);
        let Verdict::Failed(said) = verdict(document, target) else {
            panic!("{index}, {name} on {target}: not noticed");
        };
        assert!(said.contains(complaint), "{index}, {name}: no {complaint:?} in {said}");
    }
}

fn list<'a>(document: &'a mut Value, place: &str) -> &'a mut Vec<Value> {
    document.pointer_mut(place).and_then(Value::as_array_mut).expect("a list")
}

/// What a server sends back is shown: to be a secret, it must not be.
#[test]
fn a_secret_that_is_shown_is_a_failure() {
    for target in Target::WITH_CONNECTIONS {
        let mut document = scenario("secrets");
        document["secrets"] = json!(["no"]);
        let Verdict::Failed(said) = verdict(document, target) else {
            panic!("{target}: not noticed");
        };
        assert!(said.contains("a secret is shown"), "{said}");
    }
}

/// What is told not to be for a target has to be so.
#[test]
fn a_reason_that_is_none_is_a_failure() {
    for target in Target::WITH_CONNECTIONS {
        let mut document = scenario("hello-first");
        document["notOn"] = json!({ target.name(): "because" });
        let what = Verdict::Failed("listed in notOn, but it passes".to_owned());
        assert_eq!(verdict(document, target), what);
    }
}
