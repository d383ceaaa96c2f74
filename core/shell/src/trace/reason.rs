//! Reasons.

/// Why a trace is written into a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The first check-out of an episode ran out of time.
    WaitQueueTimeout,
    /// An episode is over.
    AfterTimeouts,
    Panic,
    Signal,
    /// An inspector asked for a dump.
    Request,
    /// An inspector asked for a recording.
    Recording,
}

impl Reason {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::WaitQueueTimeout => "wait-queue-timeout",
            Self::AfterTimeouts => "after-timeouts",
            Self::Panic => "panic",
            Self::Signal => "signal",
            Self::Request => "request",
            Self::Recording => "recording",
        }
    }
}
