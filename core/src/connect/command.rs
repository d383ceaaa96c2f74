use core::fmt;

use bson::raw::{BindRawBsonRef, CStr, RawDocument, RawDocumentBuf, cstr};
use zeroize::Zeroizing;

use super::ServerApi;

/// A command to send, as the only document of a message.
///
/// It may hold a password or a proof, so that `Debug` shows its name alone and the body is
/// overwritten when it is dropped. Copies of the body are the embedder's to overwrite. None of
/// these commands may be compressed.
// AU-60
pub struct Command {
    name: &'static str,
    body: Zeroizing<Vec<u8>>,
}

/// A command without the fields that all commands end with.
pub(super) struct Draft {
    name: &'static str,
    document: RawDocumentBuf,
}

/// An upper bound for the bytes of names, lengths and numbers around the variable parts of a
/// command.
const OVERHEAD: usize = 512;

impl Command {
    /// The name of the command: the first key of its body.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The command itself, `$db` included.
    #[must_use]
    pub fn body(&self) -> &RawDocument {
        RawDocument::from_bytes(self.body.as_slice()).expect("made of a document")
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Draft {
    /// `room` is the length of all texts and payloads together, the database's name included: a
    /// document that has to grow would leave copies of a secret behind.
    pub(super) fn new(name: &'static CStr, room: usize) -> Self {
        const EMPTY: [u8; 5] = [5, 0, 0, 0, 0];
        let mut bytes = Vec::with_capacity(OVERHEAD + room);
        bytes.extend_from_slice(&EMPTY);
        let document = RawDocumentBuf::from_bytes(bytes).expect("an empty document");
        Self { name: name.as_str(), document }.with(name, 1)
    }

    pub(super) fn with(mut self, key: &CStr, value: impl BindRawBsonRef) -> Self {
        let place = self.document.as_bytes().as_ptr();
        self.document.append(key, value);
        debug_assert_eq!(self.document.as_bytes().as_ptr(), place, "there was room");
        self
    }

    /// For a command inside another one.
    pub(super) fn inner(self) -> Command {
        Command { name: self.name, body: Zeroizing::new(self.document.into_bytes()) }
    }

    /// Names the database and, if the user declared one, the API's version.
    // HS-12, MS-11
    pub(super) fn send_to(self, database: &str, api: Option<ServerApi>) -> Command {
        let mut draft = self.with(cstr!("$db"), database);
        for (key, value) in api.into_iter().flat_map(ServerApi::fields) {
            draft = draft.with(key, value);
        }
        draft.inner()
    }
}
