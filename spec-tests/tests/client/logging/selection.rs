//! What clients log about the servers that they select.

use std::time::Duration;

use bson::rawdoc;
use cenote_core::client::{ReadPreference, Selector};
use cenote_core::pool::Purpose;
use cenote_core::uri::ReadPreferenceMode;
use cenote_endpoint::{Endpoint, ListenOptions, ReplicaSet, Settings, Topology};
use cenote_shell::connection::operation::OperationOptions;
use cenote_test_runtimes::alone;
use tracing::Level;

use crate::logging::messages::{Message, Messages, has_the_keys};
use crate::logging::unobserved;
use crate::shells::{AnyClient, Shell};

const TARGET: &str = "cenote::server_selection";
const STARTED: &str = "Server selection started";
const WAITING: &str = "Waiting for suitable server to become available";
const SUCCEEDED: &str = "Server selection succeeded";
const FAILED: &str = "Server selection failed";

const KEYS: [(&str, &str, &str); 4] = [
    (STARTED, "DEBUG", ""),
    (WAITING, "INFO", "remainingTimeMS"),
    (SUCCEEDED, "DEBUG", "serverHost serverPort"),
    (FAILED, "DEBUG", "failure"),
];

/// The primary of a set that has no other member.
fn primary() -> Endpoint {
    let topology = Topology::ReplicaSet(ReplicaSet::primary("rs0"));
    let settings = Settings { topology, ..Settings::default() };
    Endpoint::start(settings, ListenOptions::default()).expect("it starts")
}

/// Everything that was logged since the last time: names, all of the same operation.
fn story(messages: &Messages, operation: &str) -> Vec<String> {
    let all = messages.all();
    messages.clear();
    let name = |message: &Message| {
        let name = message["message"].clone();
        let known = KEYS.iter().find(|(known, ..)| *known == name);
        let (_, level, keys) = known.expect("a message of the specification");
        assert_eq!(message["level"], *level);
        let common = "selector operation ?operationId topologyDescription topologyId";
        has_the_keys(message, &format!("{common} {keys}"));
        assert_eq!(message["operation"], operation);
        name
    };
    all.iter().map(name).collect()
}

// LG-43, SS-17
#[test]
fn messages_have_the_words_and_keys_of_the_specification() {
    alone(|| {
        let messages = Messages::collect(TARGET, Level::DEBUG);
        for shell in Shell::ALL {
            let server = primary();
            let address = server.address();
            let options = "serverSelectionTimeoutMS=30000&heartbeatFrequencyMS=500";
            let client = unobserved(shell, &format!("mongodb://{address}/?{options}"));
            let (ping, options) = (rawdoc! { "ping": 1 }, OperationOptions::new());
            // The first one may have to wait for the first check.
            client.command_with("admin", &ping, options).expect("a primary");
            let first = story(&messages, "ping");
            assert!([STARTED, SUCCEEDED].iter().all(|name| first.contains(&(*name).to_owned())));
            assert!(first.len() <= 3, "{first:?}");

            client.command_with("admin", &ping, options.with_id(7)).expect("a primary");
            let all = messages.all();
            assert_eq!(story(&messages, "ping"), [STARTED, SUCCEEDED]);
            assert!(all.iter().all(|message| message["operationId"] == "7"));
            let description = format!("ReplicaSetWithPrimary rs0: {address}: RSPrimary of rs0");
            assert!(all.iter().all(|message| message["topologyDescription"] == description));
            let port = address.port().expect("a port").to_string();
            assert_eq!((&*all[1]["serverHost"], &all[1]["serverPort"]), (address.host(), &port));
            assert_eq!(all[0]["selector"], Selector::Primary.to_string());
            assert_eq!(all[0].get("serverHost"), None);

            what_methods_are_called(&messages, &*client);
            a_server_that_does_not_come(&messages, &*client);
            what_cannot_be(&messages, &*client);
            if let Some(cancel) = client.start_check_out(Selector::Secondary) {
                messages.until(WAITING, 1);
                cancel();
                let all = messages.all();
                assert_eq!(story(&messages, "check_out"), [STARTED, WAITING, FAILED]);
                assert_eq!(all[2]["failure"], "its caller gave up");
            }
            client.close();
            client.command_with("admin", &ping, options).expect_err("it is closed");
            let all = messages.all();
            assert_eq!(story(&messages, "ping"), [STARTED, FAILED]);
            assert_eq!(all[1]["failure"], "the client is closed");
        }
    });
}

fn what_methods_are_called(messages: &Messages, client: &dyn AnyClient) {
    let options = OperationOptions::new();
    client.check_out(&Selector::Any).expect("a connection");
    assert_eq!(story(messages, "check_out"), [STARTED, SUCCEEDED]);
    client.check_out_with(&Selector::Any, options.with_name("find")).expect("a connection");
    assert_eq!(story(messages, "find"), [STARTED, SUCCEEDED]);
    client.with_connection(&Selector::Any, &mut |_| ()).expect("a connection");
    assert_eq!(story(messages, "with_connection"), [STARTED, SUCCEEDED]);
    client.pin(&Selector::Any, Purpose::Cursor).expect("a connection");
    assert_eq!(story(messages, "pin"), [STARTED, SUCCEEDED]);
}

/// That it waits is said once, though the server is checked twice meanwhile.
// SS-13, SS-17
fn a_server_that_does_not_come(messages: &Messages, client: &dyn AnyClient) {
    let limit = Duration::from_millis(1200);
    let options = OperationOptions::new().with_timeout(limit).with_id(-8);
    let mut preference = ReadPreference::of_mode(ReadPreferenceMode::Secondary);
    preference.tag_sets = vec![[("dc".to_owned(), "ny".to_owned())].into()];
    let selector = Selector::ReadPreference(preference);
    client.check_out_with(&selector, options).expect_err("there is no secondary");
    let all = messages.all();
    assert_eq!(story(messages, "check_out"), [STARTED, WAITING, FAILED]);
    assert!(all.iter().all(|message| message["operationId"] == "-8"));
    assert!(all.iter().all(|message| message["selector"].contains("secondary {dc: ny}")));
    let remaining: u64 = all[1]["remainingTimeMS"].parse().expect("a whole number");
    assert!((1..=1200).contains(&remaining), "{remaining}");
    let failure = &all[2]["failure"];
    assert!(failure.starts_with("there was none within "), "{failure}");
}

/// Waiting would not help.
fn what_cannot_be(messages: &Messages, client: &dyn AnyClient) {
    let elsewhere = Selector::Address("other.example.com".parse().expect("an address"));
    client.check_out(&elsewhere).expect_err("it is elsewhere");
    let all = messages.all();
    assert_eq!(story(messages, "check_out"), [STARTED, FAILED]);
    assert_eq!(all[1]["failure"], "it is no server of this client");
}

/// Where only INFO is wanted, a selection that waits says so, and nothing else is said.
// LG-52
#[test]
fn at_info_only_the_wait_is_logged() {
    alone(|| {
        let messages = Messages::collect(TARGET, Level::INFO);
        for shell in Shell::ALL {
            let server = primary();
            let client = unobserved(shell, &format!("mongodb://{}", server.address()));
            client.command("admin", &rawdoc! { "ping": 1 }).expect("a primary");
            messages.clear();
            let options = OperationOptions::new().with_timeout(Duration::from_millis(50));
            client.check_out_with(&Selector::Secondary, options).expect_err("there is none");
            assert_eq!(story(&messages, "check_out"), [WAITING]);
            client.close();
        }
    });
}

#[test]
fn a_collector_that_panics_affects_no_caller() {
    alone(|| {
        let messages = Messages::collect(TARGET, Level::DEBUG);
        messages.panic();
        for shell in Shell::ALL {
            let server = primary();
            let client = unobserved(shell, &format!("mongodb://{}", server.address()));
            client.command("admin", &rawdoc! { "ping": 1 }).expect("a primary");
            let options = OperationOptions::new().with_timeout(Duration::from_millis(50));
            client.check_out_with(&Selector::Secondary, options).expect_err("there is none");
            client.close();
        }
        assert!(messages.named(STARTED).len() >= 6);
    });
}
