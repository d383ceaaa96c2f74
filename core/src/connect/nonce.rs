use core::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use zeroize::Zeroizing;

/// A text that was never used before, for one SCRAM conversation.
///
/// The embedder takes it from a cryptographically secure source; the machine has no source of its
/// own. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Nonce(Zeroizing<String>);

impl Nonce {
    /// How many random bytes a nonce is made of.
    pub const RANDOM_BYTES: usize = 24;

    /// A nonce of 32 characters, from as many random bytes as make them.
    #[must_use]
    pub fn from_random(bytes: [u8; Self::RANDOM_BYTES]) -> Self {
        Self(Zeroizing::new(STANDARD.encode(bytes)))
    }

    /// A nonce that was made elsewhere; `None` unless it is printable ASCII without commas, which
    /// is what SCRAM takes.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let printable = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
        (printable && !text.is_empty()).then(|| Self(Zeroizing::new(text.to_owned())))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(…)")
    }
}
