//! Authentication, as commands and within hello. Written from the specifications alone and without
//! the client's side in `cenote-core`, so that no mistake of one hides a mistake of the other.

mod aws;
mod credential;
mod oidc;
mod plain;
mod scram;
mod users;
mod x509;

use bson::raw::{RawDocumentBuf, cstr};
use bson::spec::BinarySubtype;
use bson::{Binary, RawBsonRef, RawDocument};

use self::aws::Challenge;
use self::credential::Hash;
use self::scram::Exchange;
pub(super) use self::users::Users;
use super::commands::{Answer, Context};
use super::fault::ScramFault;
use super::refusal::{Refusal, code};
use super::request::{self, first_key, mismatch, truth};
use super::user::Mechanism;

/// A login under way.
#[derive(Debug)]
pub(super) struct Conversation {
    id: i32,
    user: String,
    database: String,
    /// The client asked to skip the empty exchange, and the server agrees.
    skips_empty_exchange: bool,
    fault: Option<ScramFault>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// The client's proof is due.
    Proof(Exchange),
    /// An empty message from the client is due: once, or endlessly.
    Nothing,
    /// A request to AWS STS that the client has signed is due.
    Signature(Challenge),
}

/// A login command, and the database that it was sent to.
struct Login<'a> {
    command: &'a RawDocument,
    database: &'a str,
}

pub(super) fn sasl_start(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let request = context.request;
    let database = request.database.as_deref().unwrap_or_default();
    start(context, &Login { command: &request.body, database }).map(Answer::Reply)
}

pub(super) fn sasl_continue(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let request = context.request;
    let Some(conversation) = context.session.conversation.take() else {
        return Err(Refusal::new(code::PROTOCOL_ERROR, "No SASL session state found"));
    };
    if request.whole("conversationId")? != Some(i64::from(conversation.id)) {
        return Err(Refusal::new(code::PROTOCOL_ERROR, "sasl: Mismatched conversation id"));
    }
    let payload = payload(&request.body)?;
    go_on(context, conversation, payload).map(Answer::Reply)
}

pub(super) fn authenticate(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let request = context.request;
    let database = request.database.as_deref().unwrap_or_default();
    x509::log_in(context, &Login { command: &request.body, database }).map(Answer::Reply)
}

/// Speculative authentication in hello: `None` if it fails, because the client then starts again.
pub(super) fn speculate(
    context: &mut Context<'_>,
    command: &RawDocument,
) -> Option<RawDocumentBuf> {
    let database = request::get(command, "db").ok().flatten().and_then(RawBsonRef::as_str)?;
    let login = Login { command, database };
    let failed = context.world.statistics.failed_logins;
    let answer = match first_key(command) {
        "saslStart" => start(context, &login),
        "authenticate" => x509::log_in(context, &login),
        _ => return None,
    };
    context.world.statistics.failed_logins = failed;
    answer.ok()
}

fn start(context: &mut Context<'_>, login: &Login<'_>) -> Result<RawDocumentBuf, Refusal> {
    let mechanism = mechanism(context, login)?;
    let payload = payload(login.command)?;
    context.session.conversation = None;
    context.session.conversations = context.session.conversations.wrapping_add(1);
    match mechanism {
        Mechanism::ScramSha1 => start_scram(context, login, Hash::Sha1, payload),
        Mechanism::ScramSha256 => start_scram(context, login, Hash::Sha256, payload),
        Mechanism::Plain => {
            plain::log_in(context, login, payload)?;
            Ok(end(context, login))
        }
        Mechanism::MongodbOidc => {
            oidc::log_in(context, login, payload)?;
            Ok(end(context, login))
        }
        Mechanism::MongodbAws => start_aws(context, login, payload),
        Mechanism::MongodbX509 => {
            let message = "MONGODB-X509 is not done with saslStart, but with authenticate";
            Err(Refusal::new(code::BAD_VALUE, message))
        }
    }
}

/// The reply to the only message of a mechanism, which ends the conversation unless it is endless.
fn end(context: &mut Context<'_>, login: &Login<'_>) -> RawDocumentBuf {
    let id = context.session.conversations;
    let fault = context.session.scram_fault.take();
    let goes_on = fault == Some(ScramFault::Endless);
    if goes_on {
        context.session.conversation = Some(Conversation {
            id,
            user: String::new(),
            database: login.database.to_owned(),
            skips_empty_exchange: false,
            fault,
            step: Step::Nothing,
        });
    }
    reply(id, !goes_on, &[])
}

/// The mechanism that a login names.
fn mechanism(context: &Context<'_>, login: &Login<'_>) -> Result<Mechanism, Refusal> {
    let name = request::get(login.command, "mechanism")?.and_then(RawBsonRef::as_str);
    let name = name.ok_or_else(|| mismatch("mechanism", "string"))?;
    let enabled = context.world.users.enabled();
    Mechanism::from_name(name).filter(|mechanism| enabled.contains(mechanism)).ok_or_else(|| {
        let message =
            format!("Received authentication for mechanism {name} which is unknown or not enabled");
        Refusal::new(code::MECHANISM_UNAVAILABLE, message)
    })
}

fn start_scram(
    context: &mut Context<'_>,
    login: &Login<'_>,
    hash: Hash,
    payload: &[u8],
) -> Result<RawDocumentBuf, Refusal> {
    let fault = context.session.scram_fault.take();
    let first = scram::ClientFirst::read(payload).map_err(|_| fail(context))?;
    let credential = context.world.users.credential(login.database, &first.user, hash);
    let Some(credential) = credential.cloned() else { return Err(fail(context)) };
    let nonce = scram::nonce(&mut context.world.entropy);
    let (exchange, server_first) = Exchange::begin(credential, &first, &nonce, fault);
    let options = request::get(login.command, "options")?.and_then(RawBsonRef::as_document);
    let asks = match options {
        Some(options) => request::get(options, "skipEmptyExchange")?.and_then(truth),
        None => None,
    };
    let id = context.session.conversations;
    context.session.conversation = Some(Conversation {
        id,
        user: first.user,
        database: login.database.to_owned(),
        skips_empty_exchange: asks == Some(true) && context.world.users.spares_empty_exchange(),
        fault,
        step: Step::Proof(exchange),
    });
    Ok(reply(id, false, server_first.as_bytes()))
}

fn start_aws(
    context: &mut Context<'_>,
    login: &Login<'_>,
    payload: &[u8],
) -> Result<RawDocumentBuf, Refusal> {
    let challenge = Challenge::begin(context, login, payload)?;
    let (id, message) = (context.session.conversations, challenge.message());
    context.session.conversation = Some(Conversation {
        id,
        user: String::new(),
        database: login.database.to_owned(),
        skips_empty_exchange: true,
        fault: None,
        step: Step::Signature(challenge),
    });
    Ok(reply(id, false, &message))
}

fn go_on(
    context: &mut Context<'_>,
    mut conversation: Conversation,
    payload: &[u8],
) -> Result<RawDocumentBuf, Refusal> {
    let (text, mut done) = match &conversation.step {
        Step::Proof(exchange) => match exchange.finish(payload, conversation.fault) {
            Ok(server_final) => (server_final, conversation.skips_empty_exchange),
            Err(_) => return Err(fail(context)),
        },
        Step::Signature(challenge) => {
            let user = challenge.finish(context, payload)?;
            logged_in(context, user, conversation.database);
            return Ok(reply(conversation.id, true, &[]));
        }
        Step::Nothing if payload.is_empty() => (String::new(), true),
        Step::Nothing => {
            let message = "the last message of the conversation must be empty";
            return Err(Refusal::new(code::PROTOCOL_ERROR, message));
        }
    };
    match conversation.fault {
        Some(ScramFault::Endless) => done = false,
        Some(ScramFault::NoSignature | ScramFault::Error) => done = true,
        Some(_) | None => {}
    }
    let id = conversation.id;
    if done {
        logged_in(context, conversation.user, conversation.database);
    } else {
        conversation.step = Step::Nothing;
        context.session.conversation = Some(conversation);
    }
    Ok(reply(id, done, text.as_bytes()))
}

fn logged_in(context: &mut Context<'_>, user: String, database: String) {
    let user = (user, database);
    if !context.session.authenticated.contains(&user) {
        context.session.authenticated.push(user);
    }
}

/// The same error for every failed login.
fn fail(context: &mut Context<'_>) -> Refusal {
    context.world.statistics.failed_logins += 1;
    Refusal::new(code::AUTHENTICATION_FAILED, "Authentication failed.")
}

fn payload(command: &RawDocument) -> Result<&[u8], Refusal> {
    let payload = request::get(command, "payload")?.and_then(RawBsonRef::as_binary);
    payload.map(|binary| binary.bytes).ok_or_else(|| mismatch("payload", "binData"))
}

fn reply(conversation: i32, done: bool, payload: &[u8]) -> RawDocumentBuf {
    let payload = Binary { subtype: BinarySubtype::Generic, bytes: payload.to_vec() };
    let mut reply = RawDocumentBuf::new();
    reply.append(cstr!("conversationId"), conversation);
    reply.append(cstr!("done"), done);
    reply.append(cstr!("payload"), payload);
    reply
}
