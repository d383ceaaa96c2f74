//! What a server sees when it accepts, while attempts hang, callers leave and the pool is cleared.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote_core::error::{ConnectionError, Stage};
use cenote_endpoint::{ConnectionId, Output, Peer, Server, Settings};
use cenote_test_runtimes::PoolSetup;

use crate::shell::{Shell, on_all_runtimes};

on_all_runtimes!(a_server_never_sees_more_than_the_limits);

/// The most that were open, and the most whose hello was not answered.
#[derive(Debug, Default)]
struct Seen {
    accepts: usize,
    open: usize,
    connecting: usize,
}

/// The client's end is read to its end before a newcomer is counted.
struct Socket {
    stream: TcpStream,
    is_silent: bool,
    is_answered: bool,
}

impl Socket {
    /// What came; `None` at the end.
    fn read(&mut self) -> Option<Vec<u8>> {
        let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => read.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(read),
                Err(_) => return None,
            }
        }
    }
}

/// One of four connections gets no answer to its hello.
fn serve(listener: &TcpListener, is_over: &AtomicBool) -> io::Result<Seen> {
    listener.set_nonblocking(true)?;
    let (begin, mut seen) = (Instant::now(), Seen::default());
    let settings = Settings { seed: Some(1), ..Settings::default() };
    let mut server = Server::new(settings).expect("good settings");
    let mut sockets = BTreeMap::<ConnectionId, Socket>::new();
    while !is_over.load(Ordering::Relaxed) {
        let newcomer = listener.accept();
        sockets.retain(|id, socket| match socket.read() {
            Some(_) if socket.is_silent => true,
            Some(bytes) => {
                server.received(begin.elapsed(), *id, &bytes);
                true
            }
            None => {
                server.closed(begin.elapsed(), *id);
                false
            }
        });
        while let Some(output) = server.poll_output() {
            if let Output::Send { id, bytes } = output
                && let Some(socket) = sockets.get_mut(&id)
            {
                // One that is closed is found out when it is read.
                socket.is_answered |= socket.stream.write_all(&bytes).is_ok();
            }
        }
        let Ok((stream, _)) = newcomer else {
            thread::sleep(Duration::from_micros(20));
            continue;
        };
        stream.set_nonblocking(true)?;
        let id = server.accepted(begin.elapsed(), Peer::default());
        let is_silent = seen.accepts % 4 == 0;
        sockets.insert(id, Socket { stream, is_silent, is_answered: false });
        seen.accepts += 1;
        seen.open = seen.open.max(sockets.len());
        let connecting = sockets.values().filter(|socket| !socket.is_answered).count();
        seen.connecting = seen.connecting.max(connecting);
    }
    Ok(seen)
}

// OP-02, PS-12, T-14, T-16
fn a_server_never_sees_more_than_the_limits(shell: Shell) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let limits = "maxPoolSize=6&maxConnecting=3&connectTimeoutMS=20";
    let uri = format!("mongodb://{address}/?{limits}");
    let pool = shell.build_pool(&uri, PoolSetup::default()).expect("good options");
    pool.ready();
    let is_over = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, &is_over));
        for caller in 0..12_u64 {
            let (pool, is_over) = (&pool, &is_over);
            scope.spawn(move || {
                let mut turn = caller;
                while !is_over.load(Ordering::Relaxed) {
                    turn += 7;
                    let soon = Instant::now() + Duration::from_millis(turn % 15);
                    let Ok(mut connection) = pool.check_out_before(soon) else {
                        thread::sleep(Duration::from_millis(1));
                        continue;
                    };
                    // Interrupted now and then.
                    let _ = connection.command("admin", &rawdoc! { "ping": 1 });
                    if turn % 3 == 0 {
                        connection.mark_errored(broken());
                    }
                }
            });
        }
        let end = Instant::now() + LENGTH;
        for turn in 0_u64.. {
            thread::sleep(Duration::from_millis(turn * 7 % 40));
            if Instant::now() >= end {
                break;
            }
            pool.clear(broken(), turn % 2 == 0);
            pool.ready();
        }
        is_over.store(true, Ordering::Relaxed);
        server.join().expect("no panic").expect("sockets")
    });
    pool.close();
    assert!(seen.accepts > 50, "{seen:?}");
    assert!(seen.open <= 6 && seen.connecting <= 3, "{seen:?}");
}

fn broken() -> ConnectionError {
    ConnectionError::network(Stage::Operation, "reset")
}

const LENGTH: Duration = Duration::from_millis(1500);
