//! A server in a process of its own, behind a relay that counts.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::{self, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use cenote_endpoint::{Endpoint, ListenOptions, Settings};

pub(crate) const ROLE: &str = "--serve";
pub(crate) const TLS: &str = "tls";

/// What the client has sent on one connection, and whether it may yet send more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) bytes: usize,
    pub(crate) is_open: bool,
}

/// In the order in which they were accepted.
type Tallies = Arc<Mutex<Vec<Tally>>>;

/// The server, as the process sees it that it serves.
pub(crate) struct Process {
    process: process::Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    uri: String,
}

impl Process {
    pub(crate) fn start(tls: bool) -> Self {
        let program = env::current_exe().expect("its own path");
        let mut process = Command::new(program)
            .args([ROLE, if tls { TLS } else { "plain" }])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let orders = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut server = Self { process, orders, answers, uri: String::new() };
        server.uri = server.answer();
        server
    }

    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    pub(crate) fn tallies(&mut self) -> Vec<Tally> {
        writeln!(self.orders).expect("it is there");
        let tally = |word: &str| {
            let (bytes, state) = word.split_once('/').expect("two parts");
            Tally { bytes: bytes.parse().expect("a number"), is_open: state == "open" }
        };
        self.answer().split_whitespace().map(tally).collect()
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        line.trim_end().to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What that process does: says its URI, and then for every line that it reads what it has counted.
pub(crate) fn serve(tls: bool) -> ExitCode {
    let options = if tls { ListenOptions::with_tls() } else { ListenOptions::default() };
    let endpoint = Endpoint::start(Settings::default(), options).expect("it starts");
    let port = endpoint.address().port().expect("it is on TCP");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let own_port = listener.local_addr().expect("an address").port();
    let tallies = Tallies::default();
    thread::spawn({
        let tallies = Arc::clone(&tallies);
        move || accept(&listener, port, &tallies)
    });
    println!("{}", endpoint.uri().replacen(&port.to_string(), &own_port.to_string(), 1));
    for _ in io::stdin().lines() {
        let tallies = tallies.lock().expect("no panic");
        let word = |tally: &Tally| {
            format!("{}/{}", tally.bytes, if tally.is_open { "open" } else { "closed" })
        };
        println!("{}", tallies.iter().map(word).collect::<Vec<_>>().join(" "));
    }
    ExitCode::SUCCESS
}

fn accept(listener: &TcpListener, port: u16, tallies: &Tallies) {
    for client in listener.incoming() {
        let client = client.expect("a connection");
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the endpoint");
        let number = {
            let mut tallies = tallies.lock().expect("no panic");
            tallies.push(Tally { bytes: 0, is_open: true });
            tallies.len() - 1
        };
        let [from_client, to_client] = [&client, &client].map(|it| it.try_clone().expect("a copy"));
        let [from_server, to_server] = [&server, &server].map(|it| it.try_clone().expect("a copy"));
        let tallies = Arc::clone(tallies);
        thread::spawn(move || {
            relay(from_client, to_server, |bytes| {
                let mut tallies = tallies.lock().expect("no panic");
                tallies[number].bytes += bytes;
                tallies[number].is_open = bytes > 0;
            });
        });
        thread::spawn(move || relay(from_server, to_client, |_| ()));
    }
}

/// Counts before it forwards: a client with a reply has been counted.
fn relay(mut from: impl io::Read, mut to: TcpStream, count: impl Fn(usize)) {
    let mut buffer = [0; 16 << 10];
    loop {
        // A reset is an end, too.
        let bytes = from.read(&mut buffer).unwrap_or(0);
        count(bytes);
        if bytes == 0 || to.write_all(&buffer[..bytes]).is_err() {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
}
