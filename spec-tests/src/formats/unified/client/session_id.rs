use bson::{Document, doc};

/// The id of a session, and how many numbered commands were run in it.
#[derive(Clone, Debug)]
pub(super) struct SessionId {
    id: bson::Uuid,
    number: i64,
}

impl SessionId {
    pub(super) fn new() -> Self {
        Self { id: bson::Uuid::new(), number: 0 }
    }

    pub(super) fn document(&self) -> Document {
        doc! { "id": self.id }
    }

    pub(super) fn into_document(self) -> Document {
        self.document()
    }

    pub(super) const fn number(&self) -> i64 {
        self.number
    }

    pub(super) fn next_number(&mut self) -> i64 {
        self.number += 1;
        self.number
    }
}
