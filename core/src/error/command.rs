use core::fmt;

use bson::{RawBsonRef, RawDocument, RawDocumentBuf};

use crate::number;
use crate::one_line::OneLine;
use crate::sdam::TopologyVersion;

/// An error reply of a server.
///
/// Nothing of the reply is trusted: a field of the wrong type counts as absent.
#[derive(Clone, PartialEq)]
pub struct CommandError {
    /// Where in the reply the error is.
    pub part: ReplyPart,
    /// The number of the error. If there is one, it alone determines the meaning.
    pub code: Option<i32>,
    /// The code's name, for people only: names change between server versions.
    pub code_name: Option<String>,
    /// The message of the server; may be empty. May hold line breaks, and names of
    /// databases, collections and users; [`Display`](fmt::Display) shows it as one line.
    pub message: String,
    /// The labels that the server attached, each once, in its order; the first 100 if it sends
    /// more.
    pub labels: Vec<String>,
    /// How much the server knew of its own state when it answered.
    pub topology_version: Option<TopologyVersion>,
    reply: RawDocumentBuf,
}

/// The part of a reply that holds an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReplyPart {
    /// The command failed (`ok: 0`).
    Command,
    /// The command succeeded and its write concern was not met (`writeConcernError`). The
    /// application gets its reply; SDAM looks at the error all the same.
    WriteConcern,
    /// The command succeeded, and one of its writes did not (`writeErrors`). Only
    /// [`CommandError::timeout_in`] looks there.
    Write,
}

impl CommandError {
    /// Finds the error in a reply; `None` when the command succeeded.
    ///
    /// `writeConcernError` counts, `writeErrors` do not: those are about single documents and say
    /// nothing about the server. A reply without a usable `ok` did not succeed.
    #[must_use]
    pub fn from_reply(reply: &RawDocument) -> Option<Self> {
        if !is_ok(reply) {
            return Some(Self::from_parts(ReplyPart::Command, reply, reply));
        }
        let write_concern = field(reply, "writeConcernError")?.as_document()?;
        Some(Self::from_parts(ReplyPart::WriteConcern, write_concern, reply))
    }

    /// Finds out whether the server ran out of the time that a command gave it (`maxTimeMS`), at the top of its
    /// reply, in `writeConcernError` or in one of `writeErrors`.
    // CS-15
    #[must_use]
    pub fn timeout_in(reply: &RawDocument) -> Option<Self> {
        let write_errors = field(reply, "writeErrors").and_then(RawBsonRef::as_array);
        let mut writes = write_errors.into_iter().flatten().filter_map(Result::ok);
        let of_a_write = || {
            writes.find_map(|error| {
                let error = Self::from_parts(ReplyPart::Write, error.as_document()?, reply);
                error.is_timeout().then_some(error)
            })
        };
        Self::from_reply(reply).filter(Self::is_timeout).or_else(of_a_write)
    }

    /// Whether the server ran out of the time that the command gave it (`maxTimeMS`): `MaxTimeMSExpired`.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.code == Some(MAX_TIME_EXPIRED)
    }

    /// The whole reply, with what a driver may need besides, such as `$clusterTime` or
    /// `baseBackoffMS`. `Debug` and `Display` do not show it: it may hold a payload.
    #[must_use]
    pub fn reply(&self) -> &RawDocument {
        &self.reply
    }

    /// Whether the server attached this label.
    #[must_use]
    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|own| own == label)
    }

    /// Whether the code is one after which a read may be tried again.
    #[must_use]
    pub fn has_retryable_code(&self) -> bool {
        self.code.is_some_and(|code| RETRYABLE_CODES.contains(&code))
    }

    /// Labels and topology version stand at the top of the reply, wherever the error itself is.
    fn from_parts(part: ReplyPart, error: &RawDocument, reply: &RawDocument) -> Self {
        Self {
            part,
            code: field(error, "code").and_then(number::as_i32),
            code_name: text(error, "codeName"),
            message: text(error, "errmsg").unwrap_or_default(),
            labels: labels(reply),
            topology_version: field(reply, "topologyVersion")
                .and_then(RawBsonRef::as_document)
                .and_then(TopologyVersion::from_document),
            reply: reply.to_owned(),
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said =
            if self.message.is_empty() { "the server gave no reason" } else { &self.message };
        match self.part {
            ReplyPart::Command => write!(f, "{}", OneLine::text(said))?,
            ReplyPart::WriteConcern => write!(f, "write concern: {}", OneLine::text(said))?,
            ReplyPart::Write => write!(f, "write: {}", OneLine::text(said))?,
        }
        match (self.code, &self.code_name) {
            (Some(code), Some(name)) => write!(f, " (code {code}, {})", OneLine::name(name))?,
            (Some(code), None) => write!(f, " (code {code})")?,
            (None, Some(name)) => write!(f, " ({})", OneLine::name(name))?,
            (None, None) => {}
        }
        // All that the error reports is shown (LG-50).
        if self.labels.is_empty() {
            return Ok(());
        }
        write!(f, " [{}]", OneLine::text(&self.labels.join(", ")))
    }
}

/// Of bytes.
impl Eq for CommandError {}

/// Texts of the server are cut.
impl fmt::Debug for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, code, code_name, message, labels, topology_version, reply: _ } = self;
        f.debug_struct("CommandError")
            .field("part", part)
            .field("code", code)
            .field("code_name", &code_name.as_deref().map(OneLine::name))
            .field("message", &OneLine::text(message))
            .field("labels", &OneLine::text(&labels.join(", ")))
            .field("topology_version", topology_version)
            .finish_non_exhaustive()
    }
}

impl core::error::Error for CommandError {}

fn is_ok(reply: &RawDocument) -> bool {
    match field(reply, "ok") {
        Some(RawBsonRef::Boolean(ok)) => ok,
        Some(value) => number::as_f64(value).is_some_and(|ok| ok != 0.0 && !ok.is_nan()),
        None => false,
    }
}

fn labels(reply: &RawDocument) -> Vec<String> {
    let Some(array) = field(reply, "errorLabels").and_then(RawBsonRef::as_array) else {
        return Vec::new();
    };
    let mut labels: Vec<String> = Vec::new();
    for label in array.into_iter().flatten().filter_map(RawBsonRef::as_str) {
        if labels.len() == LABELS_MAX {
            break;
        }
        if !labels.iter().any(|known| known == label) {
            labels.push(label.to_owned());
        }
    }
    labels
}

/// Servers send one or two. A message has room for millions, each of which would be compared with
/// all the others.
const LABELS_MAX: usize = 100;

fn text(document: &RawDocument, key: &str) -> Option<String> {
    field(document, key).and_then(RawBsonRef::as_str).map(str::to_owned)
}

/// A damaged document reads like one that ends before the damage: whether it is well formed is
/// for the wire layer to say, before it is searched for errors.
fn field<'a>(document: &'a RawDocument, key: &str) -> Option<RawBsonRef<'a>> {
    document.get(key).ok().flatten()
}

/// The server's code for `maxTimeMS` that ran out.
const MAX_TIME_EXPIRED: i32 = 50;

/// The codes of the retryable-reads specification: the state changes, and trouble behind the
/// server that may be over at the next attempt.
const RETRYABLE_CODES: [i32; 13] = [
    6,     // HostUnreachable
    7,     // HostNotFound
    89,    // NetworkTimeout
    91,    // ShutdownInProgress
    134,   // ReadConcernMajorityNotAvailableYet
    189,   // PrimarySteppedDown
    262,   // ExceededTimeLimit
    9001,  // SocketException
    10107, // NotWritablePrimary
    11600, // InterruptedAtShutdown
    11602, // InterruptedDueToReplStateChange
    13435, // NotPrimaryNoSecondaryOk
    13436, // NotPrimaryOrSecondary
];

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, rawdoc};

    use super::{CommandError, ReplyPart};

    // CS-15
    #[test]
    fn the_servers_own_timeout_is_found_wherever_it_is() {
        let part = |reply: &RawDocumentBuf| CommandError::timeout_in(reply).map(|it| it.part);
        let (top, other) = (rawdoc! { "ok": 0, "code": 50 }, rawdoc! { "ok": 0, "code": 51 });
        assert_eq!((part(&top), part(&other)), (Some(ReplyPart::Command), None));
        let concern = rawdoc! { "ok": 1, "writeConcernError": { "code": 50 } };
        assert_eq!(part(&concern), Some(ReplyPart::WriteConcern));
        let writes =
            rawdoc! { "ok": 1, "writeErrors": [{ "index": 0, "code": 11000 }, { "code": 50 }] };
        assert_eq!(part(&writes), Some(ReplyPart::Write));
        let shown = CommandError::timeout_in(&writes).expect("it is there").to_string();
        assert_eq!(shown, "write: the server gave no reason (code 50)");
        // Only the code counts, and only of an error.
        let named = rawdoc! { "ok": 0, "code": 51, "codeName": "MaxTimeMSExpired" };
        let result = rawdoc! { "ok": 1, "code": 50 };
        assert_eq!((part(&named), part(&result)), (None, None));
        // No other error of a single write concerns a connection.
        assert!(CommandError::from_reply(&writes).is_none());
    }
}
