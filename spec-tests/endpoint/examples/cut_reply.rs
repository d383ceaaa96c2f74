//! Orders a fault and shows what a client then reads: `cargo run -p cenote-endpoint --example cut_reply`.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;

use bson::rawdoc;
use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
use cenote_endpoint::{Ending, Endpoint, Fault, ListenAddress, ListenOptions, Script, Settings};

fn main() -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::default())?;
    let ListenAddress::Tcp { port } = *endpoint.place() else { unreachable!("TCP is the default") };
    endpoint.with(|server, now| {
        let fault = Fault::Cut { bytes: 20, then: Ending::Close };
        server.set_fault(now, Script::new(fault).at_command("ping", 0));
    });

    let mut ping = Vec::new();
    let command = rawdoc! { "ping": 1 };
    MessageWriter::command(&mut ping, Ids::request(1), Flags::NONE, &command, "admin")?
        .finish(MessageLimit::DEFAULT)?;
    let mut socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.write_all(&ping)?;
    let mut reply = Vec::new();
    socket.read_to_end(&mut reply)?;
    println!("received {} bytes of the reply, then the connection ended", reply.len());
    assert_eq!(reply.len(), 20);
    Ok(())
}
