//! A command: whether it runs, what goes wrong with it, and its reply.

use std::time::Duration;

use bson::raw::{RawArrayBuf, cstr};
use bson::{RawDocument, RawDocumentBuf};
use cenote_core::wire::Ids;

use super::{Connection, Hub, Turn};
use crate::commands::{self, Answer, Context, Definition};
use crate::fail_point::Verdict;
use crate::fault::Fault;
use crate::faults::Command;
use crate::hello::{self, Wait};
use crate::mangle;
use crate::output::Output;
use crate::refusal::{Refusal, code};
use crate::replies::Envelope;
use crate::request::{Form, Request};
use crate::slow;
use crate::world::World;

/// A command on its way.
#[derive(Debug)]
pub(super) struct Job {
    work: Work,
    verdict: Verdict,
}

/// What a command does once it may.
#[derive(Debug)]
enum Work {
    Run {
        request: Request,
        admitted: Result<&'static Definition, Refusal>,
        fault: Option<Fault>,
    },
    /// A stream goes on: for fail points that is a command, too.
    Stream {
        next: Pending,
        wait: Wait,
    },
}

/// A reply on its way.
#[derive(Debug)]
pub(super) struct Pending {
    name: String,
    form: Form,
    /// The message that it answers: the request, or the reply before it.
    response_to: i32,
    fault: Option<Fault>,
}

impl Connection {
    /// Runs a received command: first permission, then faults, then fail points.
    pub(super) fn serve(&mut self, hub: &mut Hub<'_>, request: Request) {
        let known = commands::find(&request.name);
        hub.world.observer.see(&request.body);
        let statistics = &mut hub.world.statistics;
        match known {
            Some(known) => *statistics.commands.entry(known.name).or_default() += 1,
            None => statistics.unknown_commands += 1,
        }
        if !known.is_some_and(Definition::is_handshake) {
            statistics.last_max_time = request.whole("maxTimeMS").ok().flatten();
        }
        if let Some(compressor) = request.form.compressor {
            *statistics.compressed_commands.entry(compressor.id().name()).or_default() += 1;
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
        self.begin(hub, Job { work: Work::Run { request, admitted, fault }, verdict });
    }

    fn begin(&mut self, hub: &mut Hub<'_>, job: Job) {
        match job.verdict.block {
            Some(time) => {
                let until = hub.now.saturating_add(time);
                self.turn = Turn::Blocked { until, job: Box::new(job) };
            }
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
        let World { fail_point, entropy, topology, .. } = &mut *hub.world;
        let verdict = fail_point.judge(known, self.session.app_name.as_deref(), entropy);
        let mut verdict = verdict.unwrap_or_default();
        let work = slow::time_of(request);
        // A command that has less time than it takes fails: one that works when its time is up, and one that a fail
        // point blocks when that ends, as on a mongod; a mongos does not wait for that.
        let time = request.whole("maxTimeMS").ok().flatten().filter(|time| *time > 0);
        let time = time.and_then(|time| u64::try_from(time).ok()).map(Duration::from_millis);
        let block = verdict.block.or(work);
        verdict.block = block;
        if let (Some(block), Some(time)) = (block, time)
            && time < block
        {
            let is_blocked = work.is_none() && !topology.is_router();
            let until = if is_blocked { block } else { time };
            let error = Some(code::MAX_TIME_MS_EXPIRED);
            verdict = Verdict { block: Some(until), error, ..Verdict::default() };
        }
        verdict
    }

    /// The command runs, or does not, and is answered.
    pub(super) fn finish(&mut self, hub: &mut Hub<'_>, job: Job) {
        let Job { work, verdict } = job;
        if verdict.close {
            return self.end(hub, Output::Close { id: self.id() });
        }
        let (request, admitted, fault) = match work {
            Work::Run { request, admitted, fault } => (request, admitted, fault),
            Work::Stream { next, wait } => {
                return match verdict.error {
                    Some(code) => {
                        let mut refusal = Refusal::by_fail_point(code);
                        refusal.labels = verdict.labels.unwrap_or_default();
                        self.refuse(hub, next, &refusal);
                    }
                    None if wait.counter == hub.world.topology.counter() => {
                        self.wait(hub, next, wait);
                    }
                    None => {
                        let body = hello::describe(wait.shape, hub.world, &self.session, hub.now);
                        self.stream(hub, next, body, wait);
                    }
                };
            }
        };
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
            Err(refusal) => self.refuse(hub, pending, &refusal),
        }
    }

    fn refuse(&mut self, hub: &mut Hub<'_>, pending: Pending, refusal: &Refusal) {
        let mut body = refusal.reply();
        if refusal.is_not_primary() && hub.world.topology.is_replica_set() {
            let version = hub.world.topology.version(self.session.service);
            body.append(cstr!("topologyVersion"), version);
        }
        self.reply(hub, pending, &body, false);
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
    pub(super) fn stream(
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
            Turn::Ready => {
                let World { fail_point, entropy, .. } = &mut *hub.world;
                let judge =
                    |known| fail_point.judge(known, self.session.app_name.as_deref(), entropy);
                let verdict = commands::find(&next.name).and_then(judge).unwrap_or_default();
                self.begin(hub, Job { work: Work::Stream { next, wait }, verdict });
            }
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
            // No reply is due (MS-08), but the connection may break.
            let fault = fault.as_ref();
            fault.and_then(|fault| mangle::without_reply(fault, &mut hub.world.entropy))
        } else {
            match mangle::reply(fault.as_ref(), &envelope, body, hub) {
                Ok(mangled) => Some(mangled),
                Err(error) => {
                    self.hang_up(hub, &error);
                    return request_id;
                }
            }
        };
        match mangled {
            Some((bytes, _)) if fault == Some(Fault::Crossed) => self.cross(hub, bytes),
            Some((bytes, after)) => self.emit(hub, bytes, after),
            None => {}
        }
        request_id
    }

    /// Sends the reply on the connection whose reply waits, and that one here; or lets it wait.
    fn cross(&self, hub: &mut Hub<'_>, bytes: Vec<u8>) {
        let id = self.id();
        match hub.world.crossed.take() {
            Some((other, theirs)) if other != id => {
                hub.outputs.push_back(Output::Send { id: other, bytes });
                hub.outputs.push_back(Output::Send { id, bytes: theirs });
            }
            Some(_) | None => hub.world.crossed = Some((id, bytes)),
        }
    }
}

/// What a fail point makes of a command that it lets not run.
fn failed(verdict: &Verdict, request: &Request) -> Option<Refusal> {
    let code = verdict.error?;
    let mut refusal = Refusal::by_fail_point(code);
    if let Some(message) = &verdict.message {
        refusal.message.clone_from(message);
    }
    refusal.labels = match &verdict.labels {
        Some(labels) => labels.clone(),
        None if is_retryable_write(request) && refusal.is_retryable_write() => {
            vec!["RetryableWriteError".to_owned()]
        }
        None if is_in_transaction(request) && refusal.is_transient() => {
            vec!["TransientTransactionError".to_owned()]
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

fn is_in_transaction(request: &Request) -> bool {
    matches!(request.get("autocommit"), Ok(Some(_)))
}

fn add_write_concern_error(
    body: &mut RawDocumentBuf,
    error: &RawDocument,
    labels: Option<&[String]>,
) {
    body.append(cstr!("writeConcernError"), error);
    if let Some(labels) = labels {
        let labels: RawArrayBuf = labels.iter().map(String::as_str).collect();
        body.append(cstr!("errorLabels"), labels);
    }
}
