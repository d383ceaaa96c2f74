//! Many at once.

use std::net::TcpStream;
use std::thread;

use bson::rawdoc;
use cenote_endpoint::{Endpoint, ListenOptions, Settings};

use super::client::{connect, is_ok, ping, receive, run, send, tls};

/// Not thousands: both ends of each are open files of this one process, which may have 1024.
const MANY: usize = 400;

#[test]
fn many_connections_are_served_side_by_side() {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::default()).unwrap();
    let mut streams: Vec<_> = (0..MANY).map(|_| connect(&endpoint).unwrap()).collect();
    for stream in &mut streams {
        send(stream, &rawdoc! { "ping": 1 }, "admin").unwrap();
    }
    assert!(streams.iter_mut().rev().all(|stream| is_ok(&receive(stream).unwrap())));
    assert_eq!(endpoint.with(|server, _| server.statistics()).open, MANY as u64);
    drop(streams);
    // Nothing is told to the server sooner than to its clients, so that one more exchange does not
    // show that it has noticed all of them: it is asked until it has.
    let mut last = connect(&endpoint).unwrap();
    let open = || endpoint.with(|server, _| server.statistics()).open;
    while open() > 1 {
        assert!(is_ok(&ping(&mut last).unwrap()));
    }
}

#[test]
fn a_blocked_command_blocks_its_connection_alone() {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::default()).unwrap();
    let block = rawdoc! {
        "configureFailPoint": "failCommand",
        "mode": { "times": 1 },
        "data": { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 50 },
    };
    endpoint.with(|server, _| server.set_fail_point(&block)).unwrap();
    let mut blocked = connect(&endpoint).unwrap();
    send(&mut blocked, &rawdoc! { "ping": 1 }, "admin").unwrap();
    let mut other = connect(&endpoint).unwrap();
    while endpoint.with(|server, _| server.statistics()).commands.get("ping") != Some(&1) {
        thread::yield_now();
    }
    assert!(is_ok(&ping(&mut other).unwrap()));
    assert!(is_ok(&receive(&mut blocked).unwrap()));
}

#[test]
fn threads_share_the_documents() {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::with_tls()).unwrap();
    let authority = endpoint.certificates().unwrap();
    let connect = || connect(&endpoint).unwrap();
    let insert = |stream: TcpStream, thread: i32| {
        let mut stream = tls(stream, authority, "localhost", false).unwrap();
        for number in 0..50 {
            let document = rawdoc! { "_id": thread * 1000 + number };
            let insert = rawdoc! { "insert": "things", "documents": [document] };
            assert!(is_ok(&run(&mut stream, &insert, "test").unwrap()));
        }
    };
    thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || insert(connect(), thread));
        }
    });
    let mut stream = tls(connect(), authority, "localhost", false).unwrap();
    let count = run(&mut stream, &rawdoc! { "count": "things" }, "test").unwrap();
    assert_eq!(count.get_i32("n").ok(), Some(400));
}
