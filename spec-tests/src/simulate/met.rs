//! What worlds met, counted: so that whether a fault was tried is a figure and not a belief.

use std::fmt;

use cenote_core::pool::{CheckOutError, Purpose};

use super::habits::Request;

/// Something that worlds can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encounter {
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
    Closes,
    GoesHalfOpen,
    IsCutOff,
    Drips,
    Restarts,
    ShutsDown,
    HalfCloses,
    Cuts,
    FailsCommands,
    ServicesMove,
    // What became of connections.
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
    // What callers did, and what they were told.
    OwnDeadline,
    DeadlinePassed,
    GaveUp,
    GaveUpTooLate,
    Burst,
    HoldsForEver,
    BringsBackBroken,
    Pins,
    WaitedTooLong,
    Cleared,
    // What is wrong with time.
    ClockStandsStill,
    ClockRunsBack,
    ClockJumps,
    TimerLate,
    TimerEarly,
    TimersMerged,
    Coincidence,
    // What whoever embeds the machines does.
    OptionsChange,
    Fork,
    InheritedComesBack,
    Mistake,
}

/// All of them, with what they are called, in the order in which they are told.
const GROUPS: [(&str, &[(Encounter, &str)]); 5] = [
    (
        "troubles",
        &[
            (Encounter::Refuses, "refuses"),
            (Encounter::Stalls, "stalls"),
            (Encounter::IsSlow, "is slow"),
            (Encounter::Resets, "resets"),
            (Encounter::Vanishes, "vanishes"),
            (Encounter::TalksNonsense, "talks nonsense"),
            (Encounter::RefusesLogins, "refuses logins"),
            (Encounter::IsOverloaded, "is overloaded"),
            (Encounter::ClosesIdle, "closes idle"),
            (Encounter::StepsDown, "steps down"),
            (Encounter::Closes, "closes"),
            (Encounter::GoesHalfOpen, "goes half-open"),
            (Encounter::IsCutOff, "is cut off"),
            (Encounter::Drips, "drips"),
            (Encounter::Restarts, "restarts"),
            (Encounter::ShutsDown, "shuts down"),
            (Encounter::HalfCloses, "half-closes"),
            (Encounter::Cuts, "cuts replies"),
            (Encounter::FailsCommands, "fails commands"),
            (Encounter::ServicesMove, "services come and go"),
        ],
    ),
    (
        "connections",
        &[
            (Encounter::OpeningFailed, "not opened"),
            (Encounter::OpeningTimedOut, "not opened in time"),
            (Encounter::LoginFailed, "not logged in"),
            (Encounter::Aborted, "given up while opened"),
            (Encounter::LateAnswer, "answered after that"),
            (Encounter::BrokenInUse, "broken in use"),
            (Encounter::SilentInUse, "silent in use"),
            (Encounter::ClosedIdle, "closed by the peer while idle"),
            (Encounter::Interrupted, "interrupted"),
            (Encounter::LeakReport, "held too long"),
        ],
    ),
    (
        "callers",
        &[
            (Encounter::OwnDeadline, "deadline of their own"),
            (Encounter::DeadlinePassed, "which had passed"),
            (Encounter::GaveUp, "gave up"),
            (Encounter::GaveUpTooLate, "too late"),
            (Encounter::Burst, "asked in a burst"),
            (Encounter::HoldsForEver, "hold for ever"),
            (Encounter::BringsBackBroken, "bring back broken"),
            (Encounter::Pins, "pin"),
            (Encounter::WaitedTooLong, "waited too long"),
            (Encounter::Cleared, "told of a clear"),
        ],
    ),
    (
        "time",
        &[
            (Encounter::ClockStandsStill, "clock stands still"),
            (Encounter::ClockRunsBack, "runs back"),
            (Encounter::ClockJumps, "jumps"),
            (Encounter::TimerLate, "timer late"),
            (Encounter::TimerEarly, "early"),
            (Encounter::TimersMerged, "several in one"),
            (Encounter::Coincidence, "a use ends when something is due"),
        ],
    ),
    (
        "embedders",
        &[
            (Encounter::OptionsChange, "options change"),
            (Encounter::Fork, "forks"),
            (Encounter::InheritedComesBack, "the parent's connections come back"),
            (Encounter::Mistake, "mistakes"),
        ],
    ),
];

const COUNT: usize = Encounter::Mistake as usize + 1;

/// How often each was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met([u64; COUNT]);

impl Met {
    /// Once more.
    pub(super) fn count(&mut self, what: Encounter) {
        if let Some(count) = self.0.get_mut(what as usize) {
            *count += 1;
        }
    }

    /// What a caller asks for.
    pub(super) fn count_request(&mut self, request: &Request) {
        for (is_so, what) in [
            (request.allowed.is_some(), Encounter::OwnDeadline),
            (request.is_late, Encounter::DeadlinePassed),
            (request.purpose != Purpose::Other, Encounter::Pins),
        ] {
            if is_so {
                self.count(what);
            }
        }
    }

    /// What a caller was told instead of getting a connection.
    pub(super) fn count_error<C>(&mut self, error: &CheckOutError<C>) {
        match error {
            CheckOutError::WaitQueueTimeout { .. } => self.count(Encounter::WaitedTooLong),
            CheckOutError::PoolCleared { .. } => self.count(Encounter::Cleared),
            CheckOutError::Cancelled
            | CheckOutError::PoolClosed
            | CheckOutError::EstablishFailed { .. } => {}
        }
    }

    /// All that another world met.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }

    /// Everything that can be met, by group, and how often it was.
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, Vec<(&'static str, u64)>)> {
        let times = |what: Encounter| self.0.get(what as usize).copied().unwrap_or_default();
        GROUPS.into_iter().map(move |(group, those)| {
            (group, those.iter().map(|&(what, name)| (name, times(what))).collect())
        })
    }
}

impl Default for Met {
    fn default() -> Self {
        Self([0; COUNT])
    }
}

/// So many characters a line has, as far as that is possible.
const WIDTH: usize = 100;

/// A paragraph for each group; what was never met is left out.
impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (group, those) in self.groups() {
            let mut line = format!("{group:<15}");
            let met = those.into_iter().filter(|(_, times)| *times != 0);
            for (index, (name, times)) in met.enumerate() {
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
    use super::{COUNT, Encounter, GROUPS, Met};

    #[test]
    fn each_is_in_one_group() {
        let mut places: Vec<_> =
            GROUPS.iter().flat_map(|(_, those)| *those).map(|(what, _)| *what as usize).collect();
        places.sort_unstable();
        assert_eq!(places, (0..COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn what_was_met_is_added_and_told() {
        let (mut met, mut other) = (Met::default(), Met::default());
        met.count(Encounter::Fork);
        other.count(Encounter::Fork);
        other.count(Encounter::Stalls);
        met.add(&other);
        let told = met.to_string();
        assert!(told.contains("troubles        stalls 1\n"), "{told}");
        assert!(told.contains("embedders       forks 2\n"), "{told}");
    }
}
