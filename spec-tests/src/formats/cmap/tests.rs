use std::path::Path;
use std::time::Duration;

use cenote_conform::{Document, Runner, Scenario, Verdict};
use serde_json::json;

use super::servers::Servers;
use super::sockets::OnSockets;
use crate::formats::place::Place;
use crate::formats::target::Target;

/// A thread of the operating system that waits for a connection ends with its pool, too.
#[test]
fn a_check_out_that_is_never_served_comes_to_an_end() {
    let document = json!({
        "version": 1, "style": "unit", "description": "the connection is never checked in",
        "poolOptions": { "maxPoolSize": 1 },
        "operations": [
            { "name": "ready" }, { "name": "checkOut" },
            { "name": "start", "target": "other" }, { "name": "checkOut", "thread": "other" },
            { "name": "waitForThread", "target": "other" },
        ],
        "events": [],
        "ignore": [
            "ConnectionPoolCreated", "ConnectionPoolReady", "ConnectionCheckOutStarted",
            "ConnectionCreated", "ConnectionReady", "ConnectionCheckedOut",
        ],
    });
    let scenario = Scenario::new(&Document::of(Path::new("never.json"), document)).unwrap();
    for target in Target::SHELLS {
        let (shell, servers) = (OnSockets(target), Servers(&Place::Endpoint));
        let runner = Runner::new(&shell).with_servers(&servers);
        let verdict = runner.with_limit(Duration::from_millis(1000)).play(&scenario);
        let Verdict::Failed(what) = verdict else { panic!("it was served: {verdict:?}") };
        // One of the two waits reaches its limit first; nothing else is reported.
        let of_main = "the main thread waited 1000 ms for other, which never ended";
        let of_other = "other waited 1000 ms for a connection, but had no outcome";
        assert!([of_main, of_other].contains(&what.as_str()), "{target}: {what}");
    }
}
