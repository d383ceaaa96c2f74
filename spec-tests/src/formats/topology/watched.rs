//! One monitored server.

use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use cenote_core::connect::{ClientMetadata, ConnectionDescription, Environment, EstablishOptions};
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{
    Action, Input, Line, Monitor, MonitorOptions, RoundTrip, ServerDescription, SocketId,
};
use cenote_core::pool::Instant;
use cenote_core::sdam::Verdict;

/// A monitor, what its shell has, and how often the pool was cleared.
#[derive(Debug)]
pub(in crate::formats) struct Watched {
    monitor: Monitor,
    now: Instant,
    actions: Vec<Action>,
    asked: Option<Asked>,
    pub(super) generation: u64,
}

/// How a check asks.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// By the first hello of a socket.
    First(SocketId),
    /// By another hello.
    Again(SocketId),
}

impl Watched {
    pub(in crate::formats) fn new(options: MonitorOptions) -> Self {
        let mut actions = Vec::new();
        let monitor = Monitor::new(Instant::ORIGIN, options, hello_options(), &mut actions);
        let monitor = monitor.expect("neither load-balanced nor too frequent");
        Self { monitor, now: Instant::ORIGIN, actions, asked: None, generation: 0 }
    }

    /// What such a reply says of a server.
    pub(super) fn described(reply: &RawDocument) -> Arc<ServerDescription> {
        let now = Instant::ORIGIN;
        Arc::new(match ConnectionDescription::from_reply(reply, &hello_options()) {
            Ok(hello) => ServerDescription::known(Arc::new(hello), None, now),
            Err(error) => ServerDescription::unknown(error, None, now),
        })
    }

    /// The next check, which this reply answers after this time; an empty one is a network error.
    pub(in crate::formats) fn check(
        &mut self,
        reply: &RawDocumentBuf,
        takes: Duration,
    ) -> Result<(), String> {
        let asked = self.begin_check()?;
        self.now = self.now + takes;
        let input = match asked {
            Asked::Again(socket) if !reply.is_empty() => {
                Input::Replied { socket, reply: reply.clone(), more_to_come: false }
            }
            Asked::First(socket) if !reply.is_empty() => self.opened(socket, reply, takes),
            Asked::Again(socket) | Asked::First(socket) => Input::Failed {
                socket,
                error: ConnectionError::network(Stage::Hello, "closed by the peer"),
            },
        };
        self.feed(input)
    }

    /// A connection of the pool has failed. What becomes of the pool is the caller's to do.
    pub(super) fn application_failed(
        &mut self,
        error: ConnectionError,
        verdict: Verdict,
    ) -> Result<(), String> {
        self.feed(Input::ApplicationFailed { error, verdict })
    }

    pub(super) fn description(&self) -> Arc<ServerDescription> {
        Arc::clone(self.monitor.description())
    }

    pub(in crate::formats) fn round_trip(&self) -> Option<RoundTrip> {
        self.monitor.round_trip()
    }

    fn opened(&self, socket: SocketId, reply: &RawDocument, round_trip: Duration) -> Input {
        match ConnectionDescription::from_reply(reply, self.monitor.establish_options()) {
            Ok(hello) => Input::Opened { socket, hello: Box::new(hello), round_trip },
            Err(error) => Input::Failed { socket, error },
        }
    }

    /// Waits until the monitor asks, and says on which socket.
    fn begin_check(&mut self) -> Result<Asked, String> {
        loop {
            self.perform();
            if let Some(asked) = self.asked.take() {
                return Ok(asked);
            }
            let due = self.monitor.next_deadline().ok_or("the monitor asks no more")?;
            self.now = self.now.max(due.at);
            self.feed(Input::Timer)?;
        }
    }

    /// The socket that measures round-trip times is never opened.
    fn perform(&mut self) {
        for action in std::mem::take(&mut self.actions) {
            match action {
                Action::Open { socket, line: Line::Check } => {
                    self.asked = Some(Asked::First(socket));
                }
                Action::Send { socket, .. } => self.asked = Some(Asked::Again(socket)),
                Action::Close { socket } => {
                    self.asked = self.asked.filter(|asked| asked.socket() != socket);
                }
                Action::ClearPool { .. } => self.generation += 1,
                Action::Open { line: Line::RoundTrip, .. }
                | Action::MarkReady
                | Action::EmitEvent(_) => {}
            }
        }
    }

    fn feed(&mut self, input: Input) -> Result<(), String> {
        let handled = self.monitor.handle(self.now, input, &mut self.actions);
        handled.map_err(|misuse| misuse.to_string())?;
        self.perform();
        Ok(())
    }
}

impl Asked {
    const fn socket(self) -> SocketId {
        match self {
            Self::First(socket) | Self::Again(socket) => socket,
        }
    }
}

/// As a monitor says hello.
pub(super) fn hello_options() -> Arc<EstablishOptions> {
    let client = ClientMetadata::new(None, &Environment::default()).expect("it fits");
    Arc::new(EstablishOptions::for_client(&client).for_monitor())
}
