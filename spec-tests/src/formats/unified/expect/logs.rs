//! What has to have been logged: exactly so many messages, in this order.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::matching;
use cenote_conform::LogMessage;

use crate::formats::logs::LogListener;
use crate::formats::unified::format::{ExpectLogMessage, ExpectLogMessages};

const PATIENCE: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_millis(100);

impl ExpectLogMessages {
    /// Compares with what was logged of the client's server.
    ///
    /// # Errors
    ///
    /// The first difference, and all that was seen.
    pub(in crate::formats::unified) fn judge(&self, logged: &LogListener) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        let seen = || -> Vec<LogMessage> {
            let ignored = |it: &LogMessage| self.ignore_messages.iter().any(|one| one.matches(it));
            logged.messages().into_iter().filter(|it| !ignored(it)).collect()
        };
        while seen().len() < self.messages.len() && Instant::now() < deadline {
            thread::sleep(SILENCE / 10);
        }
        thread::sleep(SILENCE);
        let seen = seen();
        self.compare(&seen).map_err(|what| {
            let lines = seen.iter().map(|it| format!("\n  {} {}", it.level, it.data));
            format!("messages of {}: {what}; seen:{}", self.client, lines.collect::<String>())
        })
    }

    fn compare(&self, seen: &[LogMessage]) -> Result<(), String> {
        for (index, expected) in self.messages.iter().enumerate() {
            let Some(seen) = seen.get(index) else {
                return Err(format!("message {index}: expected one, saw no more"));
            };
            expected.judge(seen).map_err(|what| format!("message {index}: {what}"))?;
        }
        match seen.get(self.messages.len()).filter(|_| !self.ignore_extra_messages) {
            Some(more) => Err(format!("expected nothing more, saw {}", more.data)),
            None => Ok(()),
        }
    }
}

impl ExpectLogMessage {
    fn matches(&self, seen: &LogMessage) -> bool {
        self.judge(seen).is_ok()
    }

    fn judge(&self, seen: &LogMessage) -> Result<(), String> {
        let expected = json!({ "level": self.level, "component": self.component });
        let in_envelope = json!({ "level": seen.level, "component": seen.component });
        matching::root(&expected, Some(&in_envelope))?;
        matching::root(&Value::Object(self.data.clone()), Some(&seen.data))
    }
}
