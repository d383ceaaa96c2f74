use core::fmt;

use crate::error::BoxError;

/// How many replies a conversation of a [`SaslMechanism`] may take before it fails.
pub const MAX_SASL_REPLIES: usize = 16;

/// How many bytes a payload of a [`SaslMechanism`] may have: 1 MiB.
pub const MAX_SASL_PAYLOAD: usize = 1 << 20;

/// An authentication mechanism of the embedder's own, without I/O: see
/// [`EstablishOptions::sasl_mechanism`](super::EstablishOptions::sasl_mechanism). The machine that establishes
/// connections sends its payloads with
/// [`saslStart` and `saslContinue`](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#mongodb-handshake).
///
/// One value serves all connections of a client, on any thread. Nothing in it may block. Where a mechanism needs the
/// network or a file, such as a ticket or a token, the embedder gets that before, or in the background.
///
/// ```
/// use cenote_core::connect::{SaslConversation, SaslMechanism};
/// use cenote_core::error::BoxError;
///
/// /// `PLAIN`, as the crate itself has it.
/// struct Plain {
///     user: String,
///     password: String,
/// }
///
/// impl SaslMechanism for Plain {
///     fn name(&self) -> &'static str {
///         "PLAIN"
///     }
///
///     fn start(&self) -> Result<Box<dyn SaslConversation>, BoxError> {
///         Ok(Box::new(Once(format!("\0{}\0{}", self.user, self.password).into_bytes())))
///     }
/// }
///
/// struct Once(Vec<u8>);
///
/// impl SaslConversation for Once {
///     fn first(&mut self) -> Result<Vec<u8>, BoxError> {
///         Ok(std::mem::take(&mut self.0))
///     }
///
///     fn respond(&mut self, _challenge: &[u8]) -> Result<Vec<u8>, BoxError> {
///         Err("PLAIN has one message".into())
///     }
/// }
/// ```
// AU-55
pub trait SaslMechanism: Send + Sync + 'static {
    /// The name that the server knows: 1 to 64 printable ASCII characters without spaces. A connection string of
    /// the same client names this mechanism or none.
    fn name(&self) -> &'static str;

    /// The database that the commands go to, `$external` by default.
    fn source(&self) -> &str {
        "$external"
    }

    /// Whether hello carries the first message ([speculative authentication](https://github.com/mongodb/specifications/blob/master/source/mongodb-handshake/handshake.md#speculative-authentication)),
    /// which saves a round trip where the server takes it. `false` by default: the server has said nothing of itself
    /// when it gets hello, so that a first message with a secret must not be in it.
    fn speculates(&self) -> bool {
        false
    }

    /// Begins the conversation of one connection. A connection has two if the server does not take the message in
    /// hello.
    ///
    /// # Errors
    ///
    /// Why the mechanism cannot be used now, without secrets: the connection fails with a configuration error
    /// that holds it as its source.
    fn start(&self) -> Result<Box<dyn SaslConversation>, BoxError>;
}

/// The client's side of one conversation of a [`SaslMechanism`].
///
/// Payloads are overwritten after they are sent. They have at most [`MAX_SASL_PAYLOAD`] bytes, and a conversation has
/// at most [`MAX_SASL_REPLIES`] replies.
pub trait SaslConversation: Send {
    /// The payload of `saslStart`; it may be empty. Called once, first.
    ///
    /// # Errors
    ///
    /// As [`SaslMechanism::start`].
    fn first(&mut self) -> Result<Vec<u8>, BoxError>;

    /// The answer to a payload of the server that does not end the conversation. It may be empty.
    ///
    /// # Errors
    ///
    /// Why the server's payload cannot be answered, without secrets: the connection fails with a protocol error that
    /// holds it as its source.
    fn respond(&mut self, challenge: &[u8]) -> Result<Vec<u8>, BoxError>;

    /// Checks the payload with which the server ends the conversation. The default accepts every payload; a mechanism
    /// in which the server proves its identity must not.
    ///
    /// # Errors
    ///
    /// Why this is no end, without secrets, as for [`respond`](Self::respond).
    fn finish(&mut self, last: &[u8]) -> Result<(), BoxError> {
        let _ = last;
        Ok(())
    }
}

impl fmt::Debug for dyn SaslMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslMechanism").field("name", &self.name()).finish_non_exhaustive()
    }
}
