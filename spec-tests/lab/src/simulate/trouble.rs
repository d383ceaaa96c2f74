//! What can go wrong with the server of a world.

use super::coverage::Situation;

/// A temporary fault of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Refuses every new connection.
    Refuses,
    /// Answers on no connection.
    Stalls,
    /// Everything takes ten times as long.
    IsSlow,
    /// Resets all connections, and each new one before hello is answered.
    Resets,
    /// Disappears without closing its connections, and comes back.
    Vanishes,
    /// Answers hello with something else.
    TalksNonsense,
    /// Rejects all logins.
    RefusesLogins,
    /// Reports an overload: an error whose labels forbid clearing the pool.
    IsOverloaded,
    /// Closes idle connections.
    ClosesIdle,
    /// Replies everywhere that it is not the primary any more.
    StepsDown,
}

impl Trouble {
    pub(super) const ALL: [Self; 10] = [
        Self::Refuses,
        Self::Stalls,
        Self::IsSlow,
        Self::Resets,
        Self::Vanishes,
        Self::TalksNonsense,
        Self::RefusesLogins,
        Self::IsOverloaded,
        Self::ClosesIdle,
        Self::StepsDown,
    ];

    pub(super) const fn situation(self) -> Situation {
        match self {
            Self::Refuses => Situation::Refuses,
            Self::Stalls => Situation::Stalls,
            Self::IsSlow => Situation::IsSlow,
            Self::Resets => Situation::Resets,
            Self::Vanishes => Situation::Vanishes,
            Self::TalksNonsense => Situation::TalksNonsense,
            Self::RefusesLogins => Situation::RefusesLogins,
            Self::IsOverloaded => Situation::IsOverloaded,
            Self::ClosesIdle => Situation::ClosesIdle,
            Self::StepsDown => Situation::StepsDown,
        }
    }

    /// Whether no connection can be established meanwhile.
    pub(super) const fn prevents_opening(self) -> bool {
        match self {
            Self::Refuses
            | Self::Stalls
            | Self::Resets
            | Self::Vanishes
            | Self::TalksNonsense
            | Self::RefusesLogins
            | Self::IsOverloaded => true,
            Self::IsSlow | Self::ClosesIdle | Self::StepsDown => false,
        }
    }
}
