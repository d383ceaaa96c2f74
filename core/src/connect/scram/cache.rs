use core::fmt;

use super::hash::{Hash, Keys, SecretBytes};

/// What was computed for one password and is worth keeping: PBKDF2 is slow on purpose, and every
/// connection of a pool would run it again (AU-36).
///
/// It belongs to whoever owns the connections of one client. It is small, forgets what was not used
/// for the longest time, never shows what is in it and overwrites it when it is dropped. Behind a
/// lock it may be held for one PBKDF2; a second connection that waits for it finds the result.
#[derive(Clone, Default)]
pub struct ScramCache {
    /// The one that was used last is at the end.
    entries: Vec<Entry>,
}

/// What keys depend on.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) hash: Hash,
    pub(super) secret: &'a [u8],
    pub(super) salt: &'a [u8],
    pub(super) iterations: u32,
}

/// Its secrets are elsewhere on the heap, so that moving it leaves no copies of them behind.
#[derive(Clone)]
struct Entry {
    hash: Hash,
    secret: SecretBytes,
    salt: Vec<u8>,
    iterations: u32,
    keys: Keys,
}

impl ScramCache {
    /// How many results are kept. A client has one password, and each server of a replica set and
    /// each router has its own salt.
    pub const CAPACITY: usize = 16;

    /// How many results are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Looks the keys up, or computes and keeps them. A wrong password and a server that lies about
    /// its salt leave a result that is never asked for again and pushed out in time.
    pub(super) fn keys(&mut self, question: Question<'_>) -> Keys {
        let found = self.entries.iter().position(|entry| entry.answers(question));
        let entry = match found {
            Some(at) => self.entries.remove(at),
            None => {
                if self.entries.len() == Self::CAPACITY {
                    self.entries.remove(0);
                }
                Entry::compute(question)
            }
        };
        let keys = entry.keys.clone();
        self.entries.push(entry);
        keys
    }
}

impl fmt::Debug for ScramCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramCache").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Entry {
    fn compute(question: Question<'_>) -> Self {
        let Question { hash, secret, salt, iterations } = question;
        let keys = hash.keys(secret, salt, iterations);
        Self { hash, secret: secret.to_vec().into(), salt: salt.to_vec(), iterations, keys }
    }

    /// The secret of this process is compared with itself: nobody learns from how long it takes.
    fn answers(&self, question: Question<'_>) -> bool {
        let Question { hash, secret, salt, iterations } = question;
        self.hash == hash
            && self.iterations == iterations
            && self.salt == salt
            && self.secret.as_slice() == secret
    }
}
