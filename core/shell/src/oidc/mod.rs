//! Access tokens for MONGODB-OIDC, from the application's callback:
//! [`Builder::oidc_callback`](crate::builder::Builder::oidc_callback).

#[cfg(feature = "tls")]
mod environment;
#[cfg(feature = "tls")]
mod tokens;

use std::time::Duration;

use cenote_core::connect::AccessToken;
use cenote_core::error::BoxError;

#[cfg(feature = "tls")]
pub(crate) use self::tokens::{LONGEST_WAIT, Tokens, callback_missing, check};

/// What a callback for access tokens is told:
/// [`Builder::oidc_callback`](crate::builder::Builder::oidc_callback).
// OI-02
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenRequest {
    /// The user of the connection string, if there is one.
    pub username: Option<String>,
    /// How long the connection waits for the token: one minute, or what `timeoutMS` leaves of it. `connectTimeoutMS`
    /// does not count.
    // OI-03
    pub timeout: Duration,
    /// The version of what a callback is told and returns: [`TokenRequest::VERSION`].
    // OI-04
    pub version: u32,
}

impl TokenRequest {
    /// 1, until callbacks are told something else.
    pub const VERSION: u32 = 1;
}

/// Returns access tokens: [`Builder::oidc_callback`](crate::builder::Builder::oidc_callback).
pub type TokenCallback = dyn Fn(&TokenRequest) -> Result<AccessToken, BoxError> + Send + Sync;
