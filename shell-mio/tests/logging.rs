//! The log messages, through `tracing`. In a process of its own: a subscriber is for all of it.

use std::fmt::{Debug, Write};
use std::process::Command;
use std::sync::{Arc, Mutex};

use cenote_core::address::ServerAddress;
use cenote_core::error::{ConnectionError, Stage};
use cenote_core::log::LogSettings;
use cenote_core::pool::PoolOptions;
use cenote_mio::{Builder, Connector, Pool, Progress, Target};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// A line for each message, with its fields in their order.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "cenote::connection"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        match *event.metadata().level() {
            Level::DEBUG => {}
            level => line.0.insert_str(0, level.as_str()),
        }
        self.0.lock().expect("no panic").push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let name = field.name();
        // Times are what they are.
        let result = match name {
            "durationMS" => write!(self.0, " {name}"),
            _ => write!(self.0, " {name}={value:?}"),
        };
        result.expect("text");
    }
}

/// Opens one connection, and fails the second.
struct Once;

impl Connector for Once {
    type Connection = ();

    async fn connect(&self, target: Target, _: Progress<Self>) -> Result<(), ConnectionError> {
        match target.connection_id {
            1 => Ok(()),
            _ => Err(ConnectionError::network(Stage::Tcp, "refused")),
        }
    }
}

#[test]
fn messages_have_the_words_and_keys_of_the_specification() {
    let lines = Lines::default();
    tracing::subscriber::set_global_default(lines.clone()).unwrap();
    // OP-35, OP-36: what a connection string has in vain, without its value.
    Pool::builder("mongodb://db.example.com/?maxConecting=3&maxPoolSize=secret").unwrap();
    let warnings = std::mem::take(&mut *lines.0.lock().unwrap());
    let expected = [
        "WARN message=Connection string: maxConecting: no such option; it is ignored",
        "WARN message=Connection string: maxPoolSize: ",
    ];
    assert_eq!(warnings.len(), expected.len(), "{warnings:#?}");
    for (warning, expected) in warnings.iter().zip(expected) {
        assert!(warning.starts_with(expected) && !warning.contains("secret"), "{warning}");
    }

    let options = PoolOptions::default().with_max_pool_size(2);
    let address = ServerAddress::tcp("db.example.com", 27018).unwrap();
    let pool = Builder::new(address, Once).options(options).build().unwrap();
    pool.ready();
    let first = pool.check_out().unwrap();
    pool.check_out().unwrap_err();
    drop(first);
    pool.close();
    let server = "serverHost=db.example.com serverPort=27018";
    let error = match std::env::var(LogSettings::VARIABLE).as_deref() {
        Ok("3") => "TCP...",
        _ => "TCP connect: refused",
    };
    let expected = [
        format!(" message=Connection pool created {server} maxPoolSize=2"),
        format!(" message=Connection pool ready {server}"),
        format!(" message=Connection checkout started {server}"),
        format!(" message=Connection created {server} driverConnectionId=1"),
        format!(" message=Connection ready {server} driverConnectionId=1 durationMS"),
        format!(" message=Connection checked out {server} driverConnectionId=1 durationMS"),
        format!(" message=Connection checkout started {server}"),
        format!(" message=Connection created {server} driverConnectionId=2"),
        format!(
            " message=Connection closed {server} driverConnectionId=2 \
             reason=An error occurred while using the connection error={error}"
        ),
        format!(
            " message=Connection checkout failed {server} durationMS \
             reason=An error occurred while trying to establish a new connection \
             error={error}"
        ),
        format!(" message=Connection checked in {server} driverConnectionId=1"),
        format!(
            " message=Connection closed {server} driverConnectionId=1 \
             reason=Connection pool was closed"
        ),
        format!(" message=Connection pool closed {server}"),
    ];
    let lines = lines.0.lock().unwrap();
    assert_eq!(*lines, expected, "{lines:#?}");
}

/// LG-48: the same in a process whose environment says so.
#[test]
fn errors_are_cut_where_the_environment_says() {
    let same = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "messages_have_the_words_and_keys_of_the_specification"])
        .env(LogSettings::VARIABLE, "3")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&same.stdout);
    assert!(same.status.success() && said.contains("1 passed"), "{said}");
}
