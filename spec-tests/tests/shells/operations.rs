//! Commands on connections that are checked out, and which errors close the connection.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Kind, OperationError, Stage};
use cenote_core::wire::{Flags, Ids, MessageWriter};
use cenote_endpoint::{Ending, Fault, Settings};

use crate::shell::{Shell, on_all_runtimes};
use crate::world::{at, block_ping, closed, ping, plain, pool, set, tls, until_seen, with};

on_all_runtimes!(
    an_interrupt_ends_a_command_at_once,
    a_command_error_leaves_the_connection_usable,
    a_command_error_keeps_the_whole_reply,
    a_protocol_violation_closes_the_connection,
    a_socket_timeout,
    a_large_command_and_a_large_reply,
    the_pool_recovers_from_a_restart,
);

// INT-02, INT-03, INT-04, INT-06, BG-03, ER-07
fn an_interrupt_ends_a_command_at_once(shell: Shell) {
    for endpoint in [plain(), tls(Settings::default())] {
        let (pool, events) = pool(shell, &endpoint.uri());
        block_ping(&endpoint, 60_000);
        let running = thread::spawn({
            let pool = Arc::clone(&pool);
            move || {
                let mut connection = pool.check_out().expect("it works");
                connection.command("admin", &rawdoc! { "ping": 1 }).expect_err("it fails")
            }
        });
        until_seen(&endpoint, 1);
        pool.clear(ConnectionError::timeout(Stage::Hello, Duration::from_secs(10)), true);
        let error = running.join().expect("no panic");
        assert!(matches!(error, OperationError::Interrupted(_)), "{error}");
        assert!(error.is_retryable());
        assert_eq!(closed(&events, 1), ["error"], "before stale (KX-05, SI-12)");
        pool.ready();
        assert!(ping(&pool));
    }
}

// CO-11
fn a_command_error_leaves_the_connection_usable(shell: Shell) {
    let endpoint = plain();
    let (pool, _) = pool(shell, &endpoint.uri());
    for _ in 0..2 {
        let mut connection = pool.check_out().expect("it works");
        let error = connection.command("admin", &rawdoc! { "nonsense": 1 }).expect_err("it fails");
        let OperationError::Connection(error) = error else { panic!("{error}") };
        assert_eq!(error.command_error().and_then(|error| error.code), Some(59));
    }
    assert_eq!(pool.snapshot().connections_created, 1);
}

fn a_command_error_keeps_the_whole_reply(shell: Shell) {
    let endpoint = plain();
    let (pool, _) = pool(shell, &endpoint.uri());
    let mut connection = pool.check_out().expect("it works");
    let error = connection.command("admin", &rawdoc! { "nonsense": 1 }).expect_err("it fails");
    let OperationError::Connection(error) = error else { panic!("{error}") };
    let reply = error.command_error().expect("the server refused").reply();
    // As the caller of `receive` gets it.
    let message = connection.next_request_id();
    let mut bytes = Vec::new();
    MessageWriter::command(
        &mut bytes,
        Ids::request(message),
        Flags::NONE,
        &rawdoc! { "nonsense": 1 },
        "admin",
    )
    .and_then(|writer| writer.finish(connection.message_limit()))
    .expect("a message");
    connection.send(&bytes).expect("it works");
    assert_eq!(reply, connection.receive().expect("a reply").body());
}

// CO-02, CO-08, CO-11, IN-05
fn a_protocol_violation_closes_the_connection(shell: Shell) {
    let endpoint = plain();
    let (pool, events) = pool(shell, &endpoint.uri());
    let faults = [
        Fault::Close,
        Fault::Reset,
        Fault::HalfClose,
        Fault::Cut { bytes: 9, then: Ending::Close },
        Fault::Garbage { bytes: 100 },
        Fault::ResponseTo { off_by: -1 },
        Fault::Twice,
    ];
    let count = faults.len();
    for fault in faults {
        let text = format!("{fault:?}");
        let comes_later = fault == Fault::Twice;
        set(&endpoint, at(fault, "ping").times(1));
        let mut connection = pool.check_out().expect("it works");
        let outcome = connection.command("admin", &rawdoc! { "ping": 1 });
        // The second reply to one ping is found by the next command, if it was not there already.
        let outcome = match outcome {
            Ok(_) if comes_later => connection.command("admin", &rawdoc! { "ping": 1 }),
            outcome => outcome,
        };
        let OperationError::Connection(error) = outcome.expect_err("it fails") else {
            panic!("{text}")
        };
        assert_eq!(error.stage(), Stage::Operation, "{text}: {error}");
        assert!(!error.leaves_connection_healthy(), "{text}: {error}");
    }
    assert_eq!(closed(&events, count), vec!["error"; count]);
}

// OP-19, CS-06
fn a_socket_timeout(shell: Shell) {
    let endpoint = plain();
    let (pool, _) = pool(shell, &with(&endpoint.uri(), "socketTimeoutMS=2000"));
    let mut connection = pool.check_out().expect("it works");
    block_ping(&endpoint, 60_000);
    let error = connection.command("admin", &rawdoc! { "ping": 1 }).expect_err("it fails");
    let OperationError::Connection(error) = error else { panic!("{error}") };
    let after = Duration::from_secs(2);
    assert_eq!(error.kind(), &Kind::NetworkTimeout { after }, "{error}");
}

/// More than the sockets' buffers hold, so that both sides wait in between.
fn a_large_command_and_a_large_reply(shell: Shell) {
    for endpoint in [plain(), tls(Settings::default())] {
        let (pool, _) = pool(shell, &endpoint.uri());
        let mut connection = pool.check_out().expect("it works");
        let text = "x".repeat(12_000_000);
        let documents: bson::RawArrayBuf =
            [rawdoc! { "_id": 1, "text": text.as_str() }].into_iter().collect();
        let insert = rawdoc! { "insert": "large", "documents": documents };
        let reply = connection.command("test", &insert).expect("it works");
        assert_eq!(reply.get_i32("n").ok(), Some(1));
        let reply = connection.command("test", &rawdoc! { "find": "large" }).expect("it works");
        assert!(reply.as_bytes().len() > text.len());
    }
}

/// 64 threads, 8 connections, TLS, and a restart of the server in the middle.
fn the_pool_recovers_from_a_restart(shell: Shell) {
    let endpoint = tls(Settings::default());
    let (pool, events) = pool(shell, &with(&endpoint.uri(), "maxPoolSize=8"));
    let threads: Vec<_> = (0..64)
        .map(|_| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                let mut good = 0;
                for _ in 0..50 {
                    let Ok(mut connection) = pool.check_out() else { continue };
                    let reply = connection.command("admin", &rawdoc! { "ping": 1 });
                    good += u32::from(reply.is_ok());
                }
                good
            })
        })
        .collect();
    until_seen(&endpoint, 1000);
    endpoint.with(cenote_endpoint::Server::restart);
    let good: u32 = threads.into_iter().map(|thread| thread.join().expect("no panic")).sum();
    // Commands in progress failed, one for each connection at most; new ones did not.
    assert!((64 * 50 - 16..64 * 50).contains(&good), "{good}");
    assert!(closed(&events, 0).iter().all(|reason| reason == "error"));
    pool.close();
    assert_eq!(pool.snapshot().total, 0);
}
