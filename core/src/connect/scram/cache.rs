use core::fmt;
use std::sync::Arc;

use super::hash::{Hash, Keys, SecretBytes};

/// What was computed for one password and is worth keeping: PBKDF2 is slow on purpose, and every
/// connection of a pool would run it again (AU-36).
///
/// It belongs to whoever owns the connections of one client. It is small, forgets what was not used
/// for the longest time, never shows what is in it and overwrites it when it is dropped.
///
/// Connections that are established side by side need not wait for each other's PBKDF2: each takes
/// a clone, which shares the results and is cheap, and gives it back with
/// [`absorb`](Self::absorb), also after a failure. A lock is held for these two moments only.
///
/// ```
/// use std::sync::Mutex;
/// use cenote_core::connect::ScramCache;
///
/// let shared = Mutex::new(ScramCache::default());
/// let mut mine = shared.lock().unwrap().clone();
/// // … `establish.reply(reply, &mut mine)`, for as long as it takes …
/// shared.lock().unwrap().absorb(mine);
/// ```
#[derive(Clone, Default)]
pub struct ScramCache {
    entries: Vec<Entry>,
    /// How often it has been asked.
    clock: u64,
}

/// What keys depend on.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) hash: Hash,
    pub(super) secret: &'a [u8],
    pub(super) salt: &'a [u8],
    pub(super) iterations: u32,
}

#[derive(Clone)]
struct Entry {
    /// What the clock was when it was asked for the last time.
    used: u64,
    result: Arc<CachedResult>,
}

/// One in memory, however many clones of a cache have it.
struct CachedResult {
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

    /// Takes over what a clone has learnt since it was made, and which results it was glad of. What
    /// both have is kept once, and of more than [`CAPACITY`](Self::CAPACITY) results those that were
    /// used last.
    pub fn absorb(&mut self, clone: Self) {
        for theirs in clone.entries {
            match self.entries.iter_mut().find(|mine| mine.result.is_as(&theirs.result)) {
                Some(mine) => mine.used = mine.used.max(theirs.used),
                None => self.entries.push(theirs),
            }
        }
        self.clock = self.clock.max(clone.clock);
        self.forget();
    }

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
        self.clock += 1;
        let used = self.clock;
        if let Some(entry) = self.entries.iter_mut().find(|it| it.result.answers(question)) {
            entry.used = used;
            return entry.result.keys.clone();
        }
        let result = Arc::new(CachedResult::compute(question));
        let keys = result.keys.clone();
        self.entries.push(Entry { used, result });
        self.forget();
        keys
    }

    fn forget(&mut self) {
        self.entries.sort_by_key(|entry| entry.used);
        let excess = self.entries.len().saturating_sub(Self::CAPACITY);
        self.entries.drain(..excess);
    }
}

impl fmt::Debug for ScramCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramCache").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl CachedResult {
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

    fn is_as(&self, other: &Self) -> bool {
        let Self { hash, secret, salt, iterations, keys: _ } = other;
        self.answers(Question { hash: *hash, secret, salt, iterations: *iterations })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Question, ScramCache};
    use crate::connect::scram::hash::Hash;

    fn question(salt: &[u8]) -> Question<'_> {
        Question { hash: Hash::Sha256, secret: b"pencil", salt, iterations: 1 }
    }

    fn has(cache: &ScramCache, salt: &[u8]) -> bool {
        cache.entries.iter().any(|entry| entry.result.answers(question(salt)))
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
        assert!(has(&cache, &salts[0]) && !has(&cache, &salts[1]) && has(&cache, &salts[2]));
    }

    /// Both learn while the other does, and neither loses what it learnt, nor what was used.
    #[test]
    fn clones_come_together_again() {
        let salts: Vec<_> = (0..ScramCache::CAPACITY).map(|salt| [salt as u8]).collect();
        let mut cache = ScramCache::default();
        for salt in &salts {
            cache.keys(question(salt));
        }
        let (mut one, mut other) = (cache.clone(), cache.clone());
        one.keys(question(b"one"));
        other.keys(question(&salts[0]));
        other.keys(question(b"other"));
        cache.absorb(one);
        cache.absorb(other);
        assert_eq!(cache.len(), ScramCache::CAPACITY);
        assert!(has(&cache, b"one") && has(&cache, b"other"));
        assert!(has(&cache, &salts[0]), "it was used");
        assert!(!has(&cache, &salts[1]) && !has(&cache, &salts[2]) && has(&cache, &salts[3]));
    }

    #[test]
    fn what_two_computed_is_kept_once() {
        let mut cache = ScramCache::default();
        let mut clones = [cache.clone(), cache.clone()];
        for clone in &mut clones {
            clone.keys(question(b"salt"));
        }
        for clone in clones {
            cache.absorb(clone);
        }
        assert_eq!(cache.len(), 1);
    }

    /// A clone copies no results.
    #[test]
    fn clones_share() {
        let mut cache = ScramCache::default();
        cache.keys(question(b"salt"));
        let clone = cache.clone();
        assert!(Arc::ptr_eq(&cache.entries[0].result, &clone.entries[0].result));
    }
}
