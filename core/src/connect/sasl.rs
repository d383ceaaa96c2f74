//! SASL in MongoDB's commands: `saslStart` and `saslContinue` (AU-20).

use bson::raw::{RawBinaryRef, RawDocument, cstr};
use bson::spec::BinarySubtype;

use super::{
    command::Draft,
    field::{self, Field},
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
        let conversation = field::small_number(reply, "conversationId")?;
        Ok(Self {
            conversation: field::required("conversationId", conversation)?,
            done: field::required("done", field::boolean(reply, "done")?)?,
            payload: field::required("payload", field::binary(reply, "payload")?)?,
        })
    }
}

/// SCRAM asks to be spared an empty exchange at the end (AU-21).
pub(super) fn start(mechanism: Mechanism, payload: &[u8]) -> Draft {
    let draft = Draft::new(cstr!("saslStart"), payload.len() + DATABASE_ROOM)
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

pub(super) fn go_on(conversation: i32, payload: &[u8]) -> Draft {
    Draft::new(cstr!("saslContinue"), payload.len() + DATABASE_ROOM)
        .with(cstr!("conversationId"), conversation)
        .with(cstr!("payload"), binary(payload))
}

/// Names of databases are shorter: servers take up to 63 bytes.
const DATABASE_ROOM: usize = 256;

const fn binary(bytes: &[u8]) -> RawBinaryRef<'_> {
    RawBinaryRef { subtype: BinarySubtype::Generic, bytes }
}
