//! A monitor, a clock that only tests move, and what the monitor did, in words.

use std::sync::Arc;
use std::time::Duration;

use bson::oid::ObjectId;
use bson::{RawDocumentBuf, rawdoc};
use cenote_core::connect::{
    ClientMetadata, ConnectionDescription, Environment, EstablishOptions, ServerKind,
};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{
    Action, Deadline, Event, Input, Line, Misuse, Monitor, MonitorOptions, SocketId,
};
use cenote_core::pool::Instant;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) monitor: Monitor,
    pub(crate) actions: Vec<Action>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(MonitorOptions::default())
    }

    pub(crate) fn with(options: MonitorOptions) -> Self {
        let now = Instant::ORIGIN;
        let mut actions = Vec::new();
        let monitor = Monitor::new(now, options, establish(), &mut actions).expect("good options");
        Self { now, monitor, actions }
    }

    pub(crate) fn try_feed(&mut self, input: Input) -> Result<(), Misuse> {
        self.monitor.handle(self.now, input, &mut self.actions)
    }

    pub(crate) fn feed(&mut self, input: Input) {
        self.try_feed(input).expect("the contract is kept");
    }

    pub(crate) fn wait(&mut self, duration: Duration) {
        self.now = self.now + duration;
    }

    /// Goes to what is due next, and feeds `Timer`.
    pub(crate) fn until_due(&mut self) -> Deadline {
        let due = self.monitor.next_deadline().expect("something is due");
        assert!(due.at >= self.now, "{due:?} is over at {}", self.now);
        self.now = due.at;
        self.feed(Input::Timer);
        due
    }

    pub(crate) fn opened(&mut self, socket: u64, reply: &RawDocumentBuf) {
        let hello = Box::new(hello(reply));
        self.feed(Input::Opened { socket: SocketId(socket), hello, round_trip: MS });
    }

    pub(crate) fn replied(&mut self, socket: u64, reply: &RawDocumentBuf, more_to_come: bool) {
        let (socket, reply) = (SocketId(socket), reply.clone());
        self.feed(Input::Replied { socket, reply, more_to_come });
    }

    pub(crate) fn failed(&mut self, socket: u64, error: ConnectionError) {
        self.feed(Input::Failed { socket: SocketId(socket), error });
    }

    pub(crate) fn kind(&self) -> Option<ServerKind> {
        self.monitor.description().kind()
    }

    /// What was done since this was asked last.
    pub(crate) fn done(&mut self) -> Vec<String> {
        std::mem::take(&mut self.actions).iter().map(in_words).collect()
    }
}

pub(crate) fn establish() -> Arc<EstablishOptions> {
    let client = ClientMetadata::new(None, &Environment::default()).expect("no name");
    Arc::new(EstablishOptions::for_client(&client).for_monitor())
}

pub(crate) fn hello(reply: &RawDocumentBuf) -> ConnectionDescription {
    ConnectionDescription::from_reply(reply, &establish()).expect("a hello")
}

/// A server that counts its changes, so that it can stream.
pub(crate) fn primary(counter: i64) -> RawDocumentBuf {
    let version = rawdoc! { "processId": ObjectId::from_bytes([1; 12]), "counter": counter };
    rawdoc! {
        "ok": 1, "helloOk": true, "isWritablePrimary": true, "setName": "rs0",
        "topologyVersion": version,
    }
}

pub(crate) fn secondary(counter: i64) -> RawDocumentBuf {
    let version = rawdoc! { "processId": ObjectId::from_bytes([1; 12]), "counter": counter };
    rawdoc! {
        "ok": 1, "helloOk": true, "secondary": true, "setName": "rs0", "topologyVersion": version,
    }
}

/// One that can only be asked.
pub(crate) fn standalone() -> RawDocumentBuf {
    rawdoc! { "ok": 1, "helloOk": true, "isWritablePrimary": true }
}

pub(crate) fn refusal() -> RawDocumentBuf {
    rawdoc! { "ok": 0, "code": 1234, "errmsg": "not today" }
}

pub(crate) fn reset() -> ConnectionError {
    ConnectionError::network(Stage::Hello, "reset by peer")
}

fn in_words(action: &Action) -> String {
    match action {
        Action::Open { socket, line: Line::Check } => format!("open {}", socket.0),
        Action::Open { socket, line: Line::RoundTrip } => format!("open {} to measure", socket.0),
        Action::Send { socket, command, flags } => {
            let how = if flags.exhaust_allowed { "awaited " } else { "" };
            format!("send {}: {how}{}", socket.0, command.name())
        }
        Action::Close { socket } => format!("close {}", socket.0),
        Action::MarkReady => "ready".to_owned(),
        Action::ClearPool { interrupt: false, .. } => "clear".to_owned(),
        Action::ClearPool { interrupt: true, .. } => "clear and interrupt".to_owned(),
        Action::EmitEvent(event) => match event {
            Event::ServerHeartbeatStarted { awaited, .. } => {
                if *awaited { "started, awaited" } else { "started" }.to_owned()
            }
            Event::ServerHeartbeatSucceeded { duration, .. } => {
                format!("succeeded after {duration:?}")
            }
            Event::ServerHeartbeatFailed { duration, .. } => format!("failed after {duration:?}"),
            Event::ServerDescriptionChanged { previous, new } => {
                format!("{previous} -> {new}")
            }
            other => panic!("{other:?}"),
        },
    }
}
