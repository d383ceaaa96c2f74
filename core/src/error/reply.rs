use bson::{RawBsonRef, RawDocument};

use super::command::MAX_TIME_EXPIRED;
use super::{CommandError, ReplyPart};
use crate::number;
use crate::sdam::TopologyVersion;
use crate::wire::Elements;

/// The error as part of a document.
impl CommandError {
    /// Finds the error in a reply; `None` when the command succeeded.
    ///
    /// `writeConcernError` counts, `writeErrors` do not: those are about single documents and say
    /// nothing about the server. A reply without a usable `ok` did not succeed.
    #[must_use]
    pub fn from_reply(reply: &RawDocument) -> Option<Self> {
        if is_plainly_good(reply) { None } else { Self::from_any_reply(reply) }
    }

    fn from_any_reply(reply: &RawDocument) -> Option<Self> {
        let (mut ok, mut write_concern) = (None, None);
        for element in reply.iter_elements().map_while(Result::ok) {
            let found = match element.key().as_str() {
                "ok" => &mut ok,
                "writeConcernError" => &mut write_concern,
                _ => continue,
            };
            *found = found.or(element.value().ok());
        }
        if !ok.is_some_and(is_true) {
            return Some(Self::from_parts(ReplyPart::Command, reply, reply));
        }
        let write_concern = write_concern?.as_document()?;
        Some(Self::from_parts(ReplyPart::WriteConcern, write_concern, reply))
    }

    /// The writes that a command which succeeded did not do (`writeErrors`), each with its place among the documents of the
    /// command, and its write concern that was not met (`writeConcernError`), without one. The server answers such a
    /// command with `ok: 1`: only these say that a document was not written.
    ///
    /// ```
    /// use bson::rawdoc;
    /// use cenote_core::error::CommandError;
    ///
    /// let twice = rawdoc! { "index": 1, "code": 11000, "errmsg": "duplicate key" };
    /// let late = rawdoc! { "code": 64, "errmsg": "waiting for replication timed out" };
    /// let reply = rawdoc! { "ok": 1, "n": 1, "writeErrors": [twice], "writeConcernError": late };
    /// let refused = CommandError::of_writes(&reply).map(|(index, error)| (index, error.code));
    /// assert!(refused.eq([(Some(1), Some(11000)), (None, Some(64))]));
    /// ```
    pub fn of_writes(reply: &RawDocument) -> impl Iterator<Item = (Option<usize>, Self)> {
        let writes = write_errors(reply).map(move |error| {
            let index = field(error, "index").and_then(number::as_i32);
            let index = index.and_then(|index| usize::try_from(index).ok());
            // There may be as many as documents: none copies the reply.
            (index, Self::from_parts(ReplyPart::Write, error, error))
        });
        let concern = Self::from_reply(reply).filter(|it| it.part == ReplyPart::WriteConcern);
        writes.chain(concern.map(|error| (None, error)))
    }

    /// Finds out whether the server ran out of the time that a command gave it (`maxTimeMS`), at the top of its
    /// reply, in `writeConcernError` or in one of `writeErrors`.
    // CS-15
    #[must_use]
    pub fn timeout_in(reply: &RawDocument) -> Option<Self> {
        let code = |error: &&RawDocument| field(error, "code").and_then(number::as_i32);
        let of_a_write = || write_errors(reply).find(|it| code(it) == Some(MAX_TIME_EXPIRED));
        let of_command = Self::from_reply(reply).filter(Self::is_timeout);
        of_command.or_else(|| Some(Self::from_parts(ReplyPart::Write, of_a_write()?, reply)))
    }

    /// The whole reply, with what a driver may need besides, such as `$clusterTime` or
    /// `baseBackoffMS`; of [`of_writes`](Self::of_writes) its part of `writeErrors`; empty if the error is
    /// [`new`](Self::new) and not of a reply. `Debug` and `Display` do not show it: it may hold a payload.
    // BP-02
    #[must_use]
    pub fn reply(&self) -> &RawDocument {
        &self.reply
    }

    /// With those of its texts alone that may be shown, and of the reply its `baseBackoffMS`; `None` if all of them may.
    pub(crate) fn with_texts_that(
        &self,
        is_shown: impl Fn(&str) -> bool,
        instead: &str,
    ) -> Option<Self> {
        let texts = [&self.message].into_iter().chain(&self.code_name).chain(&self.labels);
        if texts.clone().all(|text| is_shown(text)) {
            return None;
        }
        let mut shown =
            Self::new(self.code, if is_shown(&self.message) { &self.message } else { instead });
        shown.code_name = self.code_name.clone().filter(|name| is_shown(name));
        shown.labels = self.labels.iter().filter(|label| is_shown(label)).cloned().collect();
        (shown.part, shown.topology_version) = (self.part, self.topology_version);
        if let Some(backoff) = field(&self.reply, "baseBackoffMS").and_then(number::as_f64) {
            shown.reply = bson::rawdoc! { "baseBackoffMS": backoff };
        }
        Some(shown)
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

/// Whether a reply says `ok: 1.0` and has no `writeConcernError`, as nearly every one: each is asked. `false` says nothing.
fn is_plainly_good(reply: &RawDocument) -> bool {
    const DOUBLE: u8 = 0x01;
    let mut ok = None;
    let mut elements = Elements::of(reply);
    for (kind, key, value) in &mut elements {
        match key {
            b"ok" => ok = ok.or(Some((kind, value))),
            b"writeConcernError" => return false,
            _ => {}
        }
    }
    elements.is_complete() && ok == Some((DOUBLE, &1_f64.to_le_bytes()))
}

fn write_errors(reply: &RawDocument) -> impl Iterator<Item = &RawDocument> {
    let errors = field(reply, "writeErrors").and_then(RawBsonRef::as_array);
    errors.into_iter().flatten().filter_map(|it| it.ok()?.as_document())
}

/// As the value of `ok`.
fn is_true(value: RawBsonRef<'_>) -> bool {
    if let RawBsonRef::Boolean(ok) = value {
        return ok;
    }
    number::as_f64(value).is_some_and(|ok| ok != 0.0 && !ok.is_nan())
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

    proptest::proptest! {
        #[test]
        fn a_plain_reply_is_judged_as_any_other(reply in crate::wire::some_damaged()) {
            let judged = CommandError::from_reply(&reply);
            proptest::prop_assert_eq!(judged, CommandError::from_any_reply(&reply));
        }
    }
}
