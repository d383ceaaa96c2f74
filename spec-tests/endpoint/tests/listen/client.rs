//! As little of a client as can be: bytes of one command out, one reply in.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf, rawdoc};
use cenote_core::wire::{Flags, Frame, Ids, Message, MessageLimit, MessageWriter};
use cenote_endpoint::{Certificates, Endpoint, ListenAddress};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Long enough for any machine: nothing is measured with it, it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn connect(endpoint: &Endpoint) -> io::Result<TcpStream> {
    let ListenAddress::Tcp { port } = endpoint.place() else { panic!("not TCP") };
    let stream = TcpStream::connect(("127.0.0.1", *port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// TLS that trusts this authority, for a server of this name.
pub(crate) fn tls(
    stream: TcpStream,
    authority: &Certificates,
    name: &'static str,
) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(authority.ca_file()).expect("as the endpoint made it"))
        .expect("as the endpoint made it");
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let session = ClientConnection::new(
        Arc::new(config),
        ServerName::try_from(name).expect("as the endpoint made it"),
    );
    let mut stream = StreamOwned::new(session.expect("as the endpoint made it"), stream);
    stream.conn.complete_io(&mut stream.sock)?;
    Ok(stream)
}

pub(crate) fn run(
    stream: &mut (impl Read + Write),
    command: &RawDocument,
    database: &str,
) -> io::Result<RawDocumentBuf> {
    send(stream, command, database)?;
    receive(stream)
}

pub(crate) fn send(
    stream: &mut impl Write,
    command: &RawDocument,
    database: &str,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    MessageWriter::command(&mut bytes, Ids::request(1), Flags::NONE, command, database)
        .expect("as the endpoint made it")
        .finish(MessageLimit::DEFAULT)
        .expect("as the endpoint made it");
    stream.write_all(&bytes)
}

pub(crate) fn receive(stream: &mut impl Read) -> io::Result<RawDocumentBuf> {
    let mut bytes = vec![0; 4];
    stream.read_exact(&mut bytes)?;
    let length =
        u32::from_le_bytes(bytes[..4].try_into().expect("as the endpoint made it")) as usize;
    bytes.resize(length, 0);
    stream.read_exact(&mut bytes[4..])?;
    let frame = Frame::new(&bytes, MessageLimit::DEFAULT).expect("as the endpoint made it");
    Ok(Message::parse(frame).expect("as the endpoint made it").body().to_owned())
}

pub(crate) fn ping(stream: &mut (impl Read + Write)) -> io::Result<RawDocumentBuf> {
    run(stream, &rawdoc! { "ping": 1 }, "admin")
}

pub(crate) fn is_ok(reply: &RawDocument) -> bool {
    reply.get_f64("ok").is_ok_and(|ok| ok == 1.0)
}
