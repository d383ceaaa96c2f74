//! Many at once.

use bson::rawdoc;
use cenote_endpoint::{Endpoint, ListenOptions, Settings};

use super::client::{connect, is_ok, ping, receive, send};

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
