use core::fmt;

use crate::one_line::OneLine;
use crate::sdam::TopologyVersion;

/// An error reply of a server.
///
/// Nothing of the reply is trusted: a field of the wrong type counts as absent.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct CommandError {
    /// Where in the reply the error is.
    pub part: ReplyPart,
    /// The number of the error. If there is one, it alone determines the meaning.
    pub code: Option<i32>,
    /// The code's name, for people only: names change between server versions.
    pub code_name: Option<String>,
    /// The message of the server; may be empty. May hold line breaks, and names of
    /// databases, collections and users; [`Display`](fmt::Display) shows it as one line.
    pub message: String,
    /// The labels that the server attached, each once, in its order; the first 100 if it sends
    /// more.
    pub labels: Vec<String>,
    /// How much the server knew of its own state when it answered.
    pub topology_version: Option<TopologyVersion>,
    #[cfg(feature = "protocol")]
    pub(super) reply: bson::RawDocumentBuf,
}

/// The part of a reply that holds an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReplyPart {
    /// The command failed (`ok: 0`).
    Command,
    /// The command succeeded and its write concern was not met (`writeConcernError`). The
    /// application gets its reply; SDAM looks at the error all the same.
    WriteConcern,
    /// The command succeeded, and one of its writes did not (`writeErrors`):
    /// [`CommandError::of_writes`].
    Write,
}

impl CommandError {
    /// The error that a server reported with this code, or without one, and this message: for drivers
    /// that read replies themselves. The other fields are for them to set; [`part`](Self::part) is
    /// [`ReplyPart::Command`].
    ///
    /// ```
    /// use cenote_core::error::{CommandError, ConnectionError, Stage};
    /// use cenote_core::sdam::{Context, PoolVerdict, verdict};
    ///
    /// let mut refusal = CommandError::new(91, "shutdown in progress");
    /// refusal.code_name = Some("ShutdownInProgress".to_owned());
    /// refusal.labels = vec!["RetryableWriteError".to_owned()];
    /// let error = ConnectionError::command(Stage::Operation, refusal);
    /// assert_eq!(
    ///     error.to_string(),
    ///     "operation: shutdown in progress (code 91, ShutdownInProgress) [RetryableWriteError]"
    /// );
    ///
    /// let context =
    ///     Context { load_balanced: false, current_generation: true, topology_version: None };
    /// let clear = PoolVerdict::Clear { interrupt: false };
    /// assert_eq!(verdict(&context, &error).pool, clear);
    /// ```
    #[must_use]
    pub fn new(code: impl Into<Option<i32>>, message: impl Into<String>) -> Self {
        Self {
            part: ReplyPart::Command,
            code: code.into(),
            code_name: None,
            message: message.into(),
            labels: Vec::new(),
            topology_version: None,
            #[cfg(feature = "protocol")]
            reply: bson::RawDocumentBuf::new(),
        }
    }

    /// Whether the server ran out of the time that the command gave it (`maxTimeMS`): `MaxTimeMSExpired`.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.code == Some(MAX_TIME_EXPIRED)
    }

    /// Whether the connection has to [authenticate again](https://github.com/mongodb/specifications/blob/master/source/auth/auth.md#reauthentication)
    /// before the command is sent once more: `ReauthenticationRequired`, when the user's access token has expired.
    // AU-09
    #[must_use]
    pub fn requires_reauthentication(&self) -> bool {
        self.code == Some(REAUTHENTICATION_REQUIRED)
    }

    /// `AuthenticationFailed`: the server knows the mechanism, and does not take the credential.
    #[cfg(feature = "protocol")]
    pub(crate) fn is_authentication_failure(&self) -> bool {
        self.code == Some(AUTHENTICATION_FAILED)
    }

    /// Whether the server attached this label.
    #[must_use]
    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|own| own == label)
    }

    /// Whether the code is one after which a read may be tried again.
    #[must_use]
    pub fn has_retryable_code(&self) -> bool {
        self.code.is_some_and(|code| RETRYABLE_CODES.contains(&code))
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said =
            if self.message.is_empty() { "the server gave no reason" } else { &self.message };
        match self.part {
            ReplyPart::Command => write!(f, "{}", OneLine::text(said))?,
            ReplyPart::WriteConcern => write!(f, "write concern: {}", OneLine::text(said))?,
            ReplyPart::Write => write!(f, "write: {}", OneLine::text(said))?,
        }
        match (self.code, &self.code_name) {
            (Some(code), Some(name)) => write!(f, " (code {code}, {})", OneLine::name(name))?,
            (Some(code), None) => write!(f, " (code {code})")?,
            (None, Some(name)) => write!(f, " ({})", OneLine::name(name))?,
            (None, None) => {}
        }
        // All that the error reports is shown (LG-50).
        if self.labels.is_empty() {
            return Ok(());
        }
        write!(f, " [{}]", OneLine::text(&self.labels.join(", ")))
    }
}

/// Of bytes.
impl Eq for CommandError {}

/// Texts of the server are cut.
impl fmt::Debug for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, code, code_name, message, labels, topology_version, .. } = self;
        f.debug_struct("CommandError")
            .field("part", part)
            .field("code", code)
            .field("code_name", &code_name.as_deref().map(OneLine::name))
            .field("message", &OneLine::text(message))
            .field("labels", &OneLine::text(&labels.join(", ")))
            .field("topology_version", topology_version)
            .finish_non_exhaustive()
    }
}

impl core::error::Error for CommandError {}

/// The server's code for `maxTimeMS` that ran out.
pub(super) const MAX_TIME_EXPIRED: i32 = 50;

/// The server's code for a credential that it does not take.
#[cfg(feature = "protocol")]
const AUTHENTICATION_FAILED: i32 = 18;

/// The server's code for a credential that has expired.
const REAUTHENTICATION_REQUIRED: i32 = 391;

/// The codes of the retryable-reads specification: the state changes, and trouble behind the
/// server that may be over at the next attempt.
const RETRYABLE_CODES: [i32; 13] = [
    6,     // HostUnreachable
    7,     // HostNotFound
    89,    // NetworkTimeout
    91,    // ShutdownInProgress
    134,   // ReadConcernMajorityNotAvailableYet
    189,   // PrimarySteppedDown
    262,   // ExceededTimeLimit
    9001,  // SocketException
    10107, // NotWritablePrimary
    11600, // InterruptedAtShutdown
    11602, // InterruptedDueToReplStateChange
    13435, // NotPrimaryNoSecondaryOk
    13436, // NotPrimaryOrSecondary
];
