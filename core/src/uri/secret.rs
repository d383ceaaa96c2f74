use std::fmt;

use zeroize::Zeroizing;

/// A text that is never shown: a password, the passphrase of a key, a session token.
///
/// `Debug` prints a placeholder, there is no `Display`, and the memory is overwritten when the
/// value is dropped. The text that a connection string was parsed from stays with the caller.
///
/// ```
/// use cenote_core::uri::Secret;
///
/// let secret = Secret::from("open sesame".to_owned());
/// assert_eq!(format!("{secret:?}"), "Secret(…)");
/// assert_eq!(secret.expose(), "open sesame");
/// ```
// LG-56
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The text itself. The caller is responsible for where it goes.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not even the length: it narrows a guess.
        f.write_str("Secret(…)")
    }
}
