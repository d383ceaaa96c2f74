//! Whoever is told of a client, and what he may do then.

use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bson::rawdoc;
use cenote::endpoint::Role;

use crate::world::{member, standalone, until_open};

/// Longer than anything takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

/// On the thread of the loop, which is the only one that would go on: he does not wait for himself.
#[test]
fn a_subscriber_of_mio_may_close_the_client() {
    let only = member(Role::Primary);
    let client: Arc<OnceLock<cenote_mio::Client>> = Arc::default();
    let (told, telling) = channel();
    let of_subscriber = Arc::clone(&client);
    let builder = cenote_mio::Client::builder(&only.uri()).expect("a connection string");
    let made = builder.on_server_event(move |_| {
        if let Some(client) = of_subscriber.get() {
            client.close();
            let _ = told.send(());
        }
    });
    client.set(made.build().expect("good options")).expect("the only one");
    // A change, for one more event.
    only.with(cenote::endpoint::Server::step_down);
    telling.recv_timeout(LONG).expect("it has closed, and came back");
    client.get().expect("it is there").close();
    until_open(&only, 0);
}

/// The others hear of everything, and the server is watched all the same.
#[test]
fn one_who_panics_hurts_nobody() {
    let only = standalone();
    let (told, telling) = channel();
    let builder = cenote_mio::Client::builder(&only.uri()).expect("a connection string");
    let client = builder
        .on_server_event(|_| panic!("on purpose"))
        .on_server_event(move |event| {
            let _ = told.send(event.event.name());
        })
        .on_event(|_| panic!("on purpose"))
        .build()
        .expect("good options");
    assert!(client.command("admin", &rawdoc! { "ping": 1 }).is_ok());
    client.close();
    let told: Vec<_> = telling.iter().take(3).collect();
    let expected =
        ["ServerHeartbeatStarted", "ServerHeartbeatSucceeded", "ServerDescriptionChanged"];
    assert_eq!(told, expected);
}

/// What is held for long was checked out where the application says so, and not in here.
#[test]
fn a_connection_that_is_held_is_the_applications() {
    let only = standalone();
    let (told, telling) = channel();
    let builder = cenote_mio::Client::builder(&only.uri()).expect("a connection string");
    let client = builder
        .on_held_too_long(move |report| {
            let place = report.place.map(|place| (place.file().to_owned(), place.line()));
            drop(told.send(place));
        })
        .build()
        .expect("good options");
    let options =
        cenote_core::pool::PoolOptions::default().with_held_too_long(Duration::from_millis(5));
    let pool = client.pool(&only.address()).expect("of this client");
    pool.set_options(options).expect("good options");
    let selector = cenote_core::client::Selector::Any;
    let connection = client.check_out(&selector).expect("a connection");
    let line = line!() - 1;
    let (file, told_line) = telling.recv_timeout(LONG).expect("told").expect("a place");
    assert!(file.ends_with("subscribers.rs"), "{file}");
    assert_eq!(told_line, line);
    drop(connection);
    client.close();
}
