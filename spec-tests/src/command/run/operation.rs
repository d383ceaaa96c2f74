//! What each task asks of the server.

use bson::raw::RawArrayBuf;
use bson::{RawDocument, RawDocumentBuf, rawdoc};

/// The commands of a task, one after the other.
pub(super) enum Operations {
    Ping,
    /// Finds a document by its number, so that a reply to another command is recognised.
    Find {
        number: i32,
    },
}

/// How many documents there are to be found.
const DOCUMENTS: i32 = 101;

impl Operations {
    /// The name of the command.
    pub(super) const VERIFIED: &'static str = "find";

    /// The commands of this task; `are_verified` after [`documents`] were inserted.
    pub(super) fn new(are_verified: bool, task: u32) -> Self {
        if are_verified {
            let number = i32::try_from(task).unwrap_or_default() % DOCUMENTS;
            Self::Find { number }
        } else {
            Self::Ping
        }
    }

    pub(super) fn next_command(&mut self) -> RawDocumentBuf {
        match self {
            Self::Ping => rawdoc! { "ping": 1 },
            Self::Find { number } => {
                *number = (*number + 1) % DOCUMENTS;
                rawdoc! { "find": "run", "filter": { "_id": *number } }
            }
        }
    }

    /// Whether this may be the reply to the last command.
    pub(super) fn is_reply(&self, reply: &RawDocument) -> bool {
        match self {
            Self::Ping => true,
            Self::Find { number } => {
                let found = || {
                    let batch = reply.get_document("cursor").ok()?.get_array("firstBatch").ok()?;
                    batch.get_document(0).ok()?.get_i32("_id").ok()
                };
                found() == Some(*number)
            }
        }
    }
}

/// Inserts the documents that are found.
pub(super) fn documents() -> RawDocumentBuf {
    let documents: RawArrayBuf = (0..DOCUMENTS).map(|number| rawdoc! { "_id": number }).collect();
    rawdoc! { "insert": "run", "documents": documents }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_to_another_command_is_recognised() {
        let reply =
            |number: i32| rawdoc! { "ok": 1, "cursor": { "firstBatch": [{ "_id": number }] } };
        let mut operations = Operations::new(true, 7);
        for number in [8, 9] {
            operations.next_command();
            assert!(operations.is_reply(&reply(number)));
            assert!(!operations.is_reply(&reply(number - 1)));
            assert!(!operations.is_reply(&rawdoc! { "ok": 1 }));
        }
        assert!(Operations::new(false, 7).is_reply(&rawdoc! { "ok": 1 }));
    }
}
