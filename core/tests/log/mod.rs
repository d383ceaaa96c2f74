//! All log messages: the page has them to the letter.

#![cfg(feature = "std")]

#[cfg(feature = "protocol")]
mod client;
#[cfg(feature = "protocol")]
mod page;
mod rows;
mod rules;

use std::fmt::Write as _;

use cenote_core::address::ServerAddress;
use cenote_core::log::{Component, LogRecord, LogSettings, LogValue, Severity};
use cenote_core::pool::Event;

use self::rows::events;

/// Address, the fields that follow from it, and how it stands in lines.
const ADDRESSES: [(&str, &str, &str); 4] = [
    (
        "db1.example.com:27018",
        r#"serverHost="db1.example.com" serverPort=27018"#,
        "db1.example.com:27018",
    ),
    (
        "DB1.example.com",
        r#"serverHost="db1.example.com" serverPort=27017"#,
        "db1.example.com:27017",
    ),
    ("[::1]", r#"serverHost="::1" serverPort=27017"#, "[::1]:27017"),
    (
        "/run/mongodb-27017.sock",
        r#"serverHost="/run/mongodb-27017.sock""#,
        "/run/mongodb-27017.sock",
    ),
];

#[test]
fn every_record_begins_with_the_address() {
    let events = events();
    for (address, fields, in_line) in ADDRESSES {
        let address: ServerAddress = address.parse().unwrap();
        for event in &events {
            let record = LogRecord::new(event, &address, &LogSettings::default());
            assert_eq!(record.component(), Component::Connection);
            // LG-51
            assert_eq!(record.severity(), LogRecord::SEVERITY);
            let shown = shown(&record);
            assert!(shown.starts_with(fields) && record.to_string().contains(in_line), "{shown}");
        }
    }
    let mut types: Vec<&str> = events.iter().map(Event::name).collect();
    types.dedup();
    assert_eq!(types.len(), 14, "of all types, together: {types:?}");
    assert_eq!(LogRecord::SEVERITY, Severity::Debug);
}

/// The fields of a record in their order; what is a double looks like one.
fn shown(record: &LogRecord<'_>) -> String {
    let mut shown = String::new();
    for (key, value) in record.fields() {
        let value = match value {
            LogValue::Int(number) => number.to_string(),
            LogValue::Double(number) => format!("{number:?}"),
            LogValue::Text(text) => format!("{text:?}"),
            LogValue::Bool(is_so) => is_so.to_string(),
            other => panic!("{other:?}"),
        };
        write!(shown, "{key}={value} ").expect("a String takes everything");
    }
    shown.truncate(shown.trim_end().len());
    shown
}
