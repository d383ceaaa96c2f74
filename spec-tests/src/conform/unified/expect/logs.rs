//! What has to have been logged: exactly so many messages, in this order.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::matching;
use cenote_conform::LogMessage;

use crate::conform::logs::LogListener;
use crate::conform::unified::format::ExpectLogMessages;

const PATIENCE: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_millis(100);

impl ExpectLogMessages {
    /// Compares with what was logged of the client's server.
    ///
    /// # Errors
    ///
    /// The first difference, and all that was seen.
    pub(in crate::conform::unified) fn judge(&self, logged: &LogListener) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while logged.messages().len() < self.messages.len() && Instant::now() < deadline {
            thread::sleep(SILENCE / 10);
        }
        thread::sleep(SILENCE);
        let seen = logged.messages();
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
            let envelope = json!({ "level": expected.level, "component": expected.component });
            let in_envelope = json!({ "level": seen.level, "component": seen.component });
            matching::root(&envelope, Some(&in_envelope))
                .and_then(|()| {
                    let data = Value::Object(expected.data.clone());
                    matching::root(&data, Some(&seen.data))
                })
                .map_err(|what| format!("message {index}: {what}"))?;
        }
        match seen.get(self.messages.len()) {
            Some(more) => Err(format!("expected nothing more, saw {}", more.data)),
            None => Ok(()),
        }
    }
}
