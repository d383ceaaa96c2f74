//! What clients on all runtimes log about servers, through `tracing`. In a process of its own: a subscriber is
//! for all of it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cenote_endpoint::{
    Endpoint, Fault, ListenOptions, LoadBalanced, ReplicaSet, Script, Settings, Topology,
};
use cenote_shell::client::Client;
use cenote_smol::Smol;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The fields of each message.
type Message = BTreeMap<String, String>;

#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<Message>>>);

impl Subscriber for Messages {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "cenote::topology"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        assert_eq!(*event.metadata().level(), Level::DEBUG);
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().expect("no panic").push(fields.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields(Message);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Messages {
    fn named(&self, name: &str) -> Vec<Message> {
        let all = self.0.lock().expect("no panic");
        all.iter().filter(|message| message["message"] == name).cloned().collect()
    }

    fn until(&self, name: &str, count: usize) {
        let end = Instant::now() + Duration::from_secs(30);
        while self.named(name).len() < count {
            assert!(Instant::now() < end, "{name}: {:#?}", self.0);
            thread::yield_now();
        }
    }
}

/// Each message, and the keys that it has besides `message` and `topologyId`. Those behind a `?` may be absent.
const KEYS: [(&str, &str); 8] = [
    ("Starting topology monitoring", ""),
    ("Stopped topology monitoring", ""),
    ("Starting server monitoring", "serverHost serverPort"),
    ("Stopped server monitoring", "serverHost serverPort"),
    ("Topology description changed", "previousDescription newDescription"),
    (
        "Server heartbeat started",
        "serverHost serverPort driverConnectionId ?serverConnectionId awaited",
    ),
    (
        "Server heartbeat succeeded",
        "serverHost serverPort driverConnectionId serverConnectionId awaited durationMS reply",
    ),
    (
        "Server heartbeat failed",
        "serverHost serverPort driverConnectionId ?serverConnectionId awaited durationMS failure",
    ),
];

fn has_the_keys(message: &Message) {
    let name = message["message"].as_str();
    let (_, keys) =
        KEYS.iter().find(|(known, _)| *known == name).expect("a message of the specification");
    let common = ["message", "topologyId"].into_iter();
    let required = keys.split_whitespace().filter(|key| !key.starts_with('?')).chain(common);
    required.for_each(|key| assert!(message.contains_key(key), "{name} without {key}"));
    let known = |key: &String| {
        let names = keys.split_whitespace().map(|key| key.trim_start_matches('?'));
        names.chain(["message", "topologyId"]).any(|known| known == key)
    };
    assert!(message.keys().all(known), "{message:?}");
}

/// Calls the functions while a client is there, and closes it.
type Run = fn(&str, &dyn Fn());

fn on_tokio(uri: &str, meanwhile: &dyn Fn()) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let client = runtime.block_on(async { cenote_tokio::Client::new(uri) }).expect("a client");
    meanwhile();
    runtime.block_on(client.close());
}

fn on_mio(uri: &str, meanwhile: &dyn Fn()) {
    let client = cenote_mio::Client::new(uri).expect("a client");
    meanwhile();
    client.close();
}

fn on_smol(uri: &str, meanwhile: &dyn Fn()) {
    fn block_on<T>(work: impl Future<Output = T>) -> T {
        smol::block_on(work)
    }
    let client = block_on(async { Client::<Smol>::new(uri) }).expect("a client");
    meanwhile();
    block_on(client.close());
}

/// A load balancer is not checked, but it has the same messages.
fn behind_a_load_balancer(messages: &Messages, run: Run) {
    messages.0.lock().expect("no panic").clear();
    let topology = Topology::LoadBalanced(LoadBalanced { services: 1 });
    let settings = Settings { topology, ..Settings::default() };
    let server = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let address = server.address();
    run(&format!("mongodb://{address}/?loadBalanced=true"), &|| {});
    let all = messages.0.lock().expect("no panic").clone();
    all.iter().for_each(has_the_keys);
    let names: Vec<_> = all.iter().map(|message| message["message"].as_str()).collect();
    let changed = "Topology description changed";
    assert_eq!(
        names,
        [
            "Starting topology monitoring",
            changed,
            "Starting server monitoring",
            changed,
            "Stopped server monitoring",
            changed,
            "Stopped topology monitoring",
        ]
    );
    let descriptions: Vec<_> =
        messages.named(changed).iter().map(|it| it["newDescription"].clone()).collect();
    let [unknown, known] = ["Unknown: not checked yet", "LoadBalancer"];
    let [unknown, known] =
        [unknown, known].map(|description| format!("LoadBalanced: {address}: {description}"));
    assert_eq!(descriptions, [unknown, known, "Unknown".to_owned()]);
}

#[test]
fn messages_have_the_words_and_keys_of_the_specification() {
    let messages = Messages::default();
    tracing::subscriber::set_global_default(messages.clone()).expect("the only one");
    let mut ids = Vec::new();
    for run in [on_tokio as Run, on_mio, on_smol] {
        messages.0.lock().expect("no panic").clear();
        let topology = Topology::ReplicaSet(ReplicaSet::primary("rs0"));
        let settings = Settings { topology, ..Settings::default() };
        let server = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
        let uri = format!("mongodb://{}/?heartbeatFrequencyMS=500", server.address());
        run(&uri, &|| {
            messages.until("Server heartbeat succeeded", 2);
            server.with(|server, now| {
                server.set_fault(now, Script::new(Fault::Refuse));
                server.break_connections(now, cenote_endpoint::Ending::Reset, None);
            });
            messages.until("Server heartbeat failed", 2);
        });

        let all = messages.0.lock().expect("no panic").clone();
        all.iter().for_each(has_the_keys);
        let id = &all[0]["topologyId"];
        assert!(all.iter().all(|message| message["topologyId"] == *id), "one client");
        ids.push(id.clone());
        let names: Vec<_> = all.iter().map(|message| message["message"].as_str()).collect();
        let [changed, started] = ["Topology description changed", "Starting server monitoring"];
        assert_eq!(names[..3], ["Starting topology monitoring", changed, started]);
        let [stopped, ended] = ["Stopped server monitoring", "Stopped topology monitoring"];
        assert!(names.ends_with(&[stopped, changed, ended]), "{names:?}");

        let succeeded = messages.named("Server heartbeat succeeded");
        let first = &succeeded[0];
        assert_eq!((&*first["driverConnectionId"], &*first["awaited"]), ("1", "false"));
        let reply: serde_json::Value = serde_json::from_str(&first["reply"]).expect("JSON");
        assert_eq!(reply["setName"], "rs0");
        assert_eq!(reply["connectionId"].to_string(), first["serverConnectionId"]);
        // The first one has no connection yet; the one after it is on the same.
        let began = messages.named("Server heartbeat started");
        assert_eq!(began[0].get("serverConnectionId"), None);
        assert_eq!(began[1].get("serverConnectionId"), Some(&first["serverConnectionId"]));
        assert_eq!(began[1]["driverConnectionId"], "1");
        let failed = messages.named("Server heartbeat failed");
        assert_eq!(failed[0].get("serverConnectionId"), Some(&first["serverConnectionId"]));
        assert_eq!(failed[1].get("serverConnectionId"), None, "it was never open");

        let changes = messages.named(changed);
        let address = server.address();
        let unknown = format!("Unknown: {address}: Unknown: not checked yet");
        let primary = format!("ReplicaSetWithPrimary rs0: {address}: RSPrimary of rs0");
        assert_eq!(changes[0]["previousDescription"], "Unknown");
        assert_eq!(
            (&changes[0]["newDescription"], &changes[1]["previousDescription"]),
            (&unknown, &unknown)
        );
        assert_eq!(
            (&changes[1]["newDescription"], &changes[2]["previousDescription"]),
            (&primary, &primary)
        );
        assert!(changes[2]["newDescription"].contains(": Unknown: hello: "), "{changes:#?}");
        assert_eq!(changes.last().expect("the end")["newDescription"], "Unknown");
        behind_a_load_balancer(&messages, run);
    }
    ids.dedup();
    assert_eq!(ids.len(), 3, "each client has its own");
}
