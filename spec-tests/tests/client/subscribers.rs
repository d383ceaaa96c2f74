//! Subscribers of a client's events, and what they may do in the call.

use std::panic::{Location, panic_any};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_core::client::{ClientError, Selector};
use cenote_core::pool::Purpose;
use cenote_endpoint::Role;

use crate::shells::{Shell, Subscribers, client, on_all_runtimes};
use crate::world::{fail_point, judge, member, standalone, until_open};

on_all_runtimes!(
    a_slow_subscriber_of_servers_does_not_delay_callers,
    a_slow_subscriber_of_servers_does_not_delay_a_close_with_a_deadline,
);

/// Longer than anything takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

/// On the thread of the loop, which is the only one that would go on: the call must not wait for it.
#[test]
fn a_subscriber_of_mio_may_close_the_client() {
    let only = member(Role::Primary);
    let client: Arc<OnceLock<cenote_mio::Client>> = Arc::default();
    let (told, telling) = channel();
    let of_subscriber = Arc::clone(&client);
    let builder = cenote_mio::Client::builder(&only.uri()).expect("a connection string");
    let made = builder.on_event(judge()).on_heartbeat(move |_| {
        if let Some(client) = of_subscriber.get() {
            client.close();
            let _ = told.send(());
        }
    });
    client.set(made.build().expect("good options")).expect("the only one");
    // A change, for one more event.
    only.with(cenote_endpoint::Server::step_down);
    telling.recv_timeout(LONG).expect("it has closed, and came back");
    client.get().expect("it is there").close();
    until_open(&only, 0);
}

/// A caller that waits for a server goes on to the pool while the subscriber still runs.
fn a_slow_subscriber_of_servers_does_not_delay_callers(shell: Shell) {
    let only = standalone();
    // The caller waits by the time that the reply comes.
    let data =
        rawdoc! { "failCommands": ["isMaster"], "blockConnection": true, "blockTimeMS": 300 };
    fail_point(&only, data, 1);
    let (asked, is_asked) = channel();
    let is_asked = Mutex::new(Some(is_asked));
    let (heard, hears) = channel();
    let subscribers = Subscribers {
        pools: Some(Box::new(move |event, _| {
            if event.name() == "ConnectionCheckOutStarted" {
                let _ = asked.send(());
            }
        })),
        heartbeats: Some(Box::new(move |event| {
            if event.event.name() == "ServerHeartbeatSucceeded" {
                let first = is_asked.lock().expect("no panic").take();
                first.into_iter().for_each(|is_asked| {
                    heard.send(is_asked.recv_timeout(LONG).is_ok()).expect("the test waits");
                });
            }
        })),
        ..Subscribers::default()
    };
    let client = client(shell, &only.uri(), None, subscribers);
    client.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
    assert_eq!(hears.recv(), Ok(true), "the caller asked the pool meanwhile");
    client.close();
}

/// Where callers block, the subscriber runs on the thread that `close` waits for.
fn a_slow_subscriber_of_servers_does_not_delay_a_close_with_a_deadline(shell: Shell) {
    let only = standalone();
    let (entered, is_in) = channel();
    let (leave, may_leave) = channel::<()>();
    let may_leave = Mutex::new(may_leave);
    // The thread that makes the client may emit the first events.
    let here = thread::current().id();
    let subscribers = Subscribers {
        heartbeats: Some(Box::new(move |event| {
            let is_here = thread::current().id() == here;
            if event.event.name() == "ServerHeartbeatSucceeded" && !is_here {
                let _ = entered.send(());
                let _ = may_leave.lock().expect("no panic").recv();
            }
        })),
        ..Subscribers::default()
    };
    let uri = format!("{}&heartbeatFrequencyMS=500", only.uri());
    let client = client(shell, &uri, None, subscribers);
    is_in.recv().expect("a message");
    let begin = Instant::now();
    let closed = client.close_within(Duration::from_millis(50));
    assert!(begin.elapsed() < LONG / 2, "{:?}", begin.elapsed());
    assert_eq!(closed, Ok(()));
    drop(leave);
    client.close();
    until_open(&only, 0);
}

/// The others hear of everything, and the server is watched all the same.
#[test]
fn one_who_panics_hurts_nobody() {
    let only = standalone();
    let (told, telling) = channel();
    let builder = cenote_mio::Client::builder(&only.uri()).expect("a connection string");
    let client = builder
        .on_event(judge())
        .on_heartbeat(|_| panic_any(PanicsAgain))
        .on_heartbeat(move |event| {
            let _ = told.send(event.event.name());
        })
        .on_event(|_| panic_any(PanicsAgain))
        .build()
        .expect("good options");
    assert!(client.command("admin", &rawdoc! { "ping": 1 }).is_ok());
    client.close();
    let told: Vec<_> = telling.iter().take(2).collect();
    assert_eq!(told, ["ServerHeartbeatStarted", "ServerHeartbeatSucceeded"]);
}

/// A payload whose drop panics.
struct PanicsAgain;

impl Drop for PanicsAgain {
    fn drop(&mut self) {
        panic!("on purpose, again");
    }
}

/// What is held for long was checked out where the application says so, and not in here.
#[test]
fn on_mio_a_connection_that_is_held_is_the_applications() {
    let only = standalone();
    let (told, telling) = channel();
    let client = cenote_mio::Client::builder(&only.uri())
        .expect("a connection string")
        .map_options(|options| options.with_leak_detection_threshold(Duration::from_millis(500)))
        .on_event(judge())
        .on_leak(move |report| {
            let _ = told.send(report.place);
        })
        .build()
        .expect("good options");
    let (connection, line) = (client.check_out(&Selector::Any).expect("a connection"), line!());
    is_here(telling.recv_timeout(LONG).expect("a report"), line);
    drop(connection);
    // Nor where a cursor checks its next one out.
    let mut cursor = client.pin(&Selector::Any, Purpose::Cursor).expect("a server");
    cursor.unpin();
    let line = line!() + 1;
    let used = cursor.with_connection(|_| until_told(&telling, line));
    used.expect("a connection");
    client.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn on_tokio_a_connection_that_is_held_is_the_applications() {
    let only = standalone();
    let (told, telling) = channel();
    let client = cenote_tokio::Client::builder(&only.uri())
        .expect("a connection string")
        .map_options(|options| options.with_leak_detection_threshold(Duration::from_millis(500)))
        .on_event(judge())
        .on_leak(move |report| {
            let _ = told.send(report.place);
        })
        .build()
        .expect("good options");
    let (checked_out, line) = (client.check_out(&Selector::Any), line!());
    let connection = checked_out.await.expect("a connection");
    is_here(telling.recv_timeout(LONG).expect("a report"), line);
    drop(connection);
    // Nor where a cursor checks its next one out.
    let mut cursor = client.pin(&Selector::Any, Purpose::Cursor).await.expect("a server");
    cursor.unpin();
    let line = line!() + 1;
    let used = cursor.with_connection(async |_| until_told(&telling, line));
    used.await.expect("a connection");
    client.close().await;
}

type Place = Option<&'static Location<'static>>;

/// That one; to pin may have taken long, too.
fn until_told(telling: &Receiver<Place>, line: u32) -> Result<(), ClientError> {
    let mut places = std::iter::from_fn(|| telling.recv_timeout(LONG).ok());
    let is_it = |place: Place| place.is_some_and(|place| place.line() == line);
    assert!(places.any(is_it), "no report of line {line}");
    Ok(())
}

fn is_here(place: Place, line: u32) {
    let place = place.expect("it was noted");
    assert!(place.file().ends_with("subscribers.rs"), "{place}");
    assert_eq!(place.line(), line);
}
