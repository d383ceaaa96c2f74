//! Keys for MONGODB-AWS: from the environment, or from
//! [`Builder::aws_credential_provider`](crate::builder::Builder::aws_credential_provider).

#[cfg(feature = "tls")]
mod keys;

use cenote_core::error::BoxError;
use cenote_core::uri::Credential;

#[cfg(feature = "tls")]
pub(crate) use self::keys::{check, keys, uses_keys};

/// Returns the keys of a user or a role of AWS, as [`Credential::of_aws_keys`] makes them:
/// [`Builder::aws_credential_provider`](crate::builder::Builder::aws_credential_provider).
pub type AwsCredentialProvider = dyn Fn() -> Result<Credential, BoxError> + Send + Sync;
