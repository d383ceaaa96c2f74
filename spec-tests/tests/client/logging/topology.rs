//! What clients log about servers.

use std::thread;
use std::time::Duration;

use cenote_endpoint::{Endpoint, ListenOptions, ReplicaSet, Settings, Topology};
use cenote_test_runtimes::alone;
use tracing::Level;

use crate::logging::messages::Messages;
use crate::logging::unobserved;
use crate::shells::Shell;

const TARGET: &str = "cenote::topology";

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
