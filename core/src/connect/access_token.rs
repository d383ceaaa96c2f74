use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use bson::RawDocumentBuf;
use bson::raw::cstr;
use zeroize::Zeroizing;

use crate::uri::Secret;

/// An access token for `MONGODB-OIDC`, as an identity provider issues it.
///
/// It is a secret: `Debug` does not show it, clones share it, and it is overwritten when the last of them is dropped.
///
/// ```
/// use std::time::Duration;
/// use cenote_core::connect::AccessToken;
///
/// let token = AccessToken::new("eyJhbGciOi…").with_expires_in(Duration::from_secs(3600));
/// assert!(!format!("{token:?}").contains("eyJ"));
/// ```
// OI-13
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken {
    text: Arc<Secret>,
    expires_in: Option<Duration>,
}

impl AccessToken {
    /// A token that does not expire as far as the client knows. It is neither validated nor trimmed: whether it is valid
    /// is up to the server.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: Arc::new(Secret::from(text.into())), expires_in: None }
    }

    /// Says how long it is valid. The server decides whether a token is, so that nothing depends on this
    /// today, as in the specification's
    /// [OIDC callback](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#oidc-callback). Zero
    /// is for ever.
    #[must_use]
    pub fn with_expires_in(self, expires_in: Duration) -> Self {
        Self { expires_in: Some(expires_in).filter(|time| !time.is_zero()), ..self }
    }

    /// How long it is valid from when it was issued; `None` if that is not known or without limit.
    #[must_use]
    pub const fn expires_in(&self) -> Option<Duration> {
        self.expires_in
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.expose().is_empty()
    }

    /// Its text.
    pub(super) fn secret(&self) -> &Secret {
        &self.text
    }

    /// The payload of the one-step conversation.
    pub(super) fn payload(&self) -> Zeroizing<Vec<u8>> {
        // With room for all of it: a document that has to grow would leave copies behind.
        let text = self.text.expose();
        let mut bytes = Vec::with_capacity(text.len() + 32);
        bytes.extend_from_slice(&[5, 0, 0, 0, 0]);
        let mut payload = RawDocumentBuf::from_bytes(bytes).expect("an empty document");
        payload.append(cstr!("jwt"), text);
        Zeroizing::new(payload.into_bytes())
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken").field("expires_in", &self.expires_in).finish_non_exhaustive()
    }
}
