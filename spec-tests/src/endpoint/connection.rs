//! One connection: messages in, commands one after another, replies out.

use std::collections::VecDeque;
use std::time::Duration;

use bson::raw::cstr;
use bson::{RawDocument, RawDocumentBuf};
use cenote_core::wire::{Framer, Ids, WireError};

use super::commands::{self, Answer, Context, Definition};
use super::fail_point::Verdict;
use super::fault::{Ending, Fault};
use super::faults::Command;
use super::hello::{self, Wait};
use super::mangle::{self, After, Drip};
use super::output::{ConnectionId, Output};
use super::refusal::{Refusal, code};
use super::replies::Envelope;
use super::request::{Form, Request};
use super::session::Session;
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
    /// Whoever has the socket was told to stop reading.
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

/// A command on its way.
#[derive(Debug)]
struct Job {
    request: Request,
    admitted: Result<&'static Definition, Refusal>,
    verdict: Verdict,
    fault: Option<Fault>,
}

/// A reply on its way.
#[derive(Debug)]
struct Pending {
    name: String,
    form: Form,
    /// The message that it answers: the request, or the reply before it (MS-09).
    response_to: i32,
    fault: Option<Fault>,
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
                let body = hello::after_wait(&wait, hub.world, &self.session, hub.now);
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

    /// Tells whoever has the socket when to read no more, and when again.
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

    /// What came is no message: there are no boundaries any more (MS-15).
    fn hang_up(&mut self, hub: &mut Hub<'_>, error: &WireError) {
        hub.world.statistics.protocol_errors += 1;
        hub.world.statistics.last_protocol_error = Some(error.to_string());
        self.end(hub, Output::Close { id: self.id() });
    }

    /// A command came: who may run it is decided first, then faults, then fail points.
    fn serve(&mut self, hub: &mut Hub<'_>, request: Request) {
        let known = commands::find(&request.name);
        let statistics = &mut hub.world.statistics;
        match known {
            Some(known) => *statistics.commands.entry(known.name).or_default() += 1,
            None => statistics.unknown_commands += 1,
        }
        if known.is_some_and(Definition::is_handshake) && !self.session.introduced {
            self.session.app_name = hello::app_name_of(&request);
        }
        let fault = self.fault(hub, &request, known);
        let context = self.context(hub, &request);
        let admitted = commands::admit(known, &context);
        let verdict = match admitted {
            Ok(known) => self.verdict(hub, known, &request),
            Err(_) => Verdict::default(),
        };
        let block = verdict.block;
        let job = Job { request, admitted, verdict, fault };
        match block {
            Some(time) => self.block(hub, job, time),
            None => self.finish(hub, job),
        }
    }

    fn fault(
        &mut self,
        hub: &mut Hub<'_>,
        request: &Request,
        known: Option<&'static Definition>,
    ) -> Option<Fault> {
        let command = Command { name: &request.name, known };
        let mut seen = std::mem::take(&mut self.session.seen);
        let due = hub.world.faults.at_command(&self.session.suspect(), command, &mut seen);
        self.session.seen = seen;
        let fault = self.fault.take().or(due);
        match fault {
            Some(Fault::Scram(scram)) => {
                self.session.scram_fault = Some(scram);
                None
            }
            fault => fault,
        }
    }

    fn verdict(&self, hub: &mut Hub<'_>, known: &Definition, request: &Request) -> Verdict {
        let World { fail_point, entropy, .. } = &mut *hub.world;
        let verdict = fail_point.judge(known, self.session.app_name.as_deref(), entropy);
        let mut verdict = verdict.unwrap_or_default();
        // A command that has less time than it has to wait fails when its own is up.
        let time = request.whole("maxTimeMS").ok().flatten().filter(|time| *time > 0);
        let time = time.and_then(|time| u64::try_from(time).ok()).map(Duration::from_millis);
        if let (Some(block), Some(time)) = (verdict.block, time) {
            if time < block {
                let error = Some(code::MAX_TIME_MS_EXPIRED);
                verdict = Verdict { block: Some(time), error, ..Verdict::default() };
            }
        }
        verdict
    }

    fn block(&mut self, hub: &Hub<'_>, job: Job, time: Duration) {
        self.turn = Turn::Blocked { until: hub.now.saturating_add(time), job: Box::new(job) };
    }

    /// The command runs, or does not, and is answered.
    fn finish(&mut self, hub: &mut Hub<'_>, job: Job) {
        let Job { request, admitted, verdict, fault } = job;
        if verdict.close {
            return self.end(hub, Output::Close { id: self.id() });
        }
        let pending = Pending {
            name: request.name.clone(),
            form: request.form,
            response_to: request.form.request_id,
            fault,
        };
        let mut context = self.context(hub, &request);
        let answer = match (admitted, failed(&verdict, &request)) {
            (Err(refusal), _) | (Ok(_), Some(refusal)) => Err(refusal),
            (Ok(definition), None) => commands::run(definition, &mut context),
        };
        match answer {
            Ok(Answer::Reply(mut body)) => {
                body.append(cstr!("ok"), 1.0);
                if let Some(error) = &verdict.write_concern_error {
                    add_write_concern_error(&mut body, error, verdict.labels.as_deref());
                }
                self.reply(hub, pending, &body, false);
            }
            Ok(Answer::Wait(wait)) => self.wait(hub, pending, wait),
            Ok(Answer::Stream(body, wait)) => self.stream(hub, pending, body, wait),
            Err(refusal) => {
                let mut body = refusal.reply();
                if refusal.tells_of_the_topology() {
                    let version = hub.world.topology.version(self.session.service);
                    body.append(cstr!("topologyVersion"), version);
                }
                self.reply(hub, pending, &body, false);
            }
        }
    }

    fn context<'a>(&'a mut self, hub: &'a mut Hub<'_>, request: &'a Request) -> Context<'a> {
        let Hub { now, world, .. } = hub;
        Context { now: *now, world, session: &mut self.session, request }
    }

    /// Streams stand still for a moment at least, so that one without a wait ends in no time.
    fn wait(&mut self, hub: &Hub<'_>, pending: Pending, wait: Wait) {
        const LEAST: Duration = Duration::from_millis(10);
        let longest = if wait.exhaust { wait.longest.max(LEAST) } else { wait.longest };
        let until = hub.now.saturating_add(longest);
        self.turn = Turn::Awaiting { until, wait, reply: Box::new(pending) };
    }

    /// A hello's reply, and with `exhaustAllowed` the wait for the next one.
    fn stream(
        &mut self,
        hub: &mut Hub<'_>,
        pending: Pending,
        mut body: RawDocumentBuf,
        wait: Wait,
    ) {
        body.append(cstr!("ok"), 1.0);
        let (name, form) = (pending.name.clone(), pending.form);
        let sent = self.reply(hub, pending, &body, wait.exhaust);
        if !wait.exhaust {
            return;
        }
        let wait = Wait { counter: hub.world.topology.counter(), ..wait };
        let next = Pending { name, form, response_to: sent, fault: None };
        match std::mem::replace(&mut self.turn, Turn::Ready) {
            Turn::Ready => self.wait(hub, next, wait),
            Turn::Dripping { drip, .. } => {
                self.wait(hub, next, wait);
                let then = std::mem::replace(&mut self.turn, Turn::Ready);
                self.turn = Turn::Dripping { drip, then: Box::new(then) };
            }
            turn @ (Turn::Blocked { .. } | Turn::Awaiting { .. } | Turn::Silent | Turn::Ended) => {
                self.turn = turn;
            }
        }
    }

    /// Sends a reply, with what goes wrong with it, and gives its name.
    fn reply(
        &mut self,
        hub: &mut Hub<'_>,
        pending: Pending,
        body: &RawDocument,
        more_to_come: bool,
    ) -> i32 {
        let Pending { name, form, response_to, fault } = pending;
        self.turn = Turn::Ready;
        let request_id = hub.world.request_ids.next_id();
        let ids = Ids { request_id, response_to };
        let envelope = Envelope { ids, form, name: &name, more_to_come };
        let mangled = if form.flags.more_to_come {
            // Nobody waits for a reply (MS-08), but the connection may break.
            fault.and_then(|fault| mangle::without_reply(&fault, &mut hub.world.entropy))
        } else {
            match mangle::reply(fault.as_ref(), &envelope, body, hub) {
                Ok(mangled) => Some(mangled),
                Err(error) => {
                    self.hang_up(hub, &error);
                    return request_id;
                }
            }
        };
        if let Some((bytes, after)) = mangled {
            self.emit(hub, bytes, after);
        }
        request_id
    }

    fn emit(&mut self, hub: &mut Hub<'_>, bytes: Vec<u8>, after: After) {
        let id = self.id();
        if !bytes.is_empty() {
            hub.outputs.push_back(Output::Send { id, bytes });
        }
        match after {
            After::GoOn => {}
            After::Close => self.end(hub, Output::Close { id }),
            After::Reset => self.end(hub, Output::Reset { id }),
            After::HalfClose => {
                hub.outputs.push_back(Output::HalfClose { id });
                self.fall_silent();
            }
            After::Silence => self.fall_silent(),
            After::Drip(drip) => self.turn = Turn::Dripping { drip, then: Box::new(Turn::Ready) },
        }
    }

    /// What comes now is for nobody; what came gives its memory back.
    fn fall_silent(&mut self) {
        self.turn = Turn::Silent;
        self.waiting = 0;
        self.framer = Framer::new(cenote_core::wire::MessageLimit::DEFAULT);
    }
}

/// What a fail point makes of a command that it lets not run.
fn failed(verdict: &Verdict, request: &Request) -> Option<Refusal> {
    let code = verdict.error?;
    let message = match code {
        code::MAX_TIME_MS_EXPIRED => "operation exceeded time limit",
        _ => "Failing command via 'failCommand' failpoint",
    };
    let mut refusal = Refusal::new(code, message);
    refusal.labels = match &verdict.labels {
        Some(labels) => labels.clone(),
        None if is_retryable_write(request) && refusal.is_retryable_write() => {
            vec!["RetryableWriteError".to_owned()]
        }
        None => Vec::new(),
    };
    Some(refusal)
}

/// A write that a session has numbered, outside of a transaction.
fn is_retryable_write(request: &Request) -> bool {
    let has = |key| matches!(request.get(key), Ok(Some(_)));
    has("txnNumber") && !has("autocommit")
}

fn add_write_concern_error(
    body: &mut RawDocumentBuf,
    error: &RawDocument,
    labels: Option<&[String]>,
) {
    body.append(cstr!("writeConcernError"), error);
    if let Some(labels) = labels {
        let labels: bson::raw::RawArrayBuf = labels.iter().map(String::as_str).collect();
        body.append(cstr!("errorLabels"), labels);
    }
}
