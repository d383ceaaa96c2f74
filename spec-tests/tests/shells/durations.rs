//! Durations in events, by the real clock.

use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::error::ConnectionError;
use cenote_core::pool::Event;

use crate::shell::{Shell, on_all_runtimes};
use crate::world::{plain, pool, with};

on_all_runtimes!(durations_begin_with_the_request);

// DU-02, DU-03, DU-04, DU-05: the first check-out opens a connection, the second times out, and the third waits
// for a check-in.
fn durations_begin_with_the_request(shell: Shell) {
    let endpoint = plain();
    let block = rawdoc! {
        "configureFailPoint": "failCommand",
        "mode": { "times": 1 },
        "data": { "failCommands": ["isMaster"], "blockConnection": true, "blockTimeMS": 100 },
    };
    endpoint.with(|server, _| server.set_fail_point(&block)).expect("a fail point");
    let options = "maxPoolSize=1&waitQueueTimeoutMS=1500";
    let (pool, events) = pool(shell, &with(&endpoint.uri(), options));
    let held = pool.check_out().expect("a connection");
    assert!(pool.check_out().is_err());
    thread::scope(|scope| {
        let third = scope.spawn(|| pool.check_out().map(drop));
        while pool.snapshot().waiting == 0 && !third.is_finished() {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(50));
        drop(held);
        third.join().expect("no panic").expect("a connection");
    });
    pool.close();

    let events = events.lock().expect("no panic");
    let durations: Vec<_> = events.iter().filter_map(duration).collect();
    let [ready, first, second, third] = durations[..] else { panic!("{events:?}") };
    assert!(ready >= Duration::from_millis(100) && ready <= first, "{ready:?} {first:?}");
    assert!(second >= Duration::from_millis(1500), "{second:?}");
    assert!(third >= Duration::from_millis(50) && third < second, "{third:?}");
}

fn duration(event: &Event<ConnectionError>) -> Option<Duration> {
    if let Event::ConnectionReady { duration, .. } = event {
        return Some(*duration);
    }
    let (Event::ConnectionCheckOutFailed { duration, .. }
    | Event::ConnectionCheckedOut { duration, .. }) = event
    else {
        return None;
    };
    Some(duration.get())
}
