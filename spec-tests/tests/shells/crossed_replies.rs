//! A proxy that gives each of two connections the reply to the other one's request.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use bson::rawdoc;
use cenote_core::error::{Kind, OperationError, Stage};

use crate::shell::{Shell, on_all_runtimes};
use crate::world::{closed, plain, pool};

on_all_runtimes!(a_reply_to_a_request_of_another_connection_is_refused);

// MS-15
fn a_reply_to_a_request_of_another_connection_is_refused(shell: Shell) {
    let endpoint = plain();
    let proxy = crossing_proxy(endpoint.address().to_string());
    let (pool, events) = pool(shell, &format!("mongodb://{proxy}"));
    // Both have sent the same number of requests.
    let mut connections = [0, 1].map(|_| pool.check_out().expect("a connection"));
    let outcomes = thread::scope(|scope| {
        connections
            .each_mut()
            .map(|connection| {
                scope.spawn(|| {
                    connection.command("admin", &rawdoc! { "ping": 1, "comment": CROSSED })
                })
            })
            .map(|command| command.join().expect("no panic"))
    });
    for outcome in outcomes {
        let Err(OperationError::Connection(error)) = outcome else { panic!("{outcome:?}") };
        assert_eq!((error.stage(), error.kind()), (Stage::Operation, &Kind::Protocol), "{error}");
        assert!(error.to_string().contains("expected a reply to message"), "{error}");
    }
    assert!(connections.iter().all(|connection| !connection.is_reusable()));
    drop(connections);
    assert_eq!(closed(&events, 2), ["error"; 2]);
}

/// The comment of a command whose reply goes to the other connection.
const CROSSED: &str = "crossed";

/// What two connections exchange.
struct Crossing {
    replies: [Mutex<Vec<u8>>; 2],
    both: Barrier,
}

/// Accepts two connections and forwards their messages.
fn crossing_proxy(server: String) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let crossing = Arc::new(Crossing { replies: Default::default(), both: Barrier::new(2) });
    thread::spawn(move || {
        for own in [0, 1] {
            let (client, _) = listener.accept().expect("a client");
            let server = TcpStream::connect(&server).expect("the endpoint listens");
            let crossing = Arc::clone(&crossing);
            // Ends when one side does.
            thread::spawn(move || forward(client, server, own, &crossing));
        }
    });
    address
}

fn forward(
    mut client: TcpStream,
    mut server: TcpStream,
    own: usize,
    crossing: &Crossing,
) -> io::Result<()> {
    loop {
        let request = message(&mut client)?;
        server.write_all(&request)?;
        let mut reply = message(&mut server)?;
        if request.windows(CROSSED.len()).any(|text| text == CROSSED.as_bytes()) {
            *crossing.replies[own].lock().expect("no panic") = reply;
            crossing.both.wait();
            reply = crossing.replies[1 - own].lock().expect("no panic").clone();
        }
        client.write_all(&reply)?;
    }
}

fn message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; u32::from_le_bytes(length) as usize];
    message[..4].copy_from_slice(&length);
    stream.read_exact(&mut message[4..])?;
    Ok(message)
}
