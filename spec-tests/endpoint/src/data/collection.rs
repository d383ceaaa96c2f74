use std::collections::BTreeMap;

use bson::raw::{RawDocumentBuf, cstr};
use bson::{RawBsonRef, RawDocument};

use super::filter::Filter;
use super::value;
use crate::entropy::Entropy;

/// Documents in the order in which they came, and found by their `_id`.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Collection {
    documents: BTreeMap<u64, RawDocumentBuf>,
    /// The key of each `_id`, and where its document is.
    ids: BTreeMap<Vec<u8>, u64>,
    /// Indexes beside the one of `_id`, which change nothing but what is said of them.
    indexes: BTreeMap<String, RawDocumentBuf>,
    /// How many documents ever came.
    came: u64,
    bytes: usize,
}

/// Why a document is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Rejection {
    /// Another one has its `_id`, which reads so.
    Duplicate(String),
    /// No document that was read can be stored.
    Bson(String),
    /// An `_id` that is an array, a regular expression or undefined.
    BadId,
}

/// What a document takes beside its own bytes, about.
const DOCUMENT: usize = 128;

impl Collection {
    pub(in super::super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The names and keys of the indexes beside the one of `_id`.
    pub(in super::super) fn indexes(&self) -> impl Iterator<Item = (&str, &RawDocument)> {
        self.indexes.iter().map(|(name, key)| (name.as_str(), &**key))
    }

    /// Whether there was no index of this name.
    pub(in super::super) fn add_index(&mut self, name: &str, key: &RawDocument) -> bool {
        let cost = Self::cost(key);
        let is_new = self.indexes.insert(name.to_owned(), key.to_owned()).is_none();
        self.bytes += if is_new { cost } else { 0 };
        is_new
    }

    /// Forgets the index of this name, or with `*` all beside the one of `_id`. Whether there was one.
    pub(in super::super) fn drop_indexes(&mut self, name: &str) -> bool {
        let before = self.indexes.len();
        let bytes = &mut self.bytes;
        self.indexes.retain(|other, key| {
            let stays = name != "*" && other != name;
            *bytes -= if stays { 0 } else { Self::cost(key) };
            stays
        });
        self.indexes.len() < before
    }

    /// What a document will take.
    pub(in super::super) fn cost(document: &RawDocument) -> usize {
        2 * document.as_bytes().len() + DOCUMENT
    }

    /// Stores a document; one without an `_id` gets one, in front.
    pub(in super::super) fn insert(
        &mut self,
        document: &RawDocument,
        entropy: &mut Entropy,
    ) -> Result<(), Rejection> {
        let bad = |error: bson::error::Error| Rejection::Bson(error.to_string());
        let document = match document.get("_id").map_err(bad)? {
            Some(
                RawBsonRef::Array(_) | RawBsonRef::RegularExpression(_) | RawBsonRef::Undefined,
            ) => return Err(Rejection::BadId),
            Some(_) => document.to_owned(),
            None => with_id(document, entropy).map_err(bad)?,
        };
        let Ok(Some(id)) = document.get("_id") else { return Err(Rejection::BadId) };
        let key = value::key(id);
        if self.ids.contains_key(&key) {
            return Err(Rejection::Duplicate(value::show(id)));
        }
        self.bytes += Self::cost(&document);
        self.ids.insert(key, self.came);
        self.documents.insert(self.came, document);
        self.came += 1;
        Ok(())
    }

    /// The documents that fit, from that position on, each with its position.
    pub(in super::super) fn scan<'a>(
        &'a self,
        filter: &'a Filter,
        from: u64,
    ) -> impl Iterator<Item = (u64, &'a RawDocumentBuf)> {
        let range = match filter.id().map(|key| self.ids.get(key)) {
            // No document has this `_id`, or one alone.
            Some(None) => u64::MAX..u64::MAX,
            Some(Some(at)) => from.max(*at)..from.max(at.saturating_add(1)),
            None => from..u64::MAX,
        };
        let documents = self.documents.range(range).map(|(at, document)| (*at, document));
        documents.filter(|(_, document)| filter.matches(document))
    }

    /// Removes the documents that fit, all or only the first, and says how many.
    pub(in super::super) fn remove(&mut self, filter: &Filter, only_first: bool) -> u64 {
        let most = if only_first { 1 } else { usize::MAX };
        let found: Vec<u64> = self.scan(filter, 0).map(|(at, _)| at).take(most).collect();
        for at in &found {
            let Some(document) = self.documents.remove(at) else { continue };
            self.bytes -= Self::cost(&document);
            if let Ok(Some(id)) = document.get("_id") {
                self.ids.remove(&value::key(id));
            }
        }
        found.len() as u64
    }

    /// The document at that position.
    pub(in super::super) fn at(&self, at: u64) -> Option<&RawDocumentBuf> {
        self.documents.get(&at)
    }

    /// Puts another document, whose `_id` is the same, where one was.
    pub(in super::super) fn replace(&mut self, at: u64, document: RawDocumentBuf) {
        let Some(place) = self.documents.get_mut(&at) else { return };
        self.bytes = self.bytes - Self::cost(place) + Self::cost(&document);
        *place = document;
    }
}

fn with_id(document: &RawDocument, entropy: &mut Entropy) -> bson::error::Result<RawDocumentBuf> {
    let mut with_id = RawDocumentBuf::new();
    with_id.append(cstr!("_id"), entropy.object_id());
    for element in document {
        let (key, value) = element?;
        with_id.append(key, value);
    }
    Ok(with_id)
}
