//! Counts the situations that occur in worlds, to show which faults were tested.

use std::fmt;

use cenote_core::pool::{CheckOutError, Purpose};
use cenote_core::sdam::StalePrimary;
use cenote_core::topology::{Action, Event};

use super::caller_profile::Request;

/// Makes [`Situation`] and [`GROUPS`] of one table, so that each situation has one name in one group.
macro_rules! situations {
    ($($group:literal { $($situation:ident $name:literal,)* })*) => {
        /// A situation that can occur in a world.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Situation {
            $($($situation,)*)*
        }

        /// All situations and their names, in the order of reports.
        const GROUPS: &[(&str, &[(Situation, &str)])] =
            &[$(($group, &[$((Situation::$situation, $name),)*])),*];

        const COUNT: usize = [$($($name,)*)*].len();
    };
}

situations! {
    "troubles" {
        Refuses "refuses",
        Stalls "stalls",
        IsSlow "is slow",
        Resets "resets",
        Vanishes "vanishes",
        TalksNonsense "talks nonsense",
        RefusesLogins "refuses logins",
        IsOverloaded "is overloaded",
        ClosesIdle "closes idle",
        StepsDown "steps down",
        ServicesMove "services change",
    }
    "connections" {
        OpeningFailed "not established",
        OpeningTimedOut "not established in time",
        LoginFailed "login failed",
        Aborted "aborted",
        LateAnswer "answered after that",
        BrokenInUse "broken in use",
        SilentInUse "silent in use",
        ClosedIdle "closed by the peer while idle",
        Interrupted "interrupted",
        LeakReport "reported as leaked",
        UnansweredReport "reported as unanswered",
        LateReply "returned before a reply",
        Drained "late reply read",
        DrainFailed "late reply not read",
        DrainAborted "late reply not wanted any more",
        WaitedForItsTime "established when it is time",
        Predicted "more kept than the minimum",
    }
    "callers" {
        OwnDeadline "own deadline",
        DeadlinePassed "own deadline in the past",
        Cancelled "cancelled",
        CancelledTooLate "cancelled too late",
        Burst "in a burst",
        Leaks "leak a connection",
        ReturnsBroken "return a broken connection",
        Pins "pin",
        WaitedTooLong "wait queue timeout",
        QueueFull "wait queue full",
        Shed "shed",
        Cleared "pool cleared",
    }
    "time" {
        ClockStandsStill "clock stands still",
        ClockRunsBack "clock runs back",
        ClockJumps "clock jumps",
        TimerLate "timer late",
        TimerEarly "timer early",
        TimersMerged "several deadlines in one timer",
        Coincidence "use ends at a deadline",
        ClientPaused "client paused",
        AnswersFirst "answers before deadlines after that",
    }
    "embedders" {
        OptionsChange "options change",
        Fork "forks",
        CredentialsChange "credentials change",
        ReleasesIdle "idle connections released",
        InheritedComesBack "parent's connection returned",
        Mistake "misuse",
    }
    "deployments" {
        IsElected "another primary elected",
        TwoPrimaries "two claim to be primary",
        Crashes "crashes",
        Splits "members split",
        AddsMember "member added",
        RemovesMember "member removed",
        RenamesMember "member renamed",
        ChangesMember "member's role changes",
        Recovers "member recovers",
        LeavesSet "member joins another set",
        ChangesVersion "another server version",
        ChangesRecords "SRV records change",
        Churn "many hosts come and go",
        CredentialReplaced "credential replaced",
        ShutsDown "shuts down",
        Restarts "restarts",
        IsCutOff "network is cut",
    }
    "wrong answers" {
        OtherMe "other me",
        NoMe "no me",
        OtherPrimary "other primary",
        NotListed "not listed",
        ListedAlone "listed alone",
        OddHosts "odd hosts",
        UnknownHost "unknown host",
        ManyHosts "too many hosts",
        OtherSet "other setName",
        IsStandalone "standalone",
        IsOther "router or member",
        IsGhost "ghost",
        IsOldPrimary "old primary",
        IsSamePrimary "second primary of one election",
        IsPrimaryWithoutElection "primary without election",
        IsFuturePrimary "future primary",
        IsEverything "primary and secondary",
        OldTopologyVersion "old topologyVersion",
        OtherProcess "other process each time",
        AnswersAtOnce "does not wait",
        TooOld "too old",
        TooNew "too new",
        Mistyped "mistyped field",
        RefusesHello "refuses hello",
        ResetsSecondHello "resets the second hello",
    }
    "clients" {
        ServerAdded "server added",
        ServerRemoved "server removed",
        ServerEnded "nothing left of it",
        PrimaryFound "primary found",
        PrimaryLost "primary lost",
        StalePrimary "primary marked stale",
        HostsChanged "hosts of SRV records change",
        Verdict "SDAM's verdict on a connection",
        ToldOfStepDown "operation told of a step-down",
        ToldOfShutdown "operation told of a shutdown",
        SelectionWaits "caller waits for a server",
        SelectionTimedOut "selection timed out",
        SelectionForeign "server of no deployment wanted",
        SelectionIncompatible "no server speaks a version of the client",
        LostByText "deployment lost, as the text wants",
    }
}

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
        GROUPS.iter().map(move |&(group, those)| {
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
    use super::{Coverage, Situation};

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
