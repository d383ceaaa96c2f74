//! One connection: messages in, commands one after another, replies out.

mod serve;

use std::collections::VecDeque;
use std::time::Duration;

use cenote_core::wire::{Framer, MessageLimit, WireError};

use self::serve::{Job, Pending};
use super::fault::{Ending, Fault};
use super::hello::{self, Wait};
use super::mangle::{self, After, Drip};
use super::output::{ConnectionId, Output};
use super::request::Request;
use super::session::Session;
use super::topology::Service;
use super::world::World;

/// What a connection needs from the server to go on.
pub(super) struct Hub<'a> {
    pub(super) now: Duration,
    pub(super) world: &'a mut World,
    pub(super) outputs: &'a mut VecDeque<Output>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    framer: Framer,
    session: Session,
    turn: Turn,
    /// Bytes that came and were not yet taken.
    waiting: usize,
    /// `StopReading` is in force.
    paused: bool,
    /// A fault from when it was accepted, for the first reply.
    fault: Option<Fault>,
}

/// What a connection is doing.
#[derive(Debug)]
enum Turn {
    /// The next command may come.
    Ready,
    /// A fail point lets a command wait.
    Blocked { until: Duration, job: Box<Job> },
    /// A hello waits for a change of the topology.
    Awaiting { until: Duration, wait: Wait, reply: Box<Pending> },
    /// A reply goes out in pieces.
    Dripping { drip: Drip, then: Box<Turn> },
    /// Nothing is said any more, whatever comes.
    Silent,
    /// The server has forgotten it.
    Ended,
}

/// Bytes that may wait while a command is under way, before the peer is read no more.
const ENOUGH: usize = 1024 * 1024;

impl Connection {
    pub(super) fn new(session: Session, world: &World) -> Self {
        Self {
            framer: Framer::new(world.options.message_limit),
            session,
            turn: Turn::Ready,
            waiting: 0,
            paused: false,
            fault: None,
        }
    }

    pub(super) fn id(&self) -> ConnectionId {
        self.session.id
    }

    pub(super) fn app_name(&self) -> &str {
        self.session.app_name.as_deref().unwrap_or_default()
    }

    /// The server has forgotten it.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.turn, Turn::Ended)
    }

    /// When it goes on by itself.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match &self.turn {
            Turn::Blocked { until, .. } | Turn::Awaiting { until, .. } => Some(*until),
            Turn::Dripping { drip, .. } => Some(drip.next),
            Turn::Ready | Turn::Silent | Turn::Ended => None,
        }
    }

    /// It was accepted just now.
    pub(super) fn accept(&mut self, hub: &mut Hub<'_>) {
        let Some(fault) = hub.world.faults.at_accept(&self.session.suspect()) else { return };
        match mangle::without_reply(&fault, &mut hub.world.entropy) {
            Some((bytes, after)) => self.emit(hub, bytes, after),
            None => self.fault = Some(fault),
        }
    }

    /// Bytes came.
    pub(super) fn receive(&mut self, hub: &mut Hub<'_>, bytes: &[u8]) {
        match self.turn {
            Turn::Silent | Turn::Ended => return,
            Turn::Ready | Turn::Blocked { .. } | Turn::Awaiting { .. } | Turn::Dripping { .. } => {}
        }
        self.framer.push(bytes);
        self.waiting += bytes.len();
        self.drive(hub);
        let most = 2 * hub.world.options.limits.message_size as usize;
        if !self.has_ended() && self.waiting > most.max(2 * ENOUGH) {
            self.end(hub, Output::Close { id: self.id() });
        }
    }

    /// Time went on, or the topology changed.
    pub(super) fn wake(&mut self, hub: &mut Hub<'_>) {
        if self.is_due(hub) {
            self.go_on(hub);
        }
        self.drive(hub);
    }

    /// Ends it from outside, with that.
    pub(super) fn end(&mut self, hub: &mut Hub<'_>, output: Output) {
        hub.outputs.push_back(output);
        self.turn = Turn::Ended;
    }

    /// No command is under way, and no part of one has come.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.turn, Turn::Ready) && self.waiting == 0
    }

    /// The router that it went to.
    pub(super) fn service(&self) -> Service {
        self.session.service
    }

    /// Breaks it from outside.
    pub(super) fn break_off(&mut self, hub: &mut Hub<'_>, ending: Ending) {
        self.emit(hub, Vec::new(), ending.into());
    }

    /// Takes commands as long as there are whole ones and none is under way.
    fn drive(&mut self, hub: &mut Hub<'_>) {
        while matches!(self.turn, Turn::Ready) {
            match self.take(hub.world) {
                Ok(Some(request)) => self.serve(hub, request),
                Ok(None) => break,
                Err(error) => self.hang_up(hub, &error),
            }
        }
        self.press(hub);
    }

    fn is_due(&self, hub: &Hub<'_>) -> bool {
        let news = match &self.turn {
            Turn::Awaiting { wait, .. } => wait.counter != hub.world.topology.counter(),
            Turn::Ready
            | Turn::Blocked { .. }
            | Turn::Dripping { .. }
            | Turn::Silent
            | Turn::Ended => false,
        };
        news || self.deadline().is_some_and(|deadline| deadline <= hub.now)
    }

    /// Does what it waited for.
    fn go_on(&mut self, hub: &mut Hub<'_>) {
        match std::mem::replace(&mut self.turn, Turn::Ready) {
            Turn::Blocked { job, .. } => self.finish(hub, *job),
            Turn::Awaiting { wait, reply, .. } => {
                let body = hello::describe(wait.shape, hub.world, &self.session, hub.now);
                self.stream(hub, *reply, body, wait);
            }
            Turn::Dripping { mut drip, then } => {
                let bytes = drip.next_piece(hub.now);
                hub.outputs.push_back(Output::Send { id: self.id(), bytes });
                self.turn = if drip.is_over() { *then } else { Turn::Dripping { drip, then } };
            }
            turn @ (Turn::Ready | Turn::Silent | Turn::Ended) => self.turn = turn,
        }
    }

    fn take(&mut self, world: &World) -> Result<Option<Request>, WireError> {
        let options = &world.options;
        let Some(frame) = self.framer.next_frame()? else { return Ok(None) };
        self.waiting -= frame.bytes().len();
        let request = Request::read(frame, options.message_limit, &options.compressors)?;
        self.framer.release();
        Ok(Some(request))
    }

    /// Outputs `StopReading` and `ResumeReading` as the backlog grows and shrinks.
    fn press(&mut self, hub: &mut Hub<'_>) {
        let id = self.id();
        let busy = match self.turn {
            Turn::Blocked { .. } | Turn::Awaiting { .. } | Turn::Dripping { .. } => true,
            Turn::Ready | Turn::Silent => false,
            Turn::Ended => return,
        };
        let pause = busy && self.waiting > ENOUGH;
        if pause != self.paused {
            self.paused = pause;
            let output =
                if pause { Output::StopReading { id } } else { Output::ResumeReading { id } };
            hub.outputs.push_back(output);
        }
    }

    /// What came is no message: there are no boundaries any more.
    fn hang_up(&mut self, hub: &mut Hub<'_>, error: &WireError) {
        hub.world.statistics.protocol_errors += 1;
        hub.world.statistics.last_protocol_error = Some(error.to_string());
        self.end(hub, Output::Close { id: self.id() });
    }

    fn emit(&mut self, hub: &mut Hub<'_>, bytes: Vec<u8>, after: After) {
        let id = self.id();
        if !bytes.is_empty() {
            hub.outputs.push_back(Output::Send { id, bytes });
        }
        match after {
            After::GoOn => {}
            After::Close => self.end(hub, Output::Close { id }),
            After::Fin => self.end(hub, Output::Fin { id }),
            After::Reset => self.end(hub, Output::Reset { id }),
            After::HalfClose => {
                hub.outputs.push_back(Output::HalfClose { id });
                self.fall_silent();
            }
            After::Silence => self.fall_silent(),
            After::Drip(drip) => self.turn = Turn::Dripping { drip, then: Box::new(Turn::Ready) },
        }
    }

    /// Ignores further input, and frees what was received.
    fn fall_silent(&mut self) {
        self.turn = Turn::Silent;
        self.waiting = 0;
        self.framer = Framer::new(MessageLimit::DEFAULT);
    }
}
