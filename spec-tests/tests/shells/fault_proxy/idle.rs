//! Connections on which something happens while they are idle: the caller that comes next does not notice.

use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote::proxy::End;
use cenote_endpoint::{Ending, Endpoint, Fault};
use cenote_shell::connection::operation::OperationOptions;

use super::Lane;
use super::venue::{PATIENCE, endpoint, expect_rest, tls_endpoint};
use crate::shell::{AnyConnection, Shell, on_all_runtimes};
use crate::world::{at, block_ping, set};

on_all_runtimes!(
    ended_by_close_notify,
    ended_by_close_notify_without_fin,
    dropped_by_a_middlebox,
    slow_but_not_dropped,
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

/// Much longer than a connection has to be idle before a timeout on it counts for others.
const LONG_IDLE: Duration = Duration::from_secs(4);

/// Idle connections, which have been idle for long.
fn long_idle(shell: Shell, endpoint: &Endpoint, connections: u32) -> Lane {
    let lane = Lane::new(shell, endpoint, &format!("maxPoolSize={connections}"));
    let all = (0..connections).map(|_| lane.pool.check_out().expect("it connects"));
    drop(all.collect::<Vec<_>>());
    lane
}

/// Whether it is answered in time.
fn is_answered(connection: &mut Box<dyn AnyConnection>) -> bool {
    let options = OperationOptions::new().with_timeout(Duration::from_secs(2));
    match connection.command_with("admin", &rawdoc! { "ping": 1 }, options) {
        Ok(_) => true,
        Err(error) => {
            assert!(error.is_timeout(), "{error}");
            false
        }
    }
}

/// Without FIN or RST, and nothing answers. New connections are not concerned.
// Reports quarkus#47091, agroal#182 (mended): ten dead idle connections cost ten time-outs, one after the other.
fn dropped_by_a_middlebox(shell: Shell) {
    let endpoints = [endpoint(), tls_endpoint(), endpoint()];
    let lanes = endpoints.each_ref().map(|endpoint| long_idle(shell, endpoint, 10));
    let [.., late_replies] = &lanes;
    let options = late_replies.pool.options().with_experimental_pending_response(true);
    late_replies.pool.set_options(options).expect("good options");
    thread::sleep(LONG_IDLE);
    for lane in lanes {
        lane.proxy.end_all(End::Silence);
        let ping = || is_answered(&mut lane.pool.check_out().expect("a connection"));
        let timeouts = (0..12).take_while(|_| !ping()).count();
        assert!((1..=2).contains(&timeouts), "{timeouts} timeouts");
        assert!((0..12).all(|_| ping()));
        lane.end();
    }
}

/// Nor does a timeout count for connections on which something came since.
fn slow_but_not_dropped(shell: Shell) {
    let endpoint = endpoint();
    let lane = long_idle(shell, &endpoint, 4);
    thread::sleep(LONG_IDLE);
    let check_out = || lane.pool.check_out().expect("a connection");
    let available = || lane.pool.snapshot().available;

    let mut in_use = check_out();
    assert!(is_answered(&mut in_use));
    block_ping(&endpoint, 10_000);
    assert!(!is_answered(&mut in_use));
    drop(in_use);
    assert_eq!(available(), 3);

    set(&endpoint, at(Fault::Drip { bytes: 1, every: MOMENT }, "ping"));
    let mut gets_a_part = check_out();
    assert!(!is_answered(&mut gets_a_part));
    drop(gets_a_part);
    assert_eq!(available(), 2);

    set(&endpoint, at(Fault::Twice, "never"));
    let [mut answered, mut silent] = [check_out(), check_out()];
    assert!(is_answered(&mut answered));
    drop(answered);
    block_ping(&endpoint, 10_000);
    assert!(!is_answered(&mut silent));
    drop(silent);
    assert_eq!(available(), 1);
    lane.end();
}
