//! Plays the files about a single monitored server: `server-discovery-and-monitoring/tests/single`, what is
//! known of it after each reply, and `server-selection/tests/rtt`, the average of round-trip times.
//!
//! The monitor of `cenote_core` gets the replies, in virtual time. A file's type and name of the topology are
//! not compared: a topology is the driver's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bson::RawDocumentBuf;
use cenote_conform::document::nested::wrong_at;
use cenote_conform::{Document, Unreadable};
use cenote_core::address::ServerAddress;
use cenote_core::connect::{ClientMetadata, ConnectionDescription, Environment, EstablishOptions};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{Action, Input, Monitor, MonitorOptions, SocketId};
use cenote_core::pool::Instant;
use cenote_core::uri::{ConnectionString, ServerMonitoringMode};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::outcome::Outcome;
use super::play::NO_TEST;
use super::target::Target;

/// A file about the description of a server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    description: String,
    uri: String,
    phases: Vec<Phase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Phase {
    /// What the servers answer, one check after the other; an empty document is a network error.
    responses: Vec<(String, Map<String, Value>)>,
    outcome: Expected,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Expected {
    servers: BTreeMap<String, ExpectedServer>,
    #[serde(rename = "topologyType")]
    _topology_type: String,
    #[serde(rename = "setName")]
    _set_name: Option<String>,
    logical_session_timeout_minutes: Option<i64>,
    compatible: Option<bool>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ExpectedServer {
    r#type: String,
    set_name: Option<String>,
}

/// Plays what was read from a file about the description of a server.
///
/// # Errors
///
/// When it is not of this format, or about more than one server.
pub(super) fn play_descriptions(document: &Document) -> Result<Vec<Outcome>, Unreadable> {
    let file: File = document.parse()?;
    if file.phases.is_empty() {
        return Err(document.refuse("phases", NO_TEST));
    }
    let uri = ConnectionString::parse(&file.uri);
    let uri = uri.map_err(|error| document.refuse("uri", &error.to_string()))?;
    let [address] = &*uri.hosts else {
        return Err(document.refuse("uri", "more than one server"));
    };
    let mut watched = Watched::new(MonitorOptions::new(&uri, false));
    let mut result = Ok(());
    for (index, phase) in file.phases.iter().enumerate() {
        for (at, (from, reply)) in phase.responses.iter().enumerate() {
            let place = format!("phases/{index}/responses/{at}");
            let wrong = |what: String| document.refuse_in("", &wrong_at(&place, what));
            if *from != address.to_string() {
                return Err(wrong(format!("{from} is not the server of the URI")));
            }
            watched.check(reply, Duration::ZERO).map_err(wrong)?;
        }
        result = result.and_then(|()| phase.outcome.judge(address, &watched.monitor));
    }
    let (path, target) = (document.path().to_owned(), Target::Core);
    Ok(vec![Outcome { file: path, target, description: file.description, verdict: result.into() }])
}

impl Expected {
    fn judge(&self, address: &ServerAddress, monitor: &Monitor) -> Result<(), String> {
        let description = monitor.description();
        let kind = description.kind().map_or("Unknown".to_owned(), |kind| kind.to_string());
        let set_name = description.set_name().map(str::to_owned);
        let seen = ExpectedServer { r#type: kind, set_name };
        if self.servers != BTreeMap::from([(address.to_string(), seen)]) {
            return Err(format!("expected {:?}, seen {description}", self.servers));
        }
        let hello = description.hello.as_deref();
        let timeout = hello.and_then(|hello| hello.session_timeout_minutes);
        if self.logical_session_timeout_minutes != timeout {
            let expected = self.logical_session_timeout_minutes;
            return Err(format!("expected the session timeout {expected:?}, seen {timeout:?}"));
        }
        let compatible = hello.is_none_or(|hello| hello.check_wire_versions(address).is_ok());
        if self.compatible.is_some_and(|expected| expected != compatible) {
            return Err(format!("compatible: {compatible}"));
        }
        Ok(())
    }
}

/// A file about the average of round-trip times, in milliseconds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoundTrips {
    avg_rtt_ms: Average,
    new_rtt_ms: f64,
    new_avg_rtt: f64,
}

/// The average so far.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Average {
    Known(f64),
    Unknown(Null),
}

#[derive(Debug, Deserialize)]
enum Null {
    #[serde(rename = "NULL")]
    Null,
}

/// Plays what was read from a file about the average of round-trip times.
///
/// # Errors
///
/// When it is not of this format.
pub(super) fn play_round_trips(document: &Document) -> Result<Vec<Outcome>, Unreadable> {
    let file: RoundTrips = document.parse()?;
    let mut options = MonitorOptions::default();
    options.mode = ServerMonitoringMode::Poll; // Two checks are two round trips.
    let mut watched = Watched::new(options);
    let known = match file.avg_rtt_ms {
        Average::Known(average) => Some(average),
        Average::Unknown(Null::Null) => None,
    };
    for milliseconds in known.into_iter().chain([file.new_rtt_ms]) {
        let takes = Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
        let takes = takes.filter(|takes| *takes < Duration::from_secs(3600));
        let takes = takes.ok_or_else(|| {
            document.refuse_in("", &format!("{milliseconds} ms is no round-trip time"))
        })?;
        let reply =
            Map::from_iter([("ok".to_owned(), 1.into()), ("helloOk".to_owned(), true.into())]);
        let checked = watched.check(&reply, takes);
        checked.map_err(|what| document.refuse_in("", &what))?;
    }
    let seen = watched.monitor.round_trip().map(|it| it.average.as_secs_f64() * 1000.0);
    // The monitor counts in whole nanoseconds.
    let is_right = seen.is_some_and(|seen| (seen - file.new_avg_rtt).abs() < 1e-5);
    let seen = || format!("expected {} ms, seen {seen:?}", file.new_avg_rtt);
    let verdict = is_right.then_some(()).ok_or_else(seen).into();
    let (path, target) = (document.path().to_owned(), Target::Core);
    let description = "the average after another round trip".to_owned();
    Ok(vec![Outcome { file: path, target, description, verdict }])
}

/// A monitor, and what its shell has.
struct Watched {
    monitor: Monitor,
    now: Instant,
    actions: Vec<Action>,
}

impl Watched {
    fn new(options: MonitorOptions) -> Self {
        let client = ClientMetadata::new(None, &Environment::default()).expect("it fits");
        let hello = Arc::new(EstablishOptions::for_client(&client).for_monitor());
        let mut actions = Vec::new();
        let monitor = Monitor::new(Instant::ORIGIN, options, hello, &mut actions);
        let monitor = monitor.expect("neither load-balanced nor too frequent");
        Self { monitor, now: Instant::ORIGIN, actions }
    }

    /// The next check, which this reply answers after this time; an empty one is a network error.
    fn check(&mut self, reply: &Map<String, Value>, takes: Duration) -> Result<(), String> {
        let reply = bson::Document::try_from(reply.clone()).map_err(|error| error.to_string())?;
        let reply = RawDocumentBuf::try_from(reply).map_err(|error| error.to_string())?;
        let asked = self.begin_check()?;
        self.now = self.now + takes;
        let input = match asked {
            Asked::Again(socket) if !reply.is_empty() => {
                Input::Replied { socket, reply, more_to_come: false }
            }
            Asked::First(socket) if !reply.is_empty() => self.opened(socket, &reply, takes),
            Asked::Again(socket) | Asked::First(socket) => Input::Failed {
                socket,
                error: ConnectionError::network(Stage::Hello, "closed by the peer"),
            },
        };
        self.feed(input)
    }

    fn opened(&self, socket: SocketId, reply: &RawDocumentBuf, round_trip: Duration) -> Input {
        match ConnectionDescription::from_reply(reply, self.monitor.establish_options()) {
            Ok(hello) => Input::Opened { socket, hello: Box::new(hello), round_trip },
            Err(error) => Input::Failed { socket, error },
        }
    }

    /// Waits until the monitor asks, and says on which socket.
    fn begin_check(&mut self) -> Result<Asked, String> {
        loop {
            for action in std::mem::take(&mut self.actions) {
                match action {
                    Action::Open { socket, line: _ } => return Ok(Asked::First(socket)),
                    Action::Send { socket, .. } => return Ok(Asked::Again(socket)),
                    Action::Close { .. }
                    | Action::MarkReady
                    | Action::ClearPool { .. }
                    | Action::EmitEvent(_) => {}
                }
            }
            let due = self.monitor.next_deadline().ok_or("the monitor asks no more")?;
            self.now = self.now.max(due.at);
            self.feed(Input::Timer)?;
        }
    }

    fn feed(&mut self, input: Input) -> Result<(), String> {
        let handled = self.monitor.handle(self.now, input, &mut self.actions);
        handled.map_err(|misuse| misuse.to_string())
    }
}

/// How a check asks.
enum Asked {
    /// By the first hello of a socket.
    First(SocketId),
    /// By another hello.
    Again(SocketId),
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cenote_conform::Document;
    use serde_json::{Value, json};

    use super::{play_descriptions, play_round_trips};
    use crate::conform::Verdict;

    fn verdict(description: Value) -> Result<Verdict, String> {
        let document = Document::of(Path::new("some.json"), description);
        let played = play_descriptions(&document).map_err(|error| error.to_string())?;
        Ok(played[0].verdict.clone())
    }

    fn of_a_primary() -> Value {
        json!({
            "description": "own words", "uri": "mongodb://db.example/?directConnection=true",
            "phases": [{
                "responses": [["db.example:27017", {
                    "ok": 1, "isWritablePrimary": true, "setName": "blue", "hosts": ["x:1"],
                    "minWireVersion": 0, "maxWireVersion": 25, "logicalSessionTimeoutMinutes": 7,
                }]],
                "outcome": {
                    "servers": { "db.example:27017": { "type": "RSPrimary", "setName": "blue" } },
                    "topologyType": "Single", "logicalSessionTimeoutMinutes": 7, "compatible": true,
                },
            }],
        })
    }

    #[test]
    fn what_is_known_otherwise_fails() {
        assert_eq!(verdict(of_a_primary()), Ok(Verdict::Passed));
        let server = "/phases/0/outcome/servers/db.example:27017";
        for (place, other) in [
            (format!("{server}/type"), json!("RSSecondary")),
            (format!("{server}/setName"), json!("green")),
            ("/phases/0/outcome/logicalSessionTimeoutMinutes".to_owned(), json!(8)),
            ("/phases/0/outcome/compatible".to_owned(), json!(false)),
            ("/phases/0/responses/0/1".to_owned(), json!({})),
        ] {
            let mut document = of_a_primary();
            *document.pointer_mut(&place).expect("it is there") = other;
            assert!(matches!(verdict(document), Ok(Verdict::Failed(_))), "{place}");
        }
        let mut stranger = of_a_primary();
        stranger["phases"][0]["responses"][0][0] = json!("other.example:27017");
        let refused = verdict(stranger).unwrap_err();
        assert!(refused.contains("other.example:27017 is not the server of the URI"), "{refused}");
    }

    #[test]
    fn another_average_fails() {
        let verdict = |average: Value, new: f64| {
            let file = json!({ "avg_rtt_ms": average, "new_rtt_ms": 20.0, "new_avg_rtt": new });
            let document = Document::of(Path::new("some.json"), file);
            play_round_trips(&document).map(|played| played[0].verdict.clone()).ok()
        };
        assert_eq!(verdict(json!(10.0), 12.0), Some(Verdict::Passed));
        assert_eq!(verdict(json!("NULL"), 20.0), Some(Verdict::Passed));
        assert!(matches!(verdict(json!(10.0), 12.1), Some(Verdict::Failed(_))));
        assert_eq!(verdict(json!("none"), 20.0), None, "not of the format");
        for average in [json!(-5), json!(1e300), json!(4e6)] {
            assert_eq!(verdict(average, 20.0), None, "no time");
        }
    }
}
