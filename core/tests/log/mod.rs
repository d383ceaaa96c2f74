//! All log messages, to the letter: keys, their order, values and the line.

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

use self::rows::{Row, rows};

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

// PS-07, EV-02, EV-05, EV-28, LG-01, LG-02, LG-03, LG-04, LG-05, LG-06, LG-07, LG-09, LG-20, LG-21,
// LG-22, LG-23, LG-24, LG-25, LG-26, LG-27, LG-28, LG-29, LG-30, LG-31, LG-32, LG-33, LG-37, LG-53,
// DU-08
#[test]
fn every_event_has_its_record() {
    let rows = rows();
    for (address, address_fields, address_in_line) in ADDRESSES {
        let address: ServerAddress = address.parse().unwrap();
        for Row { event, message, fields, line } in &rows {
            let record = LogRecord::new(event, &address, &LogSettings::default());
            assert_eq!(record.message(), *message);
            assert_eq!(record.component(), Component::Connection);
            // LG-51
            assert_eq!(record.severity(), LogRecord::SEVERITY);
            let fields = format!("{address_fields} {fields}").replace('@', address_in_line);
            assert_eq!(shown(&record), fields.trim_end());
            assert_eq!(record.to_string(), line.replace('@', address_in_line));
        }
    }
    let mut types: Vec<&str> = rows.iter().map(|row| row.event.name()).collect();
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
