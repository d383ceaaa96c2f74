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

#[cfg(test)]
mod tests {
    use super::{Question, ScramCache};
    use crate::connect::scram::hash::Hash;

    fn question(salt: &[u8]) -> Question<'_> {
        Question { hash: Hash::Sha256, secret: b"pencil", salt, iterations: 1 }
    }

    /// AU-36: everything that a result depends on counts.
    #[test]
    fn each_question_has_its_own_answer() {
        let mut cache = ScramCache::default();
        let first = question(b"salt");
        let others = [
            Question { hash: Hash::Sha1, ..first },
            Question { secret: b"pen", ..first },
            Question { salt: b"pepper", ..first },
            Question { iterations: 2, ..first },
        ];
        for question in others.into_iter().chain([first]) {
            let length = cache.len();
            cache.keys(question);
            assert_eq!(cache.len(), length + 1);
        }
        for question in others.into_iter().chain([first]) {
            let fresh = ScramCache::default().keys(question);
            assert_eq!(cache.keys(question).client_proof(b"x"), fresh.client_proof(b"x"));
            assert_eq!(cache.len(), 5);
        }
    }

    #[test]
    fn what_was_not_used_for_long_is_forgotten() {
        let mut cache = ScramCache::default();
        let salts: Vec<_> = (0..ScramCache::CAPACITY + 1).map(|salt| [salt as u8]).collect();
        for salt in &salts {
            cache.keys(question(salt));
            cache.keys(question(&salts[0]));
            assert!(cache.len() <= ScramCache::CAPACITY);
        }
        let has = |salt: &[u8]| cache.entries.iter().any(|entry| entry.answers(question(salt)));
        assert!(has(&salts[0]) && !has(&salts[1]) && has(&salts[2]));
    }
}
