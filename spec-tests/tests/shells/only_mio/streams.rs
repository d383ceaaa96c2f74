//! The bytes of connections that are checked out, for drivers with a wire of their own.

use std::io::{self, ErrorKind, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_core::error::{ConnectionError, InterruptedError, Stage};
use cenote_core::wire::{Flags, Frame, Ids, Message, MessageLimit, MessageWriter};
use cenote_endpoint::{Fault, Settings};
use cenote_mio::{OperationError, Pool, RawStream};

use super::world::{ping, pool};
use crate::world::until_seen;
use crate::world::{at, closed, plain, set, tls, with};

fn message(command: &bson::RawDocument) -> Vec<u8> {
    let mut bytes = Vec::new();
    MessageWriter::command(&mut bytes, Ids::request(1), Flags::NONE, command, "test")
        .expect("it works")
        .finish(MessageLimit::DEFAULT)
        .expect("it works");
    bytes
}

fn ping_bytes() -> Vec<u8> {
    message(&rawdoc! { "ping": 1 })
}

fn reply(stream: &mut RawStream<'_>) -> io::Result<bool> {
    let mut bytes = vec![0; 4];
    stream.read_exact(&mut bytes)?;
    let length = i32::from_le_bytes(bytes[..4].try_into().expect("four"));
    bytes.resize(usize::try_from(length).expect("it works"), 0);
    stream.read_exact(&mut bytes[4..])?;
    let message = Message::parse(Frame::new(&bytes, MessageLimit::DEFAULT).expect("it works"))
        .expect("it works");
    Ok(message.body().get_f64("ok").is_ok_and(|ok| ok == 1.0))
}

fn is_interrupted(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<InterruptedError>());
    error.kind() == ErrorKind::ConnectionAborted && inner.is_some()
}

#[test]
fn who_is_done_gives_it_back_healthy() {
    for endpoint in [plain(), tls(Settings::default())] {
        let (pool, events) = pool(&endpoint.uri());
        for _ in 0..2 {
            let mut connection = pool.check_out().unwrap();
            for _ in 0..2 {
                let mut stream = connection.raw_stream().unwrap();
                assert_eq!(stream.read(&mut []).unwrap(), 0, "nothing is no end");
                stream.write_all(&ping_bytes()).unwrap();
                assert!(reply(&mut stream).unwrap());
                stream.done().unwrap();
            }
            // And both ways take turns.
            assert!(connection.command("admin", &rawdoc! { "ping": 1 }).is_ok());
        }
        assert_eq!((pool.snapshot().connections_created, closed(&events, 0).len()), (1, 0));
    }
}

/// More than the sockets' buffers and TLS hold.
#[test]
fn large_ones_go_both_ways() {
    for endpoint in [plain(), tls(Settings::default())] {
        let (pool, _) = pool(&endpoint.uri());
        let text = "x".repeat(12_000_000);
        let documents: bson::RawArrayBuf =
            [rawdoc! { "_id": 1, "text": text.as_str() }].into_iter().collect();
        let mut connection = pool.check_out().unwrap();
        let mut stream = connection.raw_stream().unwrap();
        stream.write_all(&message(&rawdoc! { "insert": "large", "documents": documents })).unwrap();
        assert!(reply(&mut stream).unwrap());
        stream.write_all(&message(&rawdoc! { "find": "large" })).unwrap();
        assert!(reply(&mut stream).unwrap());
        stream.done().unwrap();
        assert!(connection.is_reusable());
    }
}

// CO-19: the caller did not say that nothing more comes.
#[test]
fn who_is_not_done_gives_it_back_broken() {
    let endpoint = plain();
    let (pool, events) = pool(&endpoint.uri());
    let mut connection = pool.check_out().unwrap();
    let _ = connection.raw_stream().unwrap();
    let again = connection.raw_stream().unwrap_err();
    assert!(matches!(again, OperationError::Connection(_)), "{again}");
    let command = connection.command("admin", &rawdoc! { "ping": 1 });
    assert!(command.is_err(), "it is not ours any more");
    drop(connection);

    // The end of the stream is no way to be done, be it half an end or a whole one.
    for fault in [Fault::Close, Fault::HalfClose, Fault::Reset] {
        let mut connection = pool.check_out().unwrap();
        set(&endpoint, at(fault, "ping"));
        let mut stream = connection.raw_stream().unwrap();
        stream.write_all(&ping_bytes()).unwrap();
        assert!(reply(&mut stream).is_err());
        assert_eq!(stream.done().unwrap_err().kind(), ErrorKind::NotConnected);
    }
    assert_eq!(closed(&events, 4), ["error"; 4]);
    endpoint.with(cenote_endpoint::Server::clear_faults);

    // The stream cannot be borrowed while a reply is due.
    let mut connection = pool.check_out().unwrap();
    connection.send(&ping_bytes()).unwrap();
    assert!(connection.raw_stream().is_err());
    connection.receive().unwrap();
    connection.raw_stream().unwrap().done().unwrap();
    drop(connection);
    assert!(ping(&pool));
}

// ER-07
#[test]
fn an_interrupt_ends_what_waits_and_what_comes_later() {
    for endpoint in [plain(), tls(Settings::default())] {
        set(&endpoint, at(Fault::Stall, "ping"));
        let (pool, events) = pool(&endpoint.uri());
        let mut connection = pool.check_out().unwrap();
        let mut stream = connection.raw_stream().unwrap();
        stream.write_all(&ping_bytes()).unwrap();
        let outcome = thread::scope(|scope| {
            scope.spawn(|| {
                until_seen(&endpoint, 1);
                interrupt(&pool);
            });
            reply(&mut stream)
        });
        assert!(is_interrupted(&outcome.unwrap_err()));
        assert!(is_interrupted(&stream.write_all(b"more").unwrap_err()));
        assert!(is_interrupted(&stream.done().unwrap_err()));
        let refused = connection.raw_stream().unwrap_err();
        assert!(matches!(refused, OperationError::Interrupted(_)), "{refused}");
        drop(connection);
        assert_eq!(closed(&events, 1), ["error"]);
    }
}

fn interrupt(pool: &Pool) {
    pool.clear(ConnectionError::timeout(Stage::Hello, Duration::from_secs(1)), true);
}

/// And what comes after it may still be read.
#[test]
fn a_deadline_ends_a_wait() {
    for endpoint in [plain(), tls(Settings::default())] {
        let (pool, events) = pool(&with(&endpoint.uri(), "socketTimeoutMS=60000"));
        let mut connection = pool.check_out().unwrap();
        let mut stream = connection.raw_stream().unwrap();
        let deadline = Instant::now() + Duration::from_millis(20);
        stream.set_deadline(Some(deadline));
        for _ in 0..2 {
            let error = stream.read(&mut [0; 4]).unwrap_err();
            assert!(error.kind() == ErrorKind::TimedOut && Instant::now() >= deadline, "{error}");
        }
        assert_eq!(stream.write(b"too late").unwrap_err().kind(), ErrorKind::TimedOut);
        stream.set_deadline(None);
        stream.write_all(&ping_bytes()).unwrap();
        assert!(reply(&mut stream).unwrap());
        stream.done().unwrap();
        drop(connection);
        assert!(ping(&pool));
        assert_eq!(closed(&events, 0), [""; 0]);
    }
}

#[test]
fn the_limit_for_reading_is_for_bytes_too() {
    let endpoint = plain();
    let (pool, _) = pool(&with(&endpoint.uri(), "socketTimeoutMS=2000"));
    let mut connection = pool.check_out().unwrap();
    let mut stream = connection.raw_stream().unwrap();
    let error = stream.read(&mut [0; 4]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("2s"), "{error}");
}
