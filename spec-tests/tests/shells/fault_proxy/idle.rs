//! Connections on which something happens while they are idle: the caller that comes next does not notice.

use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote::proxy::End;
use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
use cenote_endpoint::{Ending, Endpoint};

use super::Lane;
use super::venue::{PATIENCE, endpoint, expect_rest, tls_endpoint};
use crate::shell::{Shell, on_all_runtimes};

on_all_runtimes!(
    ended_by_the_network,
    ended_by_close_notify,
    ended_by_close_notify_without_fin,
    sent_a_reply_that_nothing_asked_for,
);

/// What fits into a pool.
const CONNECTIONS: u64 = 3;

/// The time after which what was sent has come.
const MOMENT: Duration = Duration::from_millis(400);

/// As many idle connections as there can be; `happens` to them; and then, with or without a look at idle
/// connections before, a caller.
fn expect_new_connections(shell: Shell, endpoint: &Endpoint, happens: impl Fn(&Lane)) {
    for is_noticed_before in [true, false] {
        let lane = Lane::new(shell, endpoint, &format!("maxPoolSize={CONNECTIONS}"));
        let all = || (0..CONNECTIONS).map(|_| lane.pool.check_out().expect("it connects"));
        drop(all().collect::<Vec<_>>());
        happens(&lane);
        if is_noticed_before {
            let begin = Instant::now();
            while lane.ear.created_and_closed().1 < CONNECTIONS {
                assert!(begin.elapsed() < PATIENCE, "{:?}", lane.ear.created_and_closed());
                thread::sleep(MOMENT);
            }
            expect_rest(&lane.pool.snapshot(), 0, "all have ended");
        } else {
            thread::sleep(MOMENT);
        }
        lane.ping().expect("a new connection");
        drop(all().collect::<Vec<_>>());
        // Another thread may tell the subscribers, a moment later.
        let (begin, expected) = (Instant::now(), (2 * CONNECTIONS, CONNECTIONS));
        while lane.ear.created_and_closed() < expected && begin.elapsed() < PATIENCE {
            thread::yield_now();
        }
        assert_eq!(lane.ear.created_and_closed(), expected);
        lane.proxy.hold_ends(false);
        lane.end();
    }
}

fn ended_by_the_network(shell: Shell) {
    for endpoint in [endpoint(), tls_endpoint()] {
        for end in [End::Close, End::Reset] {
            expect_new_connections(shell, &endpoint, |lane| lane.proxy.end_all(end));
        }
    }
}

fn ended_by_close_notify(shell: Shell) {
    let endpoint = tls_endpoint();
    expect_new_connections(shell, &endpoint, |_| close(&endpoint));
}

/// Both directions of TCP stay open.
fn ended_by_close_notify_without_fin(shell: Shell) {
    let endpoint = tls_endpoint();
    expect_new_connections(shell, &endpoint, |lane| {
        lane.proxy.hold_ends(true);
        close(&endpoint);
    });
}

fn close(endpoint: &Endpoint) {
    let count = endpoint.with(|server, now| server.break_idle(now, Ending::Close));
    assert_eq!(count as u64, CONNECTIONS);
}

/// With TLS it is not even a record.
fn sent_a_reply_that_nothing_asked_for(shell: Shell) {
    let mut reply = Vec::new();
    let ids = Ids { request_id: 1, response_to: 1 };
    let message = MessageWriter::new(&mut reply, ids, Flags::NONE, &rawdoc! { "ok": 1.0 });
    message.finish(MessageLimit::DEFAULT).expect("a message");
    for endpoint in [endpoint(), tls_endpoint()] {
        expect_new_connections(shell, &endpoint, |lane| lane.proxy.send_unasked(&reply));
    }
}
