//! The trace of a topology as a whole: its changes, and what each server was when.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::ControlFlow;

use cenote_core::connect::ServerKind;
use cenote_core::pool::Instant;
use cenote_core::topology::{TopologyDescription, TopologyKind};
use cenote_core::trace::TraceError;
use cenote_core::trace::topology::{SelectionRecord, StepInput, TraceHeader};

use super::change::{Change, Effect};
use super::step_reader::StepReader;

/// What became of the servers of a client.
#[derive(Clone, Debug)]
pub struct History {
    /// The trace's header.
    pub header: TraceHeader,
    /// The time of the last step.
    pub end: Instant,
    /// The number of steps.
    pub steps: u64,
    /// The type of the topology at the beginning.
    pub kind: TopologyKind,
    /// The servers at the beginning: the address, the type, and the same in words.
    pub servers: Vec<(String, Option<ServerKind>, String)>,
    /// What changed.
    pub changes: Vec<Change>,
    /// The requests for a server that had to wait, and when they ended.
    pub selections: Vec<(Instant, SelectionRecord)>,
}

/// A server while it is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its address.
    pub server: String,
    /// What it is; `None` is Unknown.
    pub kind: Option<ServerKind>,
    /// The same in words.
    pub text: String,
    /// The step with which it begins; 0 for the beginning of the trace.
    pub step: u64,
    /// Since when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// Whether it begins with an election.
    pub is_elected: bool,
    /// Why it ends with the removal of the server, if it does.
    pub removed: Option<String>,
}

impl History {
    /// Reads and verifies a trace. Also returns the error that ends it early, if there is one.
    ///
    /// # Errors
    ///
    /// If the beginning of the trace is invalid.
    pub fn read(source: impl Read) -> Result<(Self, Option<TraceError>), TraceError> {
        let mut reader = StepReader::new(source)?;
        let mut history = Self::begin(reader.header(), reader.topology());
        let outcome = reader.each(|view| {
            history.end = history.end.max(view.step.at);
            history.steps = view.step.number;
            history.changes.extend(view.change.cloned());
            if let StepInput::Selection(selection) = &view.step.input {
                history.selections.push((view.step.at, selection.clone()));
            }
            ControlFlow::Continue(())
        });
        // The clocks of two monitors are read before the lock is taken.
        history.changes.sort_by_key(|change| change.at);
        Ok((history, outcome.err()))
    }

    fn begin(header: &TraceHeader, topology: &TopologyDescription) -> Self {
        let servers = topology.servers().map(|(address, server)| {
            (address.to_string(), server.kind(), server.details().to_string())
        });
        Self {
            header: header.clone(),
            end: header.start,
            steps: 0,
            kind: topology.kind,
            servers: servers.collect(),
            changes: Vec::new(),
            selections: Vec::new(),
        }
    }

    /// With the times on the clock of a trace with this origin: that of the same client has the same one.
    #[must_use]
    pub fn on_clock(mut self, origin: i64) -> Self {
        let ahead = self.header.origin.saturating_sub(origin);
        let shift = |at: Instant| shifted(at, ahead);
        self.header.start = shift(self.header.start);
        self.end = shift(self.end);
        self.changes.iter_mut().for_each(|change| change.at = shift(change.at));
        self.selections.iter_mut().for_each(|(at, _)| *at = shift(*at));
        self.header.origin = origin;
        self
    }

    /// What each server was when, in the order of time.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut open: BTreeMap<&str, Span> = BTreeMap::new();
        for (server, kind, text) in &self.servers {
            let span = Span::begin(server, *kind, text, 0, self.header.start);
            open.insert(server, span);
        }
        for change in &self.changes {
            let end = |span| Span { to: change.at, ..span };
            for effect in &change.effects {
                match effect {
                    Effect::Added(server) => {
                        let text = "Unknown: not checked yet";
                        let span = Span::begin(server, None, text, change.step, change.at);
                        spans.extend(open.insert(server, span).map(end));
                    }
                    Effect::Became { server, now, text, .. } => {
                        let span = Span::begin(server, *now, text, change.step, change.at);
                        let is_elected = change.elected.as_deref() == Some(server);
                        let span = Span { is_elected, ..span };
                        spans.extend(open.insert(server, span).map(end));
                    }
                    Effect::Removed(server, reason) => {
                        let removed = Some(reason.clone());
                        let gone = open.remove(server.as_str()).map(end);
                        spans.extend(gone.map(|span| Span { removed, ..span }));
                    }
                    Effect::Closed => {
                        spans.extend(std::mem::take(&mut open).into_values().map(end));
                    }
                    Effect::Kind(..) => {}
                }
            }
        }
        spans.extend(open.into_values().map(|span| Span { to: self.end, ..span }));
        spans.sort_by_key(|span| span.from);
        spans
    }
}

/// The same time on a clock that is behind by these milliseconds.
#[must_use]
pub fn shifted(at: Instant, milliseconds: i64) -> Instant {
    let at = i128::from(at.as_nanos()) + i128::from(milliseconds) * 1_000_000;
    Instant::from_nanos(u64::try_from(at.max(0)).unwrap_or(u64::MAX))
}

impl Span {
    fn begin(server: &str, kind: Option<ServerKind>, text: &str, step: u64, from: Instant) -> Self {
        let (server, text) = (server.to_owned(), text.to_owned());
        Self { server, kind, text, step, from, to: from, is_elected: false, removed: None }
    }
}
