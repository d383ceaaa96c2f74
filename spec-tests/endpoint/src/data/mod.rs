//! Documents in memory, and cursors over them.

mod collection;
mod cursor;
mod filter;
mod update;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeBounds;

pub(super) use self::collection::{Collection, Rejection};
pub(super) use self::cursor::{Cursor, Cursors, Source};
pub(super) use self::filter::Filter;
pub(super) use self::update::Update;
pub(super) use self::value::{compare, key};

/// A collection's full name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Namespace {
    pub(super) database: String,
    pub(super) collection: String,
}

/// All documents of a server at one moment.
#[derive(Clone, Debug)]
pub struct Documents(pub(super) Store);

/// All collections.
#[derive(Clone, Debug)]
pub(super) struct Store {
    collections: BTreeMap<Namespace, Collection>,
    /// Bytes of all documents and of what is kept beside them, about.
    bytes: usize,
    most: usize,
}

/// What a collection takes beside its documents, about.
const COLLECTION: usize = 256;

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.collection)
    }
}

impl Store {
    pub(super) fn new(most: usize) -> Self {
        Self { collections: BTreeMap::new(), bytes: 0, most }
    }

    pub(super) fn get(&self, namespace: &Namespace) -> Option<&Collection> {
        self.collections.get(namespace)
    }

    /// Whether so many bytes more may be stored.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes) <= self.most
    }

    /// Makes sure that a collection is there; `false` if there is no room for it.
    pub(super) fn create(&mut self, namespace: &Namespace) -> bool {
        if self.collections.contains_key(namespace) {
            return true;
        }
        if !self.has_room(COLLECTION) {
            return false;
        }
        self.bytes += COLLECTION;
        self.collections.insert(namespace.clone(), Collection::default());
        true
    }

    /// Changes a collection, and keeps count of the bytes.
    pub(super) fn change<T>(
        &mut self,
        namespace: &Namespace,
        change: impl FnOnce(&mut Collection) -> T,
    ) -> Option<T> {
        let collection = self.collections.get_mut(namespace)?;
        let before = collection.bytes();
        let outcome = change(collection);
        self.bytes = self.bytes - before + collection.bytes();
        Some(outcome)
    }

    /// Whether there was such a collection.
    pub(super) fn drop(&mut self, namespace: &Namespace) -> bool {
        let Some(collection) = self.collections.remove(namespace) else { return false };
        self.bytes -= collection.bytes() + COLLECTION;
        true
    }

    pub(super) fn drop_database(&mut self, database: &str) {
        let names: Vec<_> = self.of_database(database).map(|(name, _)| name.clone()).collect();
        for name in names {
            self.drop(&name);
        }
    }

    pub(super) fn of_database<'a>(
        &'a self,
        database: &'a str,
    ) -> impl Iterator<Item = (&'a Namespace, &'a Collection)> {
        let from = Namespace { database: database.to_owned(), collection: String::new() };
        self.range(from..).take_while(move |(namespace, _)| namespace.database == database)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Namespace, &Collection)> {
        self.collections.iter()
    }

    fn range(
        &self,
        range: impl RangeBounds<Namespace>,
    ) -> impl Iterator<Item = (&Namespace, &Collection)> {
        self.collections.range(range)
    }
}
