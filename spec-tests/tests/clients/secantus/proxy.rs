//! Through microsocks, a SOCKS5 proxy that was written by others, to the server.

use std::net::{TcpListener, TcpStream};
use std::process::Command;

use bson::rawdoc;
use cenote_core::error::{Kind, Stage};

use crate::secantus::certificates::Certificates;
use crate::secantus::open;
use crate::secantus::process::Process;
use crate::secantus::server::{ClientCertificate, Options, Server, Tls};

struct Proxy {
    port: u16,
    _process: Process,
}

impl Proxy {
    /// It says nothing when it is ready, and takes no port 0.
    fn start(arguments: &[&str]) -> Self {
        let port = free_port();
        let mut command = Command::new("microsocks");
        command.args(["-i", "127.0.0.1", "-p", &port.to_string()]).args(arguments);
        let mut process = Process::start(&mut command);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            process.assert_runs();
        }
        Self { port, _process: process }
    }

    fn query(&self) -> String {
        format!("proxyHost=127.0.0.1&proxyPort={}", self.port)
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

// SX-03 to SX-05, TL-10: the certificate is the server's, not the proxy's.
#[test]
fn through_a_proxy_with_tls() {
    let certificates = Certificates::new("localhost");
    let tls = Some(Tls { certificates: &certificates, client: ClientCertificate::NotAsked });
    let server = Server::start(&Options { tls, ..Options::default() });
    for (login, arguments) in [
        ("", &[][..]),
        ("&proxyUsername=walter&proxyPassword=pa%20ss", &["-u", "walter", "-P", "pa ss"]),
    ] {
        let proxy = Proxy::start(arguments);
        let query = format!("{}{login}&{}", proxy.query(), certificates.trusted());
        let uri = format!("mongodb://localhost:{}/?{query}", server.port());
        let mut connection = open(&uri).unwrap();
        connection.command("admin", &rawdoc! { "ping": 1 }).unwrap();
    }
}

// SX-06: no overload, whatever the proxy says.
#[test]
fn a_proxy_that_refuses() {
    let server = Server::plain();
    let picky = Proxy::start(&["-u", "walter", "-P", "pass"]);
    let open_to_all = Proxy::start(&[]);
    let unreachable = format!("mongodb://127.0.0.1:{}/?{}", free_port(), open_to_all.query());
    let nobody_there = server.uri(&format!("proxyHost=127.0.0.1&proxyPort={}", free_port()));
    let cases = [
        server.uri(&picky.query()),
        server.uri(&format!("{}&proxyUsername=walter&proxyPassword=wrong", picky.query())),
        unreachable,
        nobody_there,
    ];
    for uri in cases {
        let error = open(&uri).unwrap_err();
        assert_eq!((error.stage(), error.kind()), (Stage::Proxy, &Kind::Network), "{error}");
        assert!(!error.is_overload());
    }
}
