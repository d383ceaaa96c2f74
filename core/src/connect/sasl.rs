//! SASL in MongoDB's commands: `saslStart` and `saslContinue`.

use bson::raw::{RawBinaryRef, RawDocument, cstr};
use bson::spec::BinarySubtype;
use zeroize::Zeroizing;

use super::{
    command::Draft,
    field::{self, Field, FieldError, Fields},
    mechanism::{MAX_SASL_PAYLOAD, MAX_SASL_REPLIES, SaslConversation},
};
use crate::error::{BoxError, ConnectionError, Stage};
use crate::uri::Mechanism;

/// The server's part of a conversation.
pub(super) struct SaslReply<'a> {
    pub(super) conversation: i32,
    pub(super) done: bool,
    pub(super) payload: &'a [u8],
}

impl<'a> SaslReply<'a> {
    pub(super) fn read(reply: &'a RawDocument) -> Field<Self> {
        let reply = Fields::of(reply, &["conversationId", "done", "payload"])?;
        let conversation = field::small_number(&reply, "conversationId")?;
        Ok(Self {
            conversation: field::required("conversationId", conversation)?,
            done: field::required("done", field::boolean(&reply, "done")?)?,
            payload: field::required("payload", field::binary(&reply, "payload")?)?,
        })
    }
}

/// SCRAM asks to be spared an empty exchange at the end. There is room for the name of the
/// database, which is still to come.
// AU-20
pub(super) fn start(mechanism: Mechanism, payload: &[u8], database: &str) -> Draft {
    let draft = Draft::new(cstr!("saslStart"), payload.len() + database.len())
        .with(cstr!("mechanism"), mechanism.name())
        .with(cstr!("payload"), binary(payload))
        .with(cstr!("autoAuthorize"), 1);
    match mechanism {
        Mechanism::ScramSha1 | Mechanism::ScramSha256 => {
            // AU-21
            draft.with(cstr!("options"), bson::rawdoc! { "skipEmptyExchange": true })
        }
        Mechanism::MongodbX509
        | Mechanism::Plain
        | Mechanism::Gssapi
        | Mechanism::MongodbAws
        | Mechanism::MongodbOidc
        | Mechanism::Custom(_) => draft,
    }
}

// AU-20
pub(super) fn go_on(conversation: i32, payload: &[u8], database: &str) -> Draft {
    Draft::new(cstr!("saslContinue"), payload.len() + database.len())
        .with(cstr!("conversationId"), conversation)
        .with(cstr!("payload"), binary(payload))
}

const fn binary(bytes: &[u8]) -> RawBinaryRef<'_> {
    RawBinaryRef { subtype: BinarySubtype::Generic, bytes }
}

/// The conversation of any mechanism but SCRAM, whose keys take long to derive.
pub(super) struct Sasl {
    pub(super) mechanism: Mechanism,
    conversation: Box<dyn SaslConversation>,
    /// The last payload: at first, the first one.
    pub(super) sent: Zeroizing<Vec<u8>>,
    /// The server's number for it, once it has answered.
    id: Option<i32>,
    replies: usize,
}

impl Sasl {
    pub(super) fn new(
        mechanism: Mechanism,
        mut conversation: Box<dyn SaslConversation>,
    ) -> Result<Self, ConnectionError> {
        let first = conversation.first().map_err(|error| cannot_start(mechanism, error))?;
        let sent = checked(mechanism, first)?;
        Ok(Self { mechanism, conversation, sent, id: None, replies: 0 })
    }

    pub(super) fn first(&self, source: &str) -> Draft {
        start(self.mechanism, &self.sent, source)
    }

    /// The next command; `None` when the conversation is over.
    pub(super) fn reply(
        &mut self,
        reply: &RawDocument,
        source: &str,
    ) -> Result<Option<Draft>, ConnectionError> {
        let reply = SaslReply::read(reply).map_err(from_field)?;
        let id = same_conversation(&mut self.id, &reply)?;
        self.replies += 1;
        if reply.done {
            let finished = self.conversation.finish(reply.payload);
            return finished.map(|()| None).map_err(|error| cannot_go_on(self.mechanism, error));
        }
        if self.replies >= MAX_SASL_REPLIES {
            let name = self.mechanism.name();
            let reason = format!(
                "the mechanism {name} has not ended after {MAX_SASL_REPLIES} replies: check that the server \
                 and the client mean the same mechanism"
            );
            return Err(protocol(&reason));
        }
        let response = self.conversation.respond(reply.payload);
        let response = response.map_err(|error| cannot_go_on(self.mechanism, error))?;
        self.sent = checked(self.mechanism, response)?;
        Ok(Some(go_on(id, &self.sent, source)))
    }
}

/// # Errors
///
/// The reply is to another conversation.
pub(super) fn same_conversation(
    known: &mut Option<i32>,
    reply: &SaslReply<'_>,
) -> Result<i32, ConnectionError> {
    let id = *known.get_or_insert(reply.conversation);
    if id == reply.conversation {
        Ok(id)
    } else {
        Err(protocol("the server answers in another conversation"))
    }
}

pub(super) fn cannot_start(mechanism: Mechanism, error: BoxError) -> ConnectionError {
    let reason = format!("the mechanism {} cannot start: {error}", mechanism.name());
    ConnectionError::configuration(Stage::Authentication, &reason).with_source(error)
}

fn cannot_go_on(mechanism: Mechanism, error: BoxError) -> ConnectionError {
    let reason = match error.downcast_ref::<Ended>() {
        Some(ended) => ended.to_string(),
        None => format!("the mechanism {} cannot go on: {error}", mechanism.name()),
    };
    protocol(&reason).with_source(error)
}

fn checked(mechanism: Mechanism, payload: Vec<u8>) -> Result<Zeroizing<Vec<u8>>, ConnectionError> {
    let payload = Zeroizing::new(payload);
    if payload.len() <= MAX_SASL_PAYLOAD {
        return Ok(payload);
    }
    let reason = format!(
        "the mechanism {} made a payload of {} bytes; at most {MAX_SASL_PAYLOAD} are allowed",
        mechanism.name(),
        payload.len()
    );
    Err(ConnectionError::configuration(Stage::Authentication, &reason))
}

pub(super) fn from_field(error: FieldError) -> ConnectionError {
    protocol(&error.to_string())
}

pub(super) fn protocol(reason: &str) -> ConnectionError {
    ConnectionError::protocol(Stage::Authentication, reason)
}

/// The client's side of a conversation of one message.
pub(super) struct OneMessage(pub(super) Zeroizing<Vec<u8>>);

/// The server goes on after the end of a conversation.
#[derive(Debug, thiserror::Error)]
#[error(
    "the conversation goes on after its end: check that the server and the client mean the same mechanism"
)]
pub(super) struct Ended;

impl SaslConversation for OneMessage {
    fn first(&mut self) -> Result<Vec<u8>, BoxError> {
        Ok(std::mem::take(&mut *self.0))
    }

    fn respond(&mut self, _challenge: &[u8]) -> Result<Vec<u8>, BoxError> {
        Err(Ended.into())
    }
}
