use thiserror::Error;

/// Why a server that calls itself the primary is not taken for it: the error of its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StalePrimary {
    /// Another member has been elected since.
    #[error("primary marked stale due to discovery of newer primary")]
    NewerPrimary,
    /// It was elected before a primary that is known, or has an older configuration of the set.
    #[error("primary marked stale due to electionId/setVersion mismatch")]
    OldElection,
}
