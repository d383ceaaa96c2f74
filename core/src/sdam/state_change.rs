use crate::error::CommandError;

/// A server's refusal that says: I am not, or no longer, what you take me for.
// SD-29
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StateChange {
    /// It is a secondary now, or steps down.
    NotWritablePrimary,
    /// It is between two states and serves no operation for the moment.
    NodeIsRecovering,
    /// It goes away, and its connections with it: the one case that clears the pool.
    NodeIsShuttingDown,
}

impl StateChange {
    /// Classifies a server's error; `None` when it says nothing about the server's state.
    ///
    /// The code decides alone. Only where there is none does the message count, as replies of very
    /// old servers and proxies have it.
    // SD-30
    #[must_use]
    pub fn of(error: &CommandError) -> Option<Self> {
        error.code.map_or_else(|| Self::of_message(&error.message), Self::of_code)
    }

    fn of_code(code: i32) -> Option<Self> {
        match code {
            10107 | 13435 | 10058 => Some(Self::NotWritablePrimary),
            11602 | 13436 | 189 => Some(Self::NodeIsRecovering),
            11600 | 91 => Some(Self::NodeIsShuttingDown),
            _ => None,
        }
    }

    /// "not master" is part of the text of a recovering node, so that one is asked first.
    fn of_message(message: &str) -> Option<Self> {
        if message.contains("node is recovering") || message.contains("not master or secondary") {
            return Some(Self::NodeIsRecovering);
        }
        message.contains("not master").then_some(Self::NotWritablePrimary)
    }
}
