//! What the server does on one connection.

use std::collections::BTreeMap;

use cenote_core::wire::CompressorId;
use cenote_endpoint::{ScramFault, ServerCertificate};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::value;
use cenote_conform::document::nested::wrong_at;

/// Step by step.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Step {
    /// Exactly these bytes come, before anything else does.
    HearsBytes(Hex),
    /// Whatever comes, if something does.
    HearsSomething,
    SaysBytes(Hex),
    /// The four bytes of the number of the last message that came.
    SaysRequestId,
    /// The server takes its time; in memory, none.
    #[serde(rename = "waitsMS")]
    WaitsMs(u64),
    /// Both shake hands: from here on, all of it is encrypted. In memory, nothing happens.
    Tls(Handshake),
    /// One message comes.
    Hears(Hears),
    Says(Box<Says>),
    /// The server closes the connection.
    Closes,
    /// The server does so without the manners of TCP.
    Resets,
    /// The client closes the connection, and has said no more.
    IsLeft,
    /// Messages like this come, as many as the client likes, and each has this answer, until the client
    /// closes the connection.
    AnswersAlways(Box<Answer>),
}

/// What is asked, and what is said to that.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Answer {
    pub(super) hears: Hears,
    pub(super) says: Says,
}

/// Bytes, as `05 01 00`; or a text in quotes.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Hex(pub(super) Vec<u8>);

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Handshake {
    #[serde(default)]
    pub(super) certificate: Certificate,
    /// The name that the client asks for.
    pub(super) sni: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Certificate {
    #[default]
    Good,
    WrongHost,
    Expired,
    SelfSigned,
    ForeignAuthority,
}

/// A message that has to come.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Hears {
    /// The first key of its body.
    pub(super) command: String,
    /// All of its body, or with `more` a part.
    pub(super) body: Map<String, Value>,
    #[serde(default)]
    pub(super) more: bool,
    /// All flags that are set.
    #[serde(default)]
    pub(super) flags: Vec<Flag>,
    /// How it is compressed; by default not at all.
    #[serde(default, deserialize_with = "compressor")]
    pub(super) compressed: Option<CompressorId>,
    /// All sections of documents.
    #[serde(default)]
    pub(super) sequences: BTreeMap<String, Vec<Value>>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) enum Flag {
    ChecksumPresent,
    MoreToCome,
    ExhaustAllowed,
}

/// A message, true or false.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Says {
    pub(super) body: Map<String, Value>,
    #[serde(default)]
    pub(super) flags: Vec<Flag>,
    /// Bits that have no name.
    #[serde(default)]
    pub(super) flag_bits: u32,
    #[serde(default, deserialize_with = "compressor")]
    pub(super) compressed: Option<CompressorId>,
    /// What a compressed message says of its length, if that is not true.
    pub(super) uncompressed_size: Option<i32>,
    /// What it says of how it is compressed, if that is not true.
    pub(super) compressor_id: Option<u8>,
    /// Which message it answers, if not the one that is due.
    pub(super) response_to: Option<i32>,
    pub(super) op_code: Option<i32>,
    pub(super) message_length: Option<i32>,
    pub(super) checksum: Option<Checksum>,
    /// The kind of one more section, which is empty.
    pub(super) section: Option<u8>,
    /// More sections of documents, by their identifiers.
    #[serde(default)]
    pub(super) sequences: Vec<Sequence>,
    /// What its payload is.
    pub(super) scram: Option<Scram>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) enum Checksum {
    Right,
    Wrong,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Sequence {
    pub(super) identifier: String,
    pub(super) documents: Vec<Map<String, Value>>,
}

/// The server's part of SCRAM, as an answer to what it heard last.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Scram {
    pub(super) answers: ClientsMessage,
    /// 4096 by default.
    pub(super) iterations: Option<u32>,
    pub(super) lie: Option<Lie>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ClientsMessage {
    First,
    Proof,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Lie {
    ForeignNonce,
    WrongSignature,
    NoSignature,
    Error,
}

impl Script {
    /// # Errors
    ///
    /// What can never come to pass.
    pub(super) fn check(&self) -> Result<(), String> {
        let rest =
            self.steps.iter().position(Step::is_end).map_or(0, |end| self.steps.len() - end - 1);
        if rest > 0 {
            return Err(format!("{rest} steps come after the connection is closed"));
        }
        if let Some(Step::Says(_)) = self.steps.first() {
            return Err("a server does not begin".to_owned());
        }
        let mut steps = self.steps.iter().enumerate();
        steps.try_for_each(|(index, step)| {
            step.check().map_err(|what| wrong_at(&index.to_string(), what))
        })
    }
}

impl Step {
    /// Whether the connection is closed then.
    const fn is_end(&self) -> bool {
        matches!(self, Self::Closes | Self::Resets | Self::IsLeft | Self::AnswersAlways(_))
    }

    /// # Errors
    ///
    /// What cannot be compared with, or cannot be said.
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Hears(hears) => hears.check().map_err(|what| wrong_at("hears/body", what)),
            Self::Says(says) => says.check().map_err(|what| wrong_at("says/body", what)),
            Self::AnswersAlways(answer) => {
                let hears = answer.hears.check();
                hears.map_err(|what| wrong_at("answersAlways/hears/body", what))?;
                let says = answer.says.check();
                says.map_err(|what| wrong_at("answersAlways/says/body", what))
            }
            Self::HearsBytes(_)
            | Self::HearsSomething
            | Self::SaysBytes(_)
            | Self::SaysRequestId
            | Self::WaitsMs(_)
            | Self::Tls(_)
            | Self::Closes
            | Self::Resets
            | Self::IsLeft => Ok(()),
        }
    }
}

impl Hears {
    fn check(&self) -> Result<(), String> {
        if !self.more && !self.body.contains_key(&self.command) {
            return Err(format!("it has no `{}`", self.command));
        }
        value::check(&Value::Object(self.body.clone()))
    }
}

impl Says {
    fn check(&self) -> Result<(), String> {
        value::written(&self.body).map(drop)
    }
}

impl Flag {
    pub(super) const fn bit(self) -> u32 {
        match self {
            Self::ChecksumPresent => 1,
            Self::MoreToCome => 1 << 1,
            Self::ExhaustAllowed => 1 << 16,
        }
    }

    pub(super) fn bits(flags: &[Self]) -> u32 {
        flags.iter().fold(0, |bits, flag| bits | flag.bit())
    }
}

impl Certificate {
    pub(super) const fn kind(self) -> ServerCertificate {
        match self {
            Self::Good => ServerCertificate::Good,
            Self::WrongHost => ServerCertificate::WrongHost,
            Self::Expired => ServerCertificate::Expired,
            Self::SelfSigned => ServerCertificate::SelfSigned,
            Self::ForeignAuthority => ServerCertificate::ForeignAuthority,
        }
    }
}

impl Lie {
    pub(super) const fn fault(self) -> ScramFault {
        match self {
            Self::ForeignNonce => ScramFault::ForeignNonce,
            Self::WrongSignature => ScramFault::WrongSignature,
            Self::NoSignature => ScramFault::NoSignature,
            Self::Error => ScramFault::Error,
        }
    }
}

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut bytes = Vec::new();
        for part in text.split_whitespace() {
            match part.strip_prefix('\'').and_then(|part| part.strip_suffix('\'')) {
                Some(text) => bytes.extend_from_slice(text.as_bytes()),
                None => bytes.push(byte(part)?),
            }
        }
        Ok(Self(bytes))
    }
}

fn byte(text: &str) -> Result<u8, String> {
    let byte = u8::from_str_radix(text, 16).ok().filter(|_| text.len() == 2);
    byte.ok_or_else(|| format!("`{text}` is neither a byte of two digits nor a text in quotes"))
}

fn compressor<'de, D: serde::Deserializer<'de>>(
    value: D,
) -> Result<Option<CompressorId>, D::Error> {
    let name = String::deserialize(value)?;
    let id = CompressorId::from_name(&name);
    id.map(Some).ok_or_else(|| serde::de::Error::custom(format!("no compressor `{name}`")))
}
