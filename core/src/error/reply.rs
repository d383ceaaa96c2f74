use bson::{RawBsonRef, RawDocument};

use super::{CommandError, ReplyPart};
use crate::number;
use crate::sdam::TopologyVersion;

/// The error as part of a document.
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

    /// The whole reply, with what a driver may need besides, such as `$clusterTime` or
    /// `baseBackoffMS`; empty if the error is [`new`](Self::new) and not of a reply. `Debug` and
    /// `Display` do not show it: it may hold a payload.
    // BP-02
    #[must_use]
    pub fn reply(&self) -> &RawDocument {
        &self.reply
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
