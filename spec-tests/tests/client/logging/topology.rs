//! What clients log about servers.

use std::thread;
use std::time::Duration;

use cenote_endpoint::{
    Endpoint, Fault, ListenOptions, LoadBalanced, ReplicaSet, Script, Settings, Topology,
};
use cenote_test_runtimes::alone;
use tracing::Level;

use crate::logging::messages::{Message, Messages, has_the_keys};
use crate::logging::unobserved;
use crate::shells::Shell;

const TARGET: &str = "cenote::topology";

/// Each message, and its keys.
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

fn check_keys(message: &Message) {
    let name = message["message"].as_str();
    let known = KEYS.iter().find(|(known, _)| *known == name);
    let (_, keys) = known.expect("a message of the specification");
    has_the_keys(message, &format!("topologyId {keys}"));
}

/// A load balancer is not checked, but it has the same messages.
// SE-11
fn behind_a_load_balancer(messages: &Messages, shell: Shell) {
    messages.clear();
    let topology = Topology::LoadBalanced(LoadBalanced { services: 1 });
    let settings = Settings { topology, ..Settings::default() };
    let server = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
    let address = server.address();
    unobserved(shell, &format!("mongodb://{address}/?loadBalanced=true")).close();
    let all = messages.all();
    all.iter().for_each(check_keys);
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

/// Once for each server and reason, however often it is checked, and before any caller gives up.
#[test]
fn a_server_that_is_refused_is_told_at_once() {
    alone(|| {
        let messages = Messages::collect(TARGET, Level::WARN);
        for shell in Shell::ALL {
            messages.clear();
            let tls =
                Endpoint::start(Settings::default(), ListenOptions::with_tls()).expect("it starts");
            let topology = Topology::ReplicaSet(ReplicaSet::primary("rs0"));
            let settings = Settings { topology, ..Settings::default() };
            let other = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
            let uris = [
                (
                    format!("mongodb://{}/?tls=true&heartbeatFrequencyMS=500", tls.address()),
                    "tlsCAFile",
                ),
                (format!("mongodb://{}/?replicaSet=rs1", other.address()), "not to `rs1`"),
            ];
            for (number, (uri, advice)) in uris.iter().enumerate() {
                let client = unobserved(shell, uri);
                while messages.all().len() <= number {
                    thread::yield_now();
                }
                // Checked again and again.
                thread::sleep(Duration::from_millis(1_200));
                client.close();
                let all = messages.all();
                assert_eq!(all.len(), number + 1, "{all:#?}");
                let text = &all[number]["message"];
                assert!(
                    text.starts_with("Server cannot be used: ") && text.contains(advice),
                    "{text}"
                );
                assert_eq!(all[number]["level"], "WARN");
            }
        }
    });
}

// LG-49, SE-04, SE-07, SE-09, SE-10
#[test]
fn messages_have_the_words_and_keys_of_the_specification() {
    alone(|| {
        let messages = Messages::collect(TARGET, Level::DEBUG);
        let mut ids = Vec::new();
        for shell in Shell::ALL {
            messages.clear();
            let topology = Topology::ReplicaSet(ReplicaSet::primary("rs0"));
            let settings = Settings { topology, ..Settings::default() };
            let server = Endpoint::start(settings, ListenOptions::default()).expect("it starts");
            let uri = format!("mongodb://{}/?heartbeatFrequencyMS=500", server.address());
            let client = unobserved(shell, &uri);
            messages.until("Server heartbeat succeeded", 2);
            server.with(|server, now| {
                server.set_fault(now, Script::new(Fault::Refuse));
                server.break_connections(now, cenote_endpoint::Ending::Reset, None);
            });
            messages.until("Server heartbeat failed", 2);
            client.close();

            let all = messages.all();
            all.iter().for_each(check_keys);
            assert!(all.iter().all(|message| message["level"] == "DEBUG"));
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
            behind_a_load_balancer(&messages, shell);
        }
        ids.dedup();
        assert_eq!(ids.len(), 3, "each client has its own");
    });
}
