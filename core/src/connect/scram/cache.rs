use core::fmt;

use super::{
    derivation::{DerivedKeys, KeyDerivation},
    hash::Keys,
};

/// What was computed for one password and is worth keeping: PBKDF2 is slow on purpose, and every
/// connection of a pool would run it again.
///
/// It belongs to the owner of the connections of one client. It is small, evicts the least recently
/// used keys, never shows its content and overwrites it when it is dropped.
///
/// It is asked and told in passing, so that a lock around it is held for moments only: what takes
/// time is a [`KeyDerivation`], which is run without it.
// AU-36
#[derive(Clone, Default)]
pub struct ScramCache {
    entries: Vec<Entry>,
    /// The number of look-ups so far.
    clock: u64,
}

#[derive(Clone)]
struct Entry {
    /// The number of the last look-up that found it.
    used: u64,
    keys: DerivedKeys,
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

    /// The keys, if they have been derived.
    pub(super) fn look_up(&mut self, derivation: &KeyDerivation) -> Option<Keys> {
        self.clock += 1;
        let entry = self.entries.iter_mut().find(|entry| entry.keys.are_of(derivation))?;
        entry.used = self.clock;
        Some(entry.keys.keys().clone())
    }

    /// Keeps derived keys. A wrong password and a server that lies about its salt leave keys
    /// that are never asked for again and pushed out in time.
    pub(in crate::connect) fn learn(&mut self, keys: DerivedKeys) {
        if self.entries.iter().any(|entry| entry.keys.is_as(&keys)) {
            return;
        }
        self.entries.push(Entry { used: self.clock, keys });
        self.forget();
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

#[cfg(test)]
mod tests {
    use super::ScramCache;
    use crate::connect::scram::derivation::KeyDerivation;
    use crate::connect::scram::hash::{Hash, Keys};

    fn derivation(salt: &[u8]) -> KeyDerivation {
        let secret = b"pencil".to_vec().into();
        KeyDerivation { hash: Hash::Sha256, secret, salt: salt.to_vec(), iterations: 1 }
    }

    fn keys(cache: &mut ScramCache, derivation: &KeyDerivation) -> Keys {
        cache.look_up(derivation).unwrap_or_else(|| {
            cache.learn(derivation.clone().run());
            cache.look_up(derivation).expect("it was learnt")
        })
    }

    fn has(cache: &ScramCache, salt: &[u8]) -> bool {
        cache.entries.iter().any(|entry| entry.keys.are_of(&derivation(salt)))
    }

    /// Everything that a result depends on counts.
    // AU-36
    #[test]
    fn each_question_has_its_own_answer() {
        let mut cache = ScramCache::default();
        let first = derivation(b"salt");
        let all = [
            KeyDerivation { hash: Hash::Sha1, ..first.clone() },
            KeyDerivation { secret: b"pen".to_vec().into(), ..first.clone() },
            KeyDerivation { salt: b"pepper".to_vec(), ..first.clone() },
            KeyDerivation { iterations: 2, ..first.clone() },
            first,
        ];
        for (length, derivation) in all.iter().enumerate() {
            assert_eq!(cache.len(), length);
            keys(&mut cache, derivation);
        }
        for derivation in &all {
            let fresh = keys(&mut ScramCache::default(), derivation);
            assert_eq!(keys(&mut cache, derivation).client_proof(b"x"), fresh.client_proof(b"x"));
            assert_eq!(cache.len(), all.len());
        }
    }

    #[test]
    fn what_was_not_used_for_long_is_forgotten() {
        let mut cache = ScramCache::default();
        let salts: Vec<_> = (0..ScramCache::CAPACITY + 1).map(|salt| [salt as u8]).collect();
        for salt in &salts {
            keys(&mut cache, &derivation(salt));
            assert!(has(&cache, &salts[0]), "it is asked for again and again");
            keys(&mut cache, &derivation(&salts[0]));
            assert!(cache.len() <= ScramCache::CAPACITY);
        }
        assert!(has(&cache, &salts[0]) && !has(&cache, &salts[1]) && has(&cache, &salts[2]));
    }

    /// Connections that are opened side by side derive the same.
    #[test]
    fn what_two_computed_is_kept_once() {
        let mut cache = ScramCache::default();
        for _ in 0..2 {
            cache.learn(derivation(b"salt").run());
        }
        assert_eq!(cache.len(), 1);
    }

    /// A clone copies no results.
    #[test]
    fn clones_share() {
        let mut cache = ScramCache::default();
        keys(&mut cache, &derivation(b"salt"));
        let clone = cache.clone();
        assert!(cache.entries[0].keys.is_shared_with(&clone.entries[0].keys));
    }
}
