//! What a connection of the mio shell takes that lies idle, with TLS: memory and threads of the
//! process that holds them; and how long check-outs take beside many of them, on both shells. The server is
//! a process of its own.
//! `ulimit -n 20000; cargo bench -p cenote --bench idle [-- CONNECTIONS]`, 10,000 by default.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cenote_endpoint::{Endpoint, ListenOptions, Settings};
use cenote_mio::Pool;

const SERVER: &str = "serve";
const SECURED: &str = "tls";
const PLAIN: &str = "tcp";
/// Standard ones, polls, listeners, libraries.
const OTHER_FILES: u32 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` adds `--bench`; `cargo test` runs the binary, too, and gets a few.
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let argument = std::env::args().skip(1).find(|argument| argument != "--bench");
    match argument.as_deref() {
        Some(SERVER) => serve(std::env::args().next_back().as_deref() == Some(SECURED)),
        Some(connections) => hold(connections.parse()?),
        None => hold(if is_test { 20 } else { 10_000 }),
    }
}

/// Until standard input ends, which is when the other process does.
fn serve(is_secured: bool) -> Result<(), Box<dyn Error>> {
    let listen = if is_secured { ListenOptions::with_tls() } else { ListenOptions::default() };
    let endpoint = Endpoint::start(Settings::default(), listen)?;
    println!("{}", endpoint.uri());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn hold(connections: u32) -> Result<(), Box<dyn Error>> {
    check_limit(connections)?;
    let server = Server::start(SECURED)?;
    let pool = Pool::connect_to(&server.uri(connections))?;
    pool.ready();
    pool.warm_up(1)?; // What is there once for all.
    let (before, began) = (resident()?, Instant::now());
    let made = pool.warm_up(connections)?;
    let took = began.elapsed();
    let each = (resident()? - before) / u64::from(made - 1);
    println!("{made} idle connections with TLS: {each} bytes each");
    println!("{} threads; opened in {took:.1?}", fs::read_dir("/proc/self/task")?.count());
    pool.close();
    drop(server);
    let (few, many) = (50.min(connections), connections / 2);
    println!("p99.9 of a check-out beside {few} and beside {many} idle connections, without TLS:");
    let [of_few, of_many] = [tail_on_mio(few)?, tail_on_mio(many)?];
    println!("cenote-mio: {of_few:.1?} and {of_many:.1?}");
    let [of_few, of_many] = [tail_on_tokio(few)?, tail_on_tokio(many)?];
    println!("cenote-tokio: {of_few:.1?} and {of_many:.1?}");
    Ok(())
}

fn tail_on_mio(connections: u32) -> Result<Duration, Box<dyn Error>> {
    let server = Server::start(PLAIN)?;
    let pool = Pool::connect_to(&server.uri(connections))?;
    pool.ready();
    pool.warm_up(connections)?;
    let tail = tail(|| drop(pool.check_out()));
    pool.close();
    Ok(tail)
}

/// The runtime has a thread of its own.
fn tail_on_tokio(connections: u32) -> Result<Duration, Box<dyn Error>> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let _entered = runtime.enter();
    let server = Server::start(PLAIN)?;
    let pool = cenote_tokio::Pool::connect_to(&server.uri(connections))?;
    pool.ready();
    runtime.block_on(pool.warm_up(connections))?;
    let tail = tail(|| drop(runtime.block_on(pool.check_out())));
    runtime.block_on(pool.close());
    Ok(tail)
}

/// Of check-outs that are due every 100 µs for some seconds, whatever those before them take: each counts from when it was due,
/// so that one long wait is the wait of all that come meanwhile.
fn tail(check_out: impl Fn()) -> Duration {
    let begin = Instant::now();
    let mut all: Vec<_> = (0..60_000_u32)
        .map(|number| {
            let due = begin + number * Duration::from_micros(100);
            while Instant::now() < due {
                std::hint::spin_loop();
            }
            check_out();
            due.elapsed()
        })
        .collect();
    all.sort_unstable();
    all[all.len() * 999 / 1000]
}

/// In another process.
struct Server {
    process: Child,
    uri: String,
}

impl Server {
    fn start(security: &str) -> Result<Self, Box<dyn Error>> {
        let mut process = Command::new(std::env::current_exe()?)
            .args([SERVER, security])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut uri = String::new();
        let output = process.stdout.take().ok_or("it has a standard output")?;
        BufReader::new(output).read_line(&mut uri)?;
        Ok(Self { process, uri: uri.trim().to_owned() })
    }

    fn uri(&self, connections: u32) -> String {
        let options = "maxConnecting=64&connectTimeoutMS=60000";
        format!("{}&maxPoolSize={connections}&{options}", self.uri)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Each connection is a file to this process, and one to the server's.
fn check_limit(connections: u32) -> Result<(), Box<dyn Error>> {
    let limits = fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let limit = line.and_then(|line| line.split_whitespace().nth(3)).ok_or("Linux says it")?;
    let needed = connections + OTHER_FILES;
    if limit.parse::<u32>().is_ok_and(|limit| limit < needed) {
        let how = format!("raise it with `ulimit -n {needed}`, or hold fewer with `-- NUMBER`");
        return Err(
            format!("this process may open {limit} files, and needs {needed}: {how}").into()
        );
    }
    Ok(())
}

/// Bytes of memory that are really there.
fn resident() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("Linux says it")?;
    let kilobytes = line.split_whitespace().nth(1).ok_or("Linux says it")?;
    Ok(kilobytes.parse::<u64>()? * 1024)
}
