//! Logs of drivers as events.

use std::borrow::Cow;

use crate::{Events, Kind, Line, Unreadable};

fn read(log: &str) -> Vec<Line> {
    Events::new(log.as_bytes()).map(|event| event.expect("an event").1).collect()
}

/// The whole line of an event of connection 7 at a:1, but for its kind.
fn of_connection(kind: Kind, at: f64, milliseconds: Option<f64>) -> Line {
    Line {
        at: Some(at),
        kind,
        address: "a:1".into(),
        connection_id: Some(7),
        milliseconds,
        reason: None,
        error: None,
        service_id: None,
        interrupts: Some(false),
        options: None,
    }
}

#[test]
fn each_driver_writes_its_log_in_its_own_way() {
    let pymongo = r#"
        2026-01-01 00:00:01,500 DEBUG pymongo.topology {"message": "Server heartbeat started", "serverHost": "a"}
        2026-01-01 00:00:01,500 DEBUG pymongo.connection {"message": "Connection checked out", "clientId": {"$oid": "65"}, "serverHost": "a", "serverPort": 1, "driverConnectionId": 7, "durationMS": 2.5}
        a line of the program { that is nothing }"#;
    let node = "
        { t: 2026-01-01T00:00:01.500Z, c: 'connection', s: 'debug', serverHost: 'a', serverPort: 1, message: 'Connection checked out', driverConnectionId: 7, durationMS: 2.5 }";
    let go = r#"
        {"driverConnectionId":7,"durationMS":2.5,"level":"debug","message":"Connection checked out","serverHost":"a","serverPort":"1","timestamp":1767225601500000000}"#;
    for log in [pymongo, node, go] {
        let told = of_connection(Kind::ConnectionCheckedOut, 1_767_225_601.5, Some(2.5));
        assert_eq!(read(log), [told], "{log}");
    }
}

#[test]
fn a_log_in_words_is_read_across_midnight() {
    let log = "\
23:59:59.900 [main] DEBUG org.mongodb.driver.connection - Connection pool created for [::1]:1 using options maxIdleTimeMS=0, minPoolSize=0, maxPoolSize=2, maxConnecting=3, waitQueueTimeoutMS=50
23:59:59.950 [main] DEBUG org.mongodb.driver.connection - Connection ready: address=a:1, driver-generated ID=7, established in=10 ms
23:59:59.949 [main] DEBUG org.mongodb.driver.connection - Connection checked in: address=a:1, driver-generated ID=7
00:00:00.500 [main] DEBUG org.mongodb.driver.connection - Checkout failed for connection to a:1. Reason: Wait queue timeout elapsed without a connection becoming available. Duration: 50 ms
00:00:00.550 [main] ERROR shop - Connection pool for a:1 was cleared because another operation failed
00:00:00.560 [main] DEBUG org.mongodb.driver.connection - Connection pool for a:1 cleared
00:00:00.600 [main] DEBUG org.mongodb.driver.connection - Connection closed: address=a:1, driver-generated ID=7. Reason: An error occurred while using the connection. Error: reset by the peer: 4";
    let [created, ready, given, failed, cleared, closed] =
        read(log).try_into().expect("an event for each line");
    assert_eq!((&*created.address, created.at), ("[::1]:1", Some(86_399.9)));
    let options = created.options.expect("options");
    assert_eq!((options.max_pool_size, options.max_connecting), (Some(2), Some(3)));
    assert_eq!(options.wait_queue_timeout, Some(50.0));
    assert_eq!(ready, of_connection(Kind::ConnectionReady, 86_399.95, Some(10.0)));
    // Another thread wrote its line first.
    assert_eq!(given, of_connection(Kind::ConnectionCheckedIn, 86_399.95, None));
    let timeout = of_connection(Kind::ConnectionCheckOutFailed, 86_400.5, Some(50.0));
    assert_eq!(
        failed,
        Line { connection_id: None, reason: Some(Cow::Borrowed("timeout")), ..timeout }
    );
    assert_eq!((cleared.kind, cleared.at), (Kind::ConnectionPoolCleared, Some(86_400.56)));
    let error = Some("reset by the peer: 4".to_owned());
    let reason = Some(Cow::Borrowed("error"));
    let told = of_connection(Kind::ConnectionClosed, 86_400.6, None);
    assert_eq!(closed, Line { reason, error, ..told });
}

#[test]
fn the_clients_of_a_log_are_told_apart() {
    let of = |client| {
        format!(
            r#"{{"message": "Connection pool ready", "clientId": "{client}", "serverHost": "a", "serverPort": 1}}"#
        )
    };
    let log = [of("one"), of("two"), of("one")].join("\n");
    let addresses: Vec<_> = read(&log).into_iter().map(|event| event.address).collect();
    assert_eq!(
        addresses.iter().map(|it| &**it).collect::<Vec<_>>(),
        ["a:1", "a:1 of client \"two\"", "a:1"]
    );
}

#[test]
fn the_stack_of_an_error_of_node_is_no_event() {
    let log = "
{ t: 2026-01-01T00:00:01.500Z, c: 'connection', s: 'debug', serverHost: 'a', serverPort: 1, message: 'Connection closed', driverConnectionId: 7, reason: 'An error occurred while using the connection', error: { MongoNetworkError: it's, message: 'Connection created'
    at connectionFailureError (connect.js:1:2) {
  [Symbol(errorLabels)]: Set(1) { 'ResetPool' }
} }";
    let told = of_connection(Kind::ConnectionClosed, 1_767_225_601.5, None);
    let error = Some("MongoNetworkError: it's, message: 'Connection created'".to_owned());
    assert_eq!(read(log), [Line { reason: Some(Cow::Borrowed("error")), error, ..told }]);
}

#[test]
fn a_log_without_such_messages_is_told() {
    let first = Events::new("\nhello\nworld\n".as_bytes()).next();
    assert!(matches!(first, Some(Err(Unreadable::NoEvents { line: 2, .. }))), "{first:?}");
}

#[test]
fn the_clear_of_a_service_is_of_that_service() {
    let log = r#"
2026-01-01 00:00:01,500 {"message": "Connection pool cleared", "serverHost": "a", "serverPort": 1, "serviceId": "65a"}
2026-01-01 00:00:01,500 {"message": "Connection pool cleared", "serverHost": "a", "serverPort": 1, "serviceId": {"$oid": "65a"}}
2026-01-01 00:00:01,500 Connection pool for a:1 cleared for serviceId 65a"#;
    let services: Vec<_> = read(log).into_iter().map(|event| event.service_id).collect();
    assert_eq!(services, [(); 3].map(|()| Some("65a".to_owned())));
}

#[test]
fn what_else_is_in_the_file_means_nothing() {
    let log = b"2026-01-01 00:00:01,500 {\"message\": \"Connection created\", \"serverHost\": \"a\", \"serverPort\": 1, \"driverConnectionId\": 7}
{\"message\": \"Connection closed\", \"peer\": \"10.0.0.1\"}
\xff no text
2026-01-01 00:00:02,500 Connection closed: address=a:1, driver-gene";
    let read: Result<Vec<_>, _> = Events::new(log.as_slice()).collect();
    let created = of_connection(Kind::ConnectionCreated, 1_767_225_601.5, None);
    assert_eq!(read.expect("events"), [(1, created)]);
}

#[test]
fn a_clock_that_is_put_back_goes_on() {
    let line = |time: &str| format!("{time} Connection pool ready for a:1");
    let log = [
        "2026-10-25T02:59:59+02:00",
        "2026-10-25T02:00:01+01:00",
        "2026-10-25 00:00:00",
        "2026-10-25 00:00:10",
    ];
    let times: Vec<_> =
        read(&log.map(line).join("\n")).into_iter().filter_map(|it| it.at).collect();
    let since: Vec<_> = times.iter().map(|at| at - times[0]).collect();
    // The third line is an hour behind the second.
    assert_eq!(since, [0.0, 2.0, 2.0, 12.0]);
}
