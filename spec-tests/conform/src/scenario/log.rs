//! Logging: the settings, and the messages that are logged. Not part of the official format.
//!
//! The environment variables are those of the file, not those of the process, which plays several
//! files at a time.

use std::collections::BTreeMap;

use cenote_core::address::ServerAddress;
use cenote_core::error::ConnectionError;
use cenote_core::log::{self, LogRecord, LogSettings, LogValue, Severity, Threshold};
use cenote_core::pool::Event;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::document::nested::wrong_at;
use crate::matching::{ADDRESS, difference};

/// The log settings of a scenario, and the messages that it expects.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Log {
    /// Environment variables.
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// What the application sets.
    max_document_length: Option<usize>,
    /// The severities of the logging framework, if not those of `tracing`.
    levels: Option<Vec<Level>>,
    /// All messages, in order.
    messages: Vec<Logged>,
}

/// The known environment variables.
const VARIABLES: [&str; 6] = [
    OF_THE_COMPONENT,
    "MONGODB_LOG_COMMAND",
    log::Component::Topology.variable(),
    log::Component::ServerSelection.variable(),
    OF_ALL,
    LogSettings::VARIABLE,
];

const OF_THE_COMPONENT: &str = log::Component::Connection.variable();
const OF_ALL: &str = log::Component::VARIABLE_OF_ALL;

/// A severity, as the specification names it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Level(Severity);

/// An expected message. Keys of its data that are not named can be anything.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Logged {
    level: Level,
    component: String,
    message: String,
    #[serde(default)]
    data: Map<String, Value>,
}

/// A message that was logged.
#[derive(Clone, Debug, PartialEq)]
pub struct LogMessage {
    /// Its severity, as the specification names it, such as `debug`.
    pub level: String,
    /// Its component, such as `connection`.
    pub component: String,
    /// Its fields, `message` among them. Numbers are numbers.
    pub data: Value,
}

impl Log {
    /// What serde cannot check.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(name) = self.variables.keys().find(|name| !VARIABLES.contains(&name.as_str())) {
            let what = format!("unknown variable, known are {}", VARIABLES.join(", "));
            return Err(wrong_at(&format!("variables/{name}"), what));
        }
        if self.levels.as_ref().is_some_and(Vec::is_empty) {
            return Err(wrong_at("levels", "a framework has some"));
        }
        Ok(())
    }

    /// The settings for log records. What the application sets has precedence over the environment.
    // LG-54
    #[must_use]
    pub fn settings(&self) -> LogSettings {
        match self.max_document_length {
            Some(length) => LogSettings::default().with_max_document_length(length),
            None => LogSettings::from_variable(self.variable(LogSettings::VARIABLE)),
        }
    }

    /// Checks that the scenario does not need a logging framework with other levels than `tracing`.
    /// For pools that log to `tracing`.
    ///
    /// # Errors
    ///
    /// If it does.
    pub fn require_levels_of_tracing(&self) -> Result<(), String> {
        let message = "log.levels: the levels of `tracing` are fixed";
        if self.levels.is_some() { Err(message.to_owned()) } else { Ok(()) }
    }

    /// The message for an event, unless its severity is filtered out. For pools without a logging
    /// framework.
    #[must_use]
    pub fn message(
        &self,
        event: &Event<ConnectionError>,
        address: &ServerAddress,
    ) -> Option<LogMessage> {
        if !self.threshold().admits(LogRecord::SEVERITY) {
            return None;
        }
        let record = LogRecord::new(event, address, &self.settings());
        let mut data = Map::from_iter([("message".to_owned(), json!(record.message()))]);
        data.extend(record.fields().map(|(key, value)| (key.to_owned(), shown(value))));
        let level = self.closest_level(LogRecord::SEVERITY).as_str().to_owned();
        Some(LogMessage {
            level,
            component: record.component().to_string(),
            data: Value::Object(data),
        })
    }

    /// The messages that are not filtered out. For pools whose logging framework records all.
    #[must_use]
    pub fn filter(&self, messages: Vec<LogMessage>) -> Vec<LogMessage> {
        let threshold = self.threshold();
        let is_admitted = |message: &LogMessage| {
            let level = Level::try_from(message.level.clone());
            level.is_ok_and(|Level(severity)| threshold.admits(severity))
        };
        messages.into_iter().filter(is_admitted).collect()
    }

    /// # Errors
    ///
    /// The first difference, and all messages.
    pub(crate) fn compare(&self, address: &str, seen: &[LogMessage]) -> Result<(), String> {
        let count = self.messages.len().max(seen.len());
        let differs = (0..count).find_map(|index| {
            let what = match (self.messages.get(index), seen.get(index)) {
                (Some(expected), Some(seen)) => expected.difference(address, seen)?,
                (Some(expected), None) => format!("expected {:?}, saw no more", expected.message),
                (None, Some(seen)) => format!("expected nothing more, saw {}", seen.data),
                (None, None) => return None,
            };
            Some(format!("message {index}: {what}"))
        });
        let Some(what) = differs else { return Ok(()) };
        let lines = seen.iter().map(|it| format!("\n  {} {} {}", it.level, it.component, it.data));
        Err(format!("{what}; logged:{}", lines.collect::<String>()))
    }

    fn threshold(&self) -> Threshold {
        Threshold::from_variables(self.variable(OF_THE_COMPONENT), self.variable(OF_ALL))
    }

    fn closest_level(&self, severity: Severity) -> Severity {
        let Some(levels) = &self.levels else { return severity };
        let levels: Vec<_> = levels.iter().map(|level| level.0).collect();
        severity.closest_of(&levels).unwrap_or(severity)
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
}

impl Logged {
    fn difference(&self, address: &str, seen: &LogMessage) -> Option<String> {
        let mut data = self.data.clone();
        for value in data.values_mut() {
            if let Value::String(text) = value {
                *text = text.replace(ADDRESS, address);
            }
        }
        data.insert("message".to_owned(), json!(self.message));
        let expected = json!({ "level": self.level.0.as_str(), "component": self.component });
        let envelope = json!({ "level": seen.level, "component": seen.component });
        // If the message is another one, other differences do not matter.
        let of_message = difference(&data["message"], seen.data.get("message"));
        of_message
            .or_else(|| difference(&expected, Some(&envelope)))
            .or_else(|| difference(&Value::Object(data), Some(&seen.data)))
    }
}

fn shown(value: &LogValue<'_>) -> Value {
    match value {
        LogValue::Int(number) => json!(number),
        LogValue::Double(number) => json!(number),
        LogValue::Bool(is_so) => json!(is_so),
        text @ (LogValue::Text(_) | _) => json!(text.to_string()),
    }
}

impl TryFrom<String> for Level {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let severity = Severity::ALL.into_iter().find(|severity| severity.as_str() == name);
        let known = || Severity::ALL.map(Severity::as_str).join(", ");
        severity.map(Self).ok_or_else(|| format!("unknown level `{name}`, known are {}", known()))
    }
}
