//! The causes of failures, as traces hold them.

use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use core::fmt;

use crate::error::{ConnectionError, Kind, OneLine, RetryWrites, Stage, label};

/// A cause that can be recorded.
///
/// A trace holds the stage of the connection, the kind of the error, its labels and one line of
/// text. Never more: a cause may hold replies of a server, or sockets.
pub trait TraceCause {
    /// The cause without its text. Called under the pool's lock, so it must be cheap.
    fn summary(&self) -> CauseSummary;

    /// The text, in one line, without credentials and payloads. A text of more than 256 bytes is
    /// cut. Called under the pool's lock.
    ///
    /// # Errors
    ///
    /// Those of `out`, passed on: it refuses more once it is full.
    fn write_text(&self, out: &mut dyn fmt::Write) -> fmt::Result;
}

/// A cause without its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CauseSummary {
    /// The stage of the connection, if that is known.
    pub stage: Option<Stage>,
    /// The kind of the error, if that is known.
    pub kind: Option<CauseKind>,
    /// The labels of the specifications that it carries.
    pub labels: CauseLabels,
}

/// The kind of an error: [`Kind`] without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CauseKind {
    /// [`Kind::Network`].
    Network,
    /// [`Kind::NetworkTimeout`].
    NetworkTimeout,
    /// [`Kind::Command`].
    Command,
    /// [`Kind::Protocol`].
    Protocol,
    /// [`Kind::Configuration`].
    Configuration,
    /// [`Kind::Local`].
    Local,
}

/// Which of the labels that retry loops look for a cause carries. Others are not recorded: a server
/// may send any text as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CauseLabels {
    /// [`label::SYSTEM_OVERLOADED_ERROR`].
    pub system_overloaded: bool,
    /// [`label::RETRYABLE_ERROR`].
    pub retryable: bool,
    /// [`label::RETRYABLE_WRITE_ERROR`], as the server sent it.
    pub retryable_write: bool,
}

impl CauseKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Network,
        Self::NetworkTimeout,
        Self::Command,
        Self::Protocol,
        Self::Configuration,
        Self::Local,
    ];

    /// As traces spell it: `network`, `networkTimeout`, `command`, `protocol`, `configuration`,
    /// `local`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::NetworkTimeout => "networkTimeout",
            Self::Command => "command",
            Self::Protocol => "protocol",
            Self::Configuration => "configuration",
            Self::Local => "local",
        }
    }
}

/// As traces spell a stage.
pub(super) const fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Dns => "dns",
        Stage::Tcp => "tcp",
        Stage::Proxy => "proxy",
        Stage::TlsIo => "tlsIo",
        Stage::TlsCertificate => "tlsCertificate",
        Stage::Hello => "hello",
        Stage::Authentication => "authentication",
        Stage::Operation => "operation",
    }
}

impl CauseLabels {
    /// The names of those that it carries.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        [
            (self.system_overloaded, label::SYSTEM_OVERLOADED_ERROR),
            (self.retryable, label::RETRYABLE_ERROR),
            (self.retryable_write, label::RETRYABLE_WRITE_ERROR),
        ]
        .into_iter()
        .filter_map(|(carried, name)| carried.then_some(name))
    }

    /// Adds a label; others than the three are ignored.
    pub(super) fn add(&mut self, name: &str) {
        match name {
            label::SYSTEM_OVERLOADED_ERROR => self.system_overloaded = true,
            label::RETRYABLE_ERROR => self.retryable = true,
            label::RETRYABLE_WRITE_ERROR => self.retryable_write = true,
            _ => {}
        }
    }
}

impl CauseSummary {
    /// As a small number: three bits of labels, four of the stage, three of the kind.
    pub(super) fn code(self) -> u64 {
        let Self { stage, kind, labels } = self;
        let CauseLabels { system_overloaded, retryable, retryable_write } = labels;
        let labels = u64::from(system_overloaded)
            | u64::from(retryable) << 1
            | u64::from(retryable_write) << 2;
        let stage = stage.map_or(0, |stage| stage as u64 + 1);
        let kind = kind.map_or(0, |kind| kind as u64 + 1);
        labels | stage << 3 | kind << 7
    }

    /// Back from the number.
    pub(super) fn from_code(code: u64) -> Self {
        let bit = |bit: u64| code >> bit & 1 == 1;
        let labels =
            CauseLabels { system_overloaded: bit(0), retryable: bit(1), retryable_write: bit(2) };
        let place = |number: u64| (number as usize).wrapping_sub(1);
        Self {
            stage: Stage::ALL.get(place(code >> 3 & 0xF)).copied(),
            kind: CauseKind::ALL.get(place(code >> 7 & 7)).copied(),
            labels,
        }
    }

    /// Numbers of causes are below this.
    pub(super) const CODE_BITS: u32 = 10;
}

impl TraceCause for ConnectionError {
    fn summary(&self) -> CauseSummary {
        let kind = match self.kind() {
            Kind::Network => CauseKind::Network,
            Kind::NetworkTimeout { .. } | Kind::NotSent { .. } => CauseKind::NetworkTimeout,
            Kind::Command(_) => CauseKind::Command,
            Kind::Protocol => CauseKind::Protocol,
            Kind::Configuration => CauseKind::Configuration,
            Kind::Local => CauseKind::Local,
        };
        let mut labels = CauseLabels::default();
        self.labels(RetryWrites::Disabled).for_each(|name| labels.add(name));
        CauseSummary { stage: Some(self.stage()), kind: Some(kind), labels }
    }

    fn write_text(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str(self.reason())
    }
}

/// Nothing is known, as in tests that care about decisions alone.
impl TraceCause for () {
    fn summary(&self) -> CauseSummary {
        CauseSummary::default()
    }

    fn write_text(&self, _: &mut dyn fmt::Write) -> fmt::Result {
        Ok(())
    }
}

macro_rules! plain_text {
    ($($type:ty),*) => {
        $(
            /// A text of which nothing more is known.
            impl TraceCause for $type {
                fn summary(&self) -> CauseSummary {
                    CauseSummary::default()
                }

                fn write_text(&self, out: &mut dyn fmt::Write) -> fmt::Result {
                    write!(out, "{self}")
                }
            }
        )*
    };
}

plain_text!(u32, u64, String, &'static str);

/// A cause in a trace. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Cause {
    /// The cause without its text.
    pub summary: CauseSummary,
    /// Its text, if that was recorded.
    pub text: Option<Arc<str>>,
}

impl Cause {
    /// The cause of a clear before the trace begins.
    #[cfg(any(test, feature = "protocol"))]
    pub(super) fn before_the_trace() -> Self {
        Self { summary: CauseSummary::default(), text: Some("before this trace begins".into()) }
    }
}

impl TraceCause for Cause {
    fn summary(&self) -> CauseSummary {
        self.summary
    }

    fn write_text(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str(self.text.as_deref().unwrap_or_default())
    }
}

/// One line: the stage and the text, or the kind where there is no text.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(stage) = self.summary.stage {
            write!(f, "{stage}: ")?;
        }
        match (&self.text, self.summary.kind) {
            (Some(text), _) => OneLine::text(text).fmt(f),
            (None, Some(kind)) => f.write_str(kind.as_str()),
            (None, None) => f.write_str("unknown"),
        }
    }
}

/// The text is cut.
impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { summary, text } = self;
        f.debug_struct("Cause")
            .field("summary", summary)
            .field("text", &text.as_deref().map(OneLine::text))
            .finish()
    }
}

/// How much of texts and addresses goes into a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Disclosure {
    /// As it is.
    #[default]
    Plain,
    /// Sixteen hexadecimal digits that are the same for the same text, so that equal texts can be
    /// recognized. A short or well-known text can be guessed from them.
    #[cfg(feature = "protocol")]
    Hashed,
    /// Nothing.
    Omitted,
}

impl Disclosure {
    /// The part of a text that is written.
    pub(super) fn apply(self, text: &str) -> Option<String> {
        match self {
            Self::Plain => Some(text.to_string()),
            #[cfg(feature = "protocol")]
            Self::Hashed => {
                use sha2::Digest as _;

                let digest = sha2::Sha256::digest(text.as_bytes());
                let hexadecimal = digest.iter().take(8).map(|byte| alloc::format!("{byte:02x}"));
                Some(core::iter::once("#".to_string()).chain(hexadecimal).collect())
            }
            Self::Omitted => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Every summary there can be.
    fn summaries() -> impl Iterator<Item = CauseSummary> {
        let stages = || Stage::ALL.into_iter().map(Some).chain([None]);
        let kinds = || CauseKind::ALL.into_iter().map(Some).chain([None]);
        let labels = |bits: u8| CauseLabels {
            system_overloaded: bits & 1 != 0,
            retryable: bits & 2 != 0,
            retryable_write: bits & 4 != 0,
        };
        stages().flat_map(move |stage| {
            kinds().flat_map(move |kind| {
                (0..8).map(move |bits| CauseSummary { stage, kind, labels: labels(bits) })
            })
        })
    }

    #[test]
    fn every_summary_has_a_number_of_its_own() {
        let mut codes: Vec<_> = summaries().map(CauseSummary::code).collect();
        assert!(codes.iter().all(|code| code >> CauseSummary::CODE_BITS == 0));
        assert!(summaries().all(|summary| CauseSummary::from_code(summary.code()) == summary));
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), 9 * 7 * 8);
        assert_eq!(CauseSummary::default().code(), 0);
    }

    /// Traces of earlier versions spell them so.
    #[test]
    fn numbers_and_names_do_not_change() {
        let stage = Some(Stage::Hello);
        let kind = Some(CauseKind::Command);
        let labels = CauseLabels { retryable_write: true, ..CauseLabels::default() };
        assert_eq!(CauseSummary { stage, kind, labels }.code(), 3 << 7 | 6 << 3 | 0b100);
        let names = [
            "dns",
            "tcp",
            "proxy",
            "tlsIo",
            "tlsCertificate",
            "hello",
            "authentication",
            "operation",
        ];
        assert_eq!(Stage::ALL.map(stage_name), names);
        let names = ["network", "networkTimeout", "command", "protocol", "configuration", "local"];
        assert_eq!(CauseKind::ALL.map(CauseKind::as_str), names);
    }

    #[test]
    fn labels_are_told_by_name_and_taken_back() {
        for CauseSummary { labels, .. } in summaries() {
            let mut again = CauseLabels::default();
            labels.names().for_each(|name| again.add(name));
            again.add("SomethingElse");
            assert_eq!(again, labels);
        }
    }

    #[test]
    fn an_error_tells_stage_kind_labels_and_reason() {
        let error = ConnectionError::network(Stage::Tcp, "refused");
        let labels =
            CauseLabels { system_overloaded: true, retryable: true, ..CauseLabels::default() };
        let (stage, kind) = (Some(Stage::Tcp), Some(CauseKind::Network));
        assert_eq!(error.summary(), CauseSummary { stage, kind, labels });
        let mut text = String::new();
        error.write_text(&mut text).unwrap();
        assert_eq!(text, "refused");
        let error = ConnectionError::protocol(Stage::Operation, "nonsense");
        let (stage, kind) = (Some(Stage::Operation), Some(CauseKind::Protocol));
        let summary = CauseSummary { stage, kind, labels: CauseLabels::default() };
        assert_eq!(error.summary(), summary);
        let again = Cause { summary, text: Some("as it was".into()) };
        assert_eq!(again.summary(), summary);
    }

    #[test]
    fn what_was_before_the_trace_says_so() {
        let mut text = String::new();
        Cause::before_the_trace().write_text(&mut text).unwrap();
        assert_eq!(text, "before this trace begins");
        text.clear();
        7_u64.write_text(&mut text).unwrap();
        ().write_text(&mut text).unwrap();
        assert_eq!(text, "7");
    }

    #[test]
    fn causes_are_told_in_words() {
        let cause = |stage, kind, text: Option<&str>| {
            let labels = CauseLabels::default();
            let summary = CauseSummary { stage, kind, labels };
            Cause { summary, text: text.map(Into::into) }.to_string()
        };
        let (hello, command) = (Some(Stage::Hello), Some(CauseKind::Command));
        assert_eq!(cause(hello, command, Some("no")), "hello: no");
        assert_eq!(cause(hello, command, None), "hello: command");
        assert_eq!(cause(None, None, None), "unknown");
    }
}
