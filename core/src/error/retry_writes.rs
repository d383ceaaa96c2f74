use super::label;

/// Whether the client sends failed writes once more: `retryWrites` of the connection string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetryWrites {
    /// `retryWrites=true`, the default: failed writes get [`label::RETRYABLE_WRITE_ERROR`].
    Enabled,
    /// `retryWrites=false`.
    Disabled,
}

impl RetryWrites {
    /// The label for a write that may be sent once more, if the client does that.
    pub(crate) const fn label(self) -> Option<&'static str> {
        match self {
            Self::Enabled => Some(label::RETRYABLE_WRITE_ERROR),
            Self::Disabled => None,
        }
    }
}
