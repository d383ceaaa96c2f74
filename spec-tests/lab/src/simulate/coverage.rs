//! Counts the situations that occur in worlds, to show which faults were tested.

use std::fmt;

use cenote_core::pool::{CheckOutError, Purpose};
use cenote_core::sdam::StalePrimary;
use cenote_core::topology::{Action, Event};

use super::caller_profile::Request;

/// A situation that can occur in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Situation {
    // Troubles that began.
    Refuses,
    Stalls,
    IsSlow,
    Resets,
    Vanishes,
    TalksNonsense,
    RefusesLogins,
    IsOverloaded,
    ClosesIdle,
    StepsDown,
    ServicesMove,
    // Connections.
    OpeningFailed,
    OpeningTimedOut,
    LoginFailed,
    Aborted,
    LateAnswer,
    BrokenInUse,
    SilentInUse,
    ClosedIdle,
    Interrupted,
    LeakReport,
    UnansweredReport,
    LateReply,
    Drained,
    DrainFailed,
    DrainAborted,
    WaitedForItsTime,
    Predicted,
    // Callers.
    OwnDeadline,
    DeadlinePassed,
    Cancelled,
    CancelledTooLate,
    Burst,
    Leaks,
    ReturnsBroken,
    Pins,
    WaitedTooLong,
    QueueFull,
    Shed,
    Cleared,
    // Clock and timers.
    ClockStandsStill,
    ClockRunsBack,
    ClockJumps,
    TimerLate,
    TimerEarly,
    TimersMerged,
    Coincidence,
    ClientPaused,
    AnswersFirst,
    // The embedder.
    OptionsChange,
    Fork,
    CredentialsChange,
    ReleasesIdle,
    InheritedComesBack,
    Mistake,
    // What happens to the servers of a deployment.
    IsElected,
    TwoPrimaries,
    Crashes,
    Splits,
    AddsMember,
    RemovesMember,
    RenamesMember,
    ChangesMember,
    Recovers,
    LeavesSet,
    ChangesVersion,
    ChangesRecords,
    Churn,
    ShutsDown,
    Restarts,
    IsCutOff,
    // What they answer that is wrong.
    OtherMe,
    NoMe,
    OtherPrimary,
    NotListed,
    ListedAlone,
    OddHosts,
    UnknownHost,
    ManyHosts,
    OtherSet,
    IsStandalone,
    IsOther,
    IsGhost,
    IsOldPrimary,
    IsSamePrimary,
    IsPrimaryWithoutElection,
    IsFuturePrimary,
    IsEverything,
    OldTopologyVersion,
    OtherProcess,
    AnswersAtOnce,
    TooOld,
    TooNew,
    Mistyped,
    RefusesHello,
    ResetsSecondHello,
    // What the client makes of it.
    ServerAdded,
    ServerRemoved,
    ServerEnded,
    PrimaryFound,
    PrimaryLost,
    StalePrimary,
    HostsChanged,
    Verdict,
    ToldOfStepDown,
    ToldOfShutdown,
    SelectionWaits,
    SelectionTimedOut,
    SelectionForeign,
    SelectionHopeless,
    LostByText,
}

/// All situations and their names, in the order of reports.
const GROUPS: [(&str, &[(Situation, &str)]); 8] = [
    (
        "troubles",
        &[
            (Situation::Refuses, "refuses"),
            (Situation::Stalls, "stalls"),
            (Situation::IsSlow, "is slow"),
            (Situation::Resets, "resets"),
            (Situation::Vanishes, "vanishes"),
            (Situation::TalksNonsense, "talks nonsense"),
            (Situation::RefusesLogins, "refuses logins"),
            (Situation::IsOverloaded, "is overloaded"),
            (Situation::ClosesIdle, "closes idle"),
            (Situation::StepsDown, "steps down"),
            (Situation::ServicesMove, "services change"),
        ],
    ),
    (
        "connections",
        &[
            (Situation::OpeningFailed, "not established"),
            (Situation::OpeningTimedOut, "not established in time"),
            (Situation::LoginFailed, "login failed"),
            (Situation::Aborted, "aborted"),
            (Situation::LateAnswer, "answered after that"),
            (Situation::BrokenInUse, "broken in use"),
            (Situation::SilentInUse, "silent in use"),
            (Situation::ClosedIdle, "closed by the peer while idle"),
            (Situation::Interrupted, "interrupted"),
            (Situation::LeakReport, "reported as leaked"),
            (Situation::UnansweredReport, "reported as unanswered"),
            (Situation::LateReply, "returned before a reply"),
            (Situation::Drained, "late reply read"),
            (Situation::DrainFailed, "late reply not read"),
            (Situation::DrainAborted, "late reply not wanted any more"),
            (Situation::WaitedForItsTime, "established when it is time"),
            (Situation::Predicted, "more kept than the minimum"),
        ],
    ),
    (
        "callers",
        &[
            (Situation::OwnDeadline, "own deadline"),
            (Situation::DeadlinePassed, "own deadline in the past"),
            (Situation::Cancelled, "cancelled"),
            (Situation::CancelledTooLate, "cancelled too late"),
            (Situation::Burst, "in a burst"),
            (Situation::Leaks, "leak a connection"),
            (Situation::ReturnsBroken, "return a broken connection"),
            (Situation::Pins, "pin"),
            (Situation::WaitedTooLong, "wait queue timeout"),
            (Situation::QueueFull, "wait queue full"),
            (Situation::Shed, "shed"),
            (Situation::Cleared, "pool cleared"),
        ],
    ),
    (
        "time",
        &[
            (Situation::ClockStandsStill, "clock stands still"),
            (Situation::ClockRunsBack, "clock runs back"),
            (Situation::ClockJumps, "clock jumps"),
            (Situation::TimerLate, "timer late"),
            (Situation::TimerEarly, "timer early"),
            (Situation::TimersMerged, "several deadlines in one timer"),
            (Situation::Coincidence, "use ends at a deadline"),
            (Situation::ClientPaused, "client paused"),
            (Situation::AnswersFirst, "answers before deadlines after that"),
        ],
    ),
    (
        "embedders",
        &[
            (Situation::OptionsChange, "options change"),
            (Situation::Fork, "forks"),
            (Situation::CredentialsChange, "credentials change"),
            (Situation::ReleasesIdle, "idle connections released"),
            (Situation::InheritedComesBack, "parent's connection returned"),
            (Situation::Mistake, "misuse"),
        ],
    ),
    (
        "deployments",
        &[
            (Situation::IsElected, "another primary elected"),
            (Situation::TwoPrimaries, "two claim to be primary"),
            (Situation::Crashes, "crashes"),
            (Situation::Splits, "members split"),
            (Situation::AddsMember, "member added"),
            (Situation::RemovesMember, "member removed"),
            (Situation::RenamesMember, "member renamed"),
            (Situation::ChangesMember, "member's role changes"),
            (Situation::Recovers, "member recovers"),
            (Situation::LeavesSet, "member joins another set"),
            (Situation::ChangesVersion, "another server version"),
            (Situation::ChangesRecords, "SRV records change"),
            (Situation::Churn, "many hosts come and go"),
            (Situation::ShutsDown, "shuts down"),
            (Situation::Restarts, "restarts"),
            (Situation::IsCutOff, "network is cut"),
        ],
    ),
    (
        "wrong answers",
        &[
            (Situation::OtherMe, "other me"),
            (Situation::NoMe, "no me"),
            (Situation::OtherPrimary, "other primary"),
            (Situation::NotListed, "not listed"),
            (Situation::ListedAlone, "listed alone"),
            (Situation::OddHosts, "odd hosts"),
            (Situation::UnknownHost, "unknown host"),
            (Situation::ManyHosts, "too many hosts"),
            (Situation::OtherSet, "other setName"),
            (Situation::IsStandalone, "standalone"),
            (Situation::IsOther, "router or member"),
            (Situation::IsGhost, "ghost"),
            (Situation::IsOldPrimary, "old primary"),
            (Situation::IsSamePrimary, "second primary of one election"),
            (Situation::IsPrimaryWithoutElection, "primary without election"),
            (Situation::IsFuturePrimary, "future primary"),
            (Situation::IsEverything, "primary and secondary"),
            (Situation::OldTopologyVersion, "old topologyVersion"),
            (Situation::OtherProcess, "other process each time"),
            (Situation::AnswersAtOnce, "does not wait"),
            (Situation::TooOld, "too old"),
            (Situation::TooNew, "too new"),
            (Situation::Mistyped, "mistyped field"),
            (Situation::RefusesHello, "refuses hello"),
            (Situation::ResetsSecondHello, "resets the second hello"),
        ],
    ),
    (
        "clients",
        &[
            (Situation::ServerAdded, "server added"),
            (Situation::ServerRemoved, "server removed"),
            (Situation::ServerEnded, "nothing left of it"),
            (Situation::PrimaryFound, "primary found"),
            (Situation::PrimaryLost, "primary lost"),
            (Situation::StalePrimary, "primary marked stale"),
            (Situation::HostsChanged, "hosts of SRV records change"),
            (Situation::Verdict, "SDAM's verdict on a connection"),
            (Situation::ToldOfStepDown, "operation told of a step-down"),
            (Situation::ToldOfShutdown, "operation told of a shutdown"),
            (Situation::SelectionWaits, "caller waits for a server"),
            (Situation::SelectionTimedOut, "selection timed out"),
            (Situation::SelectionForeign, "server of no deployment wanted"),
            (Situation::SelectionHopeless, "waiting is hopeless"),
            (Situation::LostByText, "deployment lost, as the text wants"),
        ],
    ),
];

const COUNT: usize = Situation::LostByText as usize + 1;

/// How often each situation occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage([u64; COUNT]);

impl Coverage {
    /// Counts one occurrence.
    pub(super) fn count(&mut self, what: Situation) {
        if let Some(count) = self.0.get_mut(what as usize) {
            *count += 1;
        }
    }

    /// Counts the parameters of a check-out.
    pub(super) fn count_request(&mut self, request: &Request) {
        for (is_so, what) in [
            (request.allowed.is_some(), Situation::OwnDeadline),
            (request.is_late, Situation::DeadlinePassed),
            (request.purpose != Purpose::Other, Situation::Pins),
        ] {
            if is_so {
                self.count(what);
            }
        }
    }

    /// Counts a failed check-out.
    pub(super) fn count_error<C>(&mut self, error: &CheckOutError<C>) {
        match error {
            CheckOutError::WaitQueueTimeout { .. } => self.count(Situation::WaitedTooLong),
            CheckOutError::WaitQueueFull { .. } => self.count(Situation::QueueFull),
            CheckOutError::Shed { .. } => self.count(Situation::Shed),
            CheckOutError::PoolCleared { .. } => self.count(Situation::Cleared),
            CheckOutError::Cancelled
            | CheckOutError::PoolClosed
            | CheckOutError::EstablishFailed { .. } => {}
        }
    }

    /// Counts what a topology emitted.
    pub(super) fn count_topology(&mut self, action: &Action) {
        match action {
            Action::AddServer { .. } => self.count(Situation::ServerAdded),
            Action::RemoveServer { .. } => self.count(Situation::ServerRemoved),
            Action::EmitEvent(Event::TopologyDescriptionChanged { previous, new }) => {
                match (previous.primary(), new.primary()) {
                    (None, Some(_)) => self.count(Situation::PrimaryFound),
                    (Some(_), None) => self.count(Situation::PrimaryLost),
                    (Some(_), Some(_)) | (None, None) => {}
                }
            }
            Action::EmitEvent(Event::ServerDescriptionChanged { new, .. }) => {
                let error = new.error.as_ref();
                if error.is_some_and(|error| error.source_as::<StalePrimary>().is_some()) {
                    self.count(Situation::StalePrimary);
                }
            }
            Action::EmitEvent(_) => {}
        }
    }

    /// Adds the counts of another world.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }

    /// All situations by group, each with its count.
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, Vec<(&'static str, u64)>)> {
        let times = |what: Situation| self.0.get(what as usize).copied().unwrap_or_default();
        GROUPS.into_iter().map(move |(group, those)| {
            (group, those.iter().map(|&(what, name)| (name, times(what))).collect())
        })
    }
}

impl Default for Coverage {
    fn default() -> Self {
        Self([0; COUNT])
    }
}

/// The length of lines, as far as possible.
const WIDTH: usize = 100;

/// A paragraph for each group, without situations that did not occur.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (group, those) in self.groups() {
            let mut line = format!("{group:<15}");
            let occurred = those.into_iter().filter(|(_, times)| *times != 0);
            for (index, (name, times)) in occurred.enumerate() {
                let item = format!(" {name} {times}");
                line.push_str(if index == 0 { "" } else { "," });
                if line.len() + item.len() >= WIDTH {
                    writeln!(f, "{line}")?;
                    line = " ".repeat(15);
                }
                line.push_str(&item);
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNT, Coverage, GROUPS, Situation};

    #[test]
    fn each_situation_is_in_one_group() {
        let mut places: Vec<_> =
            GROUPS.iter().flat_map(|(_, those)| *those).map(|(what, _)| *what as usize).collect();
        places.sort_unstable();
        assert_eq!(places, (0..COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn counts_are_added_and_reported() {
        let (mut coverage, mut other) = (Coverage::default(), Coverage::default());
        coverage.count(Situation::Fork);
        other.count(Situation::Fork);
        other.count(Situation::Stalls);
        coverage.add(&other);
        let text = coverage.to_string();
        assert!(text.contains("troubles        stalls 1\n"), "{text}");
        assert!(text.contains("embedders       forks 2\n"), "{text}");
    }
}
