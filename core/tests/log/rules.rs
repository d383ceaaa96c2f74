//! What is behind the table: errors, their length, and secrets.

use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::log::{LogRecord, LogSettings, LogValue};
use cenote_core::pool::{CheckOutError, CloseReason, Event, WaiterId};
use cenote_core::uri::ConnectionString;

fn address() -> ServerAddress {
    "db1.example.com".parse().expect("an address")
}

fn not_checked_out<C: std::fmt::Display>(error: CheckOutError<C>, settings: LogSettings) -> String {
    let (request, duration) = (WaiterId(1), Duration::from_millis(3).into());
    let address = address();
    let failed = Event::ConnectionCheckOutFailed { request, error, duration };
    let record = LogRecord::new(&failed, &address, &settings);
    record.field("error").map(ToString::to_string).unwrap_or_default()
}

// LG-33: also when nothing failed, because the pool was never ready (ER-08).
#[test]
fn a_pool_that_was_never_ready_says_so() {
    let error = CheckOutError::<&str>::PoolCleared { cause: None };
    assert_eq!(
        not_checked_out(error, LogSettings::default()),
        "Connection pool for db1.example.com:27017 has not been marked ready yet"
    );
}

// EV-04, LG-08: there is no larger number of 64 bits with a sign.
#[test]
fn ids_beyond_the_largest_are_shown_as_that() {
    let event = Event::<&str>::ConnectionCheckedIn { connection_id: u64::MAX };
    let address = address();
    let record = LogRecord::new(&event, &address, &LogSettings::default());
    assert_eq!(record.field("driverConnectionId"), Some(&LogValue::Int(i64::MAX)));
}

// LG-48, LG-50: every text of an error is cut, fixed texts are not.
#[test]
fn errors_are_cut_at_the_length_that_is_set() {
    let settings = LogSettings::default().with_max_document_length(4);
    let establish = |cause| CheckOutError::EstablishFailed { cause };
    assert_eq!(not_checked_out(establish("1€34"), settings), "1€34");
    assert_eq!(not_checked_out(establish("1€345"), settings), "1€34...");
    assert_eq!(not_checked_out(CheckOutError::<&str>::Cancelled, settings), "The ...");

    let closed = Event::ConnectionClosed {
        connection_id: 7,
        reason: CloseReason::Error,
        error: Some("end of stream"),
    };
    assert_eq!(
        LogRecord::new(&closed, &address(), &settings).to_string(),
        "Connection closed: address=db1.example.com:27017, driver-generated ID=7. Reason: An error \
         occurred while using the connection. Error: end ..."
    );

    let long = "x".repeat(1001);
    let shown = not_checked_out(establish(long.as_str()), LogSettings::default());
    assert_eq!(shown, format!("{}...", &long[..1000]));
}

// LG-56
#[test]
fn no_record_has_a_secret_of_the_connection_string() {
    let uri = "mongodb://app:s3cret@db1.example.com/?maxPoolSize=20&authMechanism=PLAIN&tls=true";
    let uri = ConnectionString::parse(uri).unwrap();
    let events = [
        Event::ConnectionPoolCreated { options: uri.pool.clone().into() },
        Event::ConnectionClosed {
            connection_id: 7,
            reason: CloseReason::Error,
            error: Some(ConnectionError::network(Stage::Authentication, "end of stream")),
        },
    ];
    for event in events {
        let record = LogRecord::new(&event, &uri.hosts[0], &LogSettings::default());
        let shown = format!("{record} {record:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("app"), "{shown}");
    }
}
