//! Events as the logs of drivers tell them: the messages of the component `connection`, in the forms that drivers write.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use serde_json::{Map, Value, json};

use crate::{Line, LineError};

type Fields = Map<String, Value>;

/// The event that a line of a log tells of, if it is one of those messages, and the id of its client.
///
/// Its time counts from 1970, or from midnight if the line has no date.
pub(super) fn event(text: &str) -> Option<(Result<Line, LineError>, Option<String>)> {
    let (before, fields) = structured(text).or_else(|| in_words(text))?;
    let message = fields.get("message")?.as_str()?;
    let (_, _, kind) = MESSAGES.iter().find(|(structured, ..)| *structured == message)?;
    let at = fields.get("t").or(fields.get("timestamp")).and_then(moment).or_else(|| time(before));
    let client = fields.get("clientId").map(Value::to_string);
    Some((line(kind, at, fields), client))
}

/// Each message: as structured logs name it, how it begins in words, and its event.
const MESSAGES: [(&str, &str, &str); 11] = [
    ("Connection pool created", "Connection pool created for ", "ConnectionPoolCreated"),
    ("Connection pool ready", "Connection pool ready for ", "ConnectionPoolReady"),
    (CLEARED, "Connection pool for ", "ConnectionPoolCleared"),
    ("Connection pool closed", "Connection pool closed for ", "ConnectionPoolClosed"),
    ("Connection created", "Connection created: address=", "ConnectionCreated"),
    ("Connection ready", "Connection ready: address=", "ConnectionReady"),
    ("Connection closed", "Connection closed: address=", "ConnectionClosed"),
    (
        "Connection checkout started",
        "Checkout started for connection to ",
        "ConnectionCheckOutStarted",
    ),
    (
        "Connection checkout failed",
        "Checkout failed for connection to ",
        "ConnectionCheckOutFailed",
    ),
    ("Connection checked out", "Connection checked out: address=", "ConnectionCheckedOut"),
    ("Connection checked in", "Connection checked in: address=", "ConnectionCheckedIn"),
];

const CLEARED: &str = "Connection pool cleared";

/// Reasons as events name them, by the first words of the specification's text, and of PyMongo's.
const REASONS: [(&str, &str); 8] = [
    ("Wait queue timeout", "timeout"),
    ("An error occurred while trying to establish", "connectionError"),
    ("An error occurred while using", "error"),
    ("Connection pool was closed", "poolClosed"),
    ("Connection pool was stale", "stale"),
    ("Connection became stale", "stale"),
    ("Connection has been available but unused", "idle"),
    ("Connection was idle", "idle"),
];

/// An event with the fields of its message.
fn line(kind: &str, at: Option<f64>, mut fields: Fields) -> Result<Line, LineError> {
    let mut take = |key: &str| fields.remove(key).unwrap_or_default();
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (host, port) = (text(take("serverHost")), text(take("serverPort")));
    let address =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let service = take("serviceId");
    let service = service.get("$oid").cloned().unwrap_or(service);
    let told = text(take("reason"));
    let reason =
        REASONS.iter().find(|(words, _)| told.starts_with(words)).map(|(_, reason)| reason);
    // PyMongo's is the reason once more.
    let error = Some(take("error")).filter(|it| !it.is_null()).map(text);
    let error = error.filter(|error| REASONS.iter().all(|(_, reason)| reason != error));
    let mut event = json!({
        "type": kind, "at": at, "address": address, "reason": reason, "error": error,
        "connectionId": take("driverConnectionId"), "durationMS": take("durationMS"),
        "serviceId": service,
        // Logs do not tell.
        "interruptInUseConnections": false,
    });
    if kind == "ConnectionPoolCreated" {
        event["options"] = fields.into();
    }
    serde_json::from_value::<Line>(event).map_err(LineError::Json)?.checked()
}

/// A message of key-value pairs, and what stands before it: an object in JSON, as PyMongo and Go write it, or as Node shows it.
fn structured(text: &str) -> Option<(&str, Fields)> {
    let (before, object) = text.split_at(text.find('{')?);
    let json = serde_json::Deserializer::from_str(object).into_iter().next();
    let fields = json.and_then(Result::ok).or_else(|| inspected(object))?;
    // Other libraries have messages, too.
    (fields.contains_key("message") && fields.contains_key("serverHost"))
        .then_some((before, fields))
}

/// `{ t: 2026-01-01T00:00:00.000Z, c: 'connection', serverPort: 27017, error: Error: reset`.
fn inspected(object: &str) -> Option<Fields> {
    let mut fields = Fields::new();
    let mut rest = object.strip_prefix("{ ")?;
    while let Some((key, value)) = rest.split_once(": ") {
        let value = value.strip_prefix("{ ").unwrap_or(value);
        let quote = value.chars().next().filter(|first| ['\'', '"', '`'].contains(first));
        let end = match quote {
            Some(quote) => 1 + value[1..].find(quote)?,
            // Errors are shown as they are, to the end of the line.
            None if value.starts_with(|first: char| first.is_alphabetic()) => {
                value.trim_end().len()
            }
            None => value.find([',', ' '])?,
        };
        let shown = value[..end].trim_start_matches(quote.unwrap_or(' '));
        let number = serde_json::from_str(shown).ok().filter(|_| quote.is_none());
        fields.insert(key.to_owned(), number.unwrap_or_else(|| shown.into()));
        rest = value[end..].trim_start_matches(['\'', '"', '`', ',', ' ']);
    }
    Some(fields)
}

/// A message in words, as Java's driver writes it, and what stands before it.
fn in_words(text: &str) -> Option<(&str, Fields)> {
    let (message, (before, told)) = MESSAGES
        .iter()
        .find_map(|(message, begins, _)| Some((*message, text.split_once(begins)?)))?;
    let address = told.split([' ', ',']).next()?.trim_end_matches('.').trim_end();
    let (host, port) = address.rsplit_once(':')?;
    // Errors begin so as well: "Connection pool for a:1 was cleared because …".
    if message == CLEARED && !told[address.len()..].starts_with(" cleared") {
        return None;
    }
    let mut fields = Fields::new();
    fields.insert("message".to_owned(), message.into());
    fields.insert("serverHost".to_owned(), host.trim_matches(['[', ']']).into());
    fields.insert("serverPort".to_owned(), port.into());
    for (key, begins) in NUMBERS {
        fields.extend(number_after(told, begins).map(|number| (key.to_owned(), number)));
    }
    for (key, begins, ends) in TEXTS {
        fields.extend(text_between(told, begins, ends).map(|text| (key.to_owned(), text.into())));
    }
    Some((before, fields))
}

fn number_after(told: &str, begins: &str) -> Option<Value> {
    let (_, after) = told.split_once(begins)?;
    let number = after.split(|it: char| !it.is_ascii_digit() && it != '.').next()?;
    serde_json::from_str(number.trim_end_matches('.')).ok()
}

/// Up to the end of the line, if what ends it is not there.
fn text_between<'t>(told: &'t str, begins: &str, ends: &str) -> Option<&'t str> {
    let (_, after) = told.split_once(begins)?;
    Some(after.split(ends).next()?.trim_end().trim_end_matches('.'))
}

/// Texts in words: their key, what stands before them, and what ends them.
const TEXTS: [(&str, &str, &str); 3] = [
    ("reason", ". Reason: ", "."),
    ("serviceId", " for serviceId ", " "),
    ("error", " Error: ", " Duration: "),
];

/// Numbers in words: their key, and what stands before them.
const NUMBERS: [(&str, &str); 9] = [
    ("driverConnectionId", "driver-generated ID="),
    ("durationMS", "established in="),
    ("durationMS", "duration="),
    ("durationMS", "Duration: "),
    ("maxIdleTimeMS", "maxIdleTimeMS="),
    ("minPoolSize", "minPoolSize="),
    ("maxPoolSize", "maxPoolSize="),
    ("maxConnecting", "maxConnecting="),
    ("waitQueueTimeoutMS", "waitQueueTimeoutMS="),
];

/// A field with a time: Go's are nanoseconds.
fn moment(value: &Value) -> Option<f64> {
    value.as_f64().map(|nanos| nanos / 1e9).or_else(|| time(value.as_str()?))
}

/// The first time in a text: `2026-01-01 00:00:00,123`, `2026-01-01T00:00:00.123Z` or `00:00:00.123`.
fn time(text: &str) -> Option<f64> {
    let mut date: Option<Date> = None;
    for word in text.split_whitespace() {
        let word = word.trim_matches(['[', ']', '"', ',']);
        let exact = word.contains('T').then(|| word.parse::<Timestamp>().ok()).flatten();
        if let Some(exact) = exact {
            return Some(exact.as_nanosecond() as f64 / 1e9);
        }
        let of_day = word.contains(':').then(|| word.parse::<Time>().ok()).flatten();
        let whole = word.contains('T').then(|| word.parse::<DateTime>().ok()).flatten();
        if let Some(whole) = whole.or_else(|| Some(date?.to_datetime(of_day?))) {
            let since = Offset::UTC.to_timestamp(whole).ok()?;
            return Some(since.as_nanosecond() as f64 / 1e9);
        }
        if let Some(of_day) = of_day {
            return Some(of_day.duration_since(Time::MIN).as_secs_f64());
        }
        date = word.replace('/', "-").parse().ok().or(date);
    }
    None
}
