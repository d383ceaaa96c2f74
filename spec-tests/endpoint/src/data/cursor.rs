use std::collections::{BTreeMap, VecDeque};

use bson::RawDocumentBuf;
use bson::raw::RawArrayBuf;

use super::filter::Filter;
use super::{Namespace, Store};
use crate::entropy::Entropy;
use crate::topology::Service;

/// Results that come in batches.
#[derive(Debug)]
pub(in super::super) struct Cursor {
    pub(in super::super) namespace: Namespace,
    pub(in super::super) source: Source,
    /// Only the router that opened it knows it.
    pub(in super::super) service: Service,
}

/// Where results come from.
#[derive(Debug)]
pub(in super::super) enum Source {
    /// A collection, as it is when the batch is asked for.
    Scan {
        filter: Filter,
        /// Where to go on.
        from: u64,
        /// Documents still to be left out.
        skip: u64,
        /// Documents still to come; `None` for all.
        left: Option<u64>,
    },
    /// Documents that were made for it.
    Made(VecDeque<RawDocumentBuf>),
}

/// One batch.
#[derive(Debug)]
pub(in super::super) struct Batch {
    pub(in super::super) documents: RawArrayBuf,
    pub(in super::super) is_last: bool,
}

/// All open cursors.
#[derive(Debug)]
pub(in super::super) struct Cursors {
    open: BTreeMap<i64, Cursor>,
    most: usize,
    /// Bytes of what they hold, about.
    bytes: usize,
    most_bytes: usize,
}

/// Bytes of a batch, at most; but one document at least.
const BATCH: usize = 16 * 1024 * 1024;

impl Cursor {
    /// The next documents, so many at most.
    pub(in super::super) fn batch(&mut self, store: &Store, count: Option<usize>) -> Batch {
        let count = count.unwrap_or(usize::MAX);
        match &mut self.source {
            Source::Made(made) => from_made(made, count),
            Source::Scan { filter, from, skip, left } => {
                let mut batch = Filling::default();
                let ended = |left: &Option<u64>| *left == Some(0);
                let collection = store.get(&self.namespace);
                let mut found = collection.into_iter().flat_map(|it| it.scan(filter, *from));
                let mut next = *from;
                let is_last = loop {
                    if ended(left) {
                        break true;
                    }
                    if batch.count >= count {
                        break false;
                    }
                    let Some((at, document)) = found.next() else { break true };
                    if *skip == 0 && !batch.has_room(document) {
                        break false;
                    }
                    next = at + 1;
                    if *skip > 0 {
                        *skip -= 1;
                        continue;
                    }
                    *left = left.map(|left| left - 1);
                    batch.push(document);
                };
                drop(found);
                *from = next;
                Batch { documents: batch.documents, is_last }
            }
        }
    }

    fn bytes(&self) -> usize {
        const CURSOR: usize = 512;
        CURSOR
            + match &self.source {
                Source::Scan { filter, .. } => filter.bytes(),
                Source::Made(made) => made.iter().map(|it| it.as_bytes().len()).sum(),
            }
    }
}

fn from_made(made: &mut VecDeque<RawDocumentBuf>, count: usize) -> Batch {
    let mut batch = Filling::default();
    while batch.count < count && made.front().is_some_and(|document| batch.has_room(document)) {
        if let Some(document) = made.pop_front() {
            batch.push(&document);
        }
    }
    Batch { documents: batch.documents, is_last: made.is_empty() }
}

#[derive(Default)]
struct Filling {
    documents: RawArrayBuf,
    count: usize,
    bytes: usize,
}

impl Filling {
    fn has_room(&self, document: &RawDocumentBuf) -> bool {
        self.count == 0 || self.bytes + document.as_bytes().len() <= BATCH
    }

    fn push(&mut self, document: &RawDocumentBuf) {
        self.bytes += document.as_bytes().len();
        self.count += 1;
        self.documents.push(document);
    }
}

impl Cursors {
    pub(in super::super) fn new(most: usize, most_bytes: usize) -> Self {
        Self { open: BTreeMap::new(), most, bytes: 0, most_bytes }
    }

    /// Keeps a cursor and names it; `None` when there are too many.
    pub(in super::super) fn open(&mut self, cursor: Cursor, entropy: &mut Entropy) -> Option<i64> {
        let bytes = cursor.bytes();
        if self.open.len() >= self.most || self.bytes.saturating_add(bytes) > self.most_bytes {
            return None;
        }
        let id = loop {
            let id = (entropy.number() >> 1) as i64;
            if id != 0 && !self.open.contains_key(&id) {
                break id;
            }
        };
        self.bytes += bytes;
        self.open.insert(id, cursor);
        Some(id)
    }

    /// The cursor of that name, if that router knows it.
    pub(in super::super) fn take(&mut self, id: i64, service: Service) -> Option<Cursor> {
        if self.open.get(&id)?.service != service {
            return None;
        }
        let cursor = self.open.remove(&id)?;
        self.bytes -= cursor.bytes();
        Some(cursor)
    }

    /// Puts a cursor back that was taken.
    pub(in super::super) fn put_back(&mut self, id: i64, cursor: Cursor) {
        self.bytes += cursor.bytes();
        self.open.insert(id, cursor);
    }

    pub(in super::super) fn clear(&mut self) {
        self.open.clear();
        self.bytes = 0;
    }

    pub(in super::super) fn len(&self) -> usize {
        self.open.len()
    }
}
