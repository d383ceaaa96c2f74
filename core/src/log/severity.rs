use core::fmt;

/// How severe a message is, from the most to the least severe. A greater one is less severe.
// LG-45
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// 0.
    Emergency,
    /// 1.
    Alert,
    /// 2.
    Critical,
    /// 3.
    Error,
    /// 4.
    Warn,
    /// 5.
    Notice,
    /// 6: that a server is waited for.
    Info,
    /// 7: nearly all messages.
    Debug,
    /// 8.
    Trace,
}

/// From which severity on messages are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Threshold {
    /// None at all, which is the default.
    #[default]
    Off,
    /// Messages of this severity and of higher ones.
    From(Severity),
}

impl Severity {
    /// Every severity, the most severe one first.
    pub const ALL: [Self; 9] = [
        Self::Emergency,
        Self::Alert,
        Self::Critical,
        Self::Error,
        Self::Warn,
        Self::Notice,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];

    /// As the values of variables spell it, in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Emergency => "emergency",
            Self::Alert => "alert",
            Self::Critical => "critical",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Notice => "notice",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// The severity for a framework that has only the `available` ones: this one, or
    /// else the next less severe one, or else the next more severe one. `None` if there are none.
    ///
    /// ```
    /// use cenote_core::log::Severity::{Critical, Error, Info, Notice, Trace, Warn};
    ///
    /// assert_eq!(Critical.closest_of(&[Error, Warn, Info]), Some(Error));
    /// assert_eq!(Notice.closest_of(&[Error, Warn, Info]), Some(Info));
    /// assert_eq!(Trace.closest_of(&[Error, Warn, Info]), Some(Info));
    /// ```
    // LG-46
    #[must_use]
    pub fn closest_of(self, available: &[Self]) -> Option<Self> {
        let less_severe = available.iter().filter(|&&other| other >= self).min();
        less_severe.or_else(|| available.iter().max()).copied()
    }
}

impl Threshold {
    /// What the values of [the component's variable](super::Component::variable) and of
    /// [the one for all](super::Component::VARIABLE_OF_ALL) ask for: the component's own counts first. One that is not
    /// valid counts as not set and is no error.
    // LG-42, LG-44
    #[must_use]
    pub fn from_variables(own: Option<&str>, all: Option<&str>) -> Self {
        let valid = |value: Option<&str>| value.and_then(Self::parse);
        valid(own).or_else(|| valid(all)).unwrap_or_default()
    }

    /// Reads `off` or the name of a severity, in any case.
    // LG-45
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("off") {
            return Some(Self::Off);
        }
        let named = |severity: &Severity| severity.as_str().eq_ignore_ascii_case(text);
        Severity::ALL.into_iter().find(named).map(Self::From)
    }

    /// Whether messages of this severity are enabled. Call it before making a record.
    // LG-52
    #[must_use]
    pub fn admits(self, severity: Severity) -> bool {
        match self {
            Self::Off => false,
            Self::From(least) => severity <= least,
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::{Severity, Threshold};

    // LG-45
    #[test]
    fn names_are_read_in_any_case() {
        for severity in Severity::ALL {
            let from = Some(Threshold::From(severity));
            assert_eq!(Threshold::parse(severity.as_str()), from);
            assert_eq!(Threshold::parse(&severity.to_string().to_uppercase()), from);
        }
        assert_eq!(Threshold::parse("Off"), Some(Threshold::Off));
        for invalid in ["", "warning", " debug", "7"] {
            assert_eq!(Threshold::parse(invalid), None, "{invalid}");
        }
    }

    // LG-42, LG-44
    #[test]
    fn the_component_counts_before_all_and_silence_is_the_default() {
        let debug = Threshold::From(Severity::Debug);
        let variables = Threshold::from_variables;
        assert_eq!(variables(Some("debug"), Some("off")), debug);
        assert_eq!(variables(Some("off"), Some("debug")), Threshold::Off);
        assert_eq!(variables(Some("loud"), Some("debug")), debug);
        assert_eq!(variables(None, Some("debug")), debug);
        assert_eq!(variables(Some("loud"), None), Threshold::Off);
    }

    // LG-52
    #[test]
    fn a_threshold_admits_itself_and_what_is_more_severe() {
        for (at, severity) in Severity::ALL.into_iter().enumerate() {
            let admitted = Severity::ALL.map(|other| Threshold::From(severity).admits(other));
            assert_eq!(admitted.iter().filter(|&&it| it).count(), at + 1, "{severity}");
            assert!(!Threshold::Off.admits(severity));
        }
    }

    // LG-46
    #[test]
    fn a_missing_severity_has_a_stand_in() {
        use Severity::{Alert, Debug, Emergency, Error, Info, Notice, Trace};
        let framework = [Info, Error, Debug];
        let table = [(Emergency, Error), (Alert, Error), (Notice, Info), (Trace, Debug)];
        for (severity, expected) in table {
            assert_eq!(severity.closest_of(&framework), Some(expected), "{severity}");
        }
        assert_eq!(Error.closest_of(&[]), None);
    }
}
