//! SASL in MongoDB's commands: `saslStart` and `saslContinue`.

use bson::raw::{RawBinaryRef, RawDocument, cstr};
use bson::spec::BinarySubtype;

use super::{
    command::Draft,
    field::{self, Field, Fields},
};
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
pub(super) fn start(mechanism: Mechanism, payload: &[u8], database: &str) -> Draft {
    let draft = Draft::new(cstr!("saslStart"), payload.len() + database.len())
        .with(cstr!("mechanism"), mechanism.name())
        .with(cstr!("payload"), binary(payload))
        .with(cstr!("autoAuthorize"), 1);
    match mechanism {
        Mechanism::ScramSha1 | Mechanism::ScramSha256 => {
            draft.with(cstr!("options"), bson::rawdoc! { "skipEmptyExchange": true })
        }
        Mechanism::MongodbX509
        | Mechanism::Plain
        | Mechanism::Gssapi
        | Mechanism::MongodbAws
        | Mechanism::MongodbOidc => draft,
    }
}

pub(super) fn go_on(conversation: i32, payload: &[u8], database: &str) -> Draft {
    Draft::new(cstr!("saslContinue"), payload.len() + database.len())
        .with(cstr!("conversationId"), conversation)
        .with(cstr!("payload"), binary(payload))
}

const fn binary(bytes: &[u8]) -> RawBinaryRef<'_> {
    RawBinaryRef { subtype: BinarySubtype::Generic, bytes }
}
