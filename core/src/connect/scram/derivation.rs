use core::fmt;
use std::sync::Arc;

use super::hash::{Hash, Keys, SecretBytes};

/// The slow part of SCRAM: PBKDF2, as often as the server asks for.
///
/// It is a millisecond or two with what servers ask for today, and a tenth of a second with
/// [`MAX_ITERATIONS`](crate::connect::MAX_ITERATIONS), all of it computing. Where it runs is up to
/// its holder: on a thread of its own where others would have to wait for it.
///
/// It holds the prepared password, which it does not show, and overwrites when it is dropped.
#[derive(Clone)]
pub struct KeyDerivation {
    pub(super) hash: Hash,
    pub(super) secret: SecretBytes,
    pub(super) salt: Vec<u8>,
    pub(super) iterations: u32,
}

/// What a [`KeyDerivation`] comes to, for
/// [`Establish::derived`](crate::connect::Establish::derived). A clone shares it; it is not shown,
/// and overwritten when the last one is dropped.
#[derive(Clone)]
pub struct DerivedKeys {
    inner: Arc<Inner>,
}

struct Inner {
    derivation: KeyDerivation,
    keys: Keys,
}

impl KeyDerivation {
    /// Computes, for as long as it takes. Neither waits nor fails.
    #[must_use]
    pub fn run(self) -> DerivedKeys {
        let Self { hash, secret, salt, iterations } = &self;
        let keys = hash.keys(secret, salt, *iterations);
        DerivedKeys { inner: Arc::new(Inner { derivation: self, keys }) }
    }

    /// How often PBKDF2 hashes, which is how long it takes.
    #[must_use]
    pub const fn iterations(&self) -> u32 {
        self.iterations
    }
}

impl DerivedKeys {
    pub(super) fn keys(&self) -> &Keys {
        &self.inner.keys
    }

    /// The secret of this process is compared with itself: its duration is not observable from
    /// outside.
    pub(super) fn are_of(&self, derivation: &KeyDerivation) -> bool {
        let KeyDerivation { hash, secret, salt, iterations } = &self.inner.derivation;
        *hash == derivation.hash
            && *iterations == derivation.iterations
            && *salt == derivation.salt
            && *secret == derivation.secret
    }

    pub(super) fn is_as(&self, other: &Self) -> bool {
        self.are_of(&other.inner.derivation)
    }

    #[cfg(test)]
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl fmt::Debug for KeyDerivation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyDerivation")
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for DerivedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DerivedKeys").finish_non_exhaustive()
    }
}
