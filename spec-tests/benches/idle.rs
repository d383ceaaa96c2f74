//! What a connection of the mio shell takes that lies idle, with TLS: memory and threads of the
//! process that holds them. The server is a process of its own.
//! `ulimit -n 20000; cargo bench -p cenote --bench idle [-- CONNECTIONS]`, 10,000 by default.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Instant;

use cenote_endpoint::{Endpoint, ListenOptions, Settings};
use cenote_mio::Pool;

const SERVER: &str = "serve";
/// Standard ones, polls, listeners, libraries.
const OTHER_FILES: u32 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` adds `--bench`; `cargo test` runs the binary, too, and gets a few.
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let argument = std::env::args().skip(1).find(|argument| argument != "--bench");
    match argument.as_deref() {
        Some(SERVER) => serve(),
        Some(connections) => hold(connections.parse()?),
        None => hold(if is_test { 20 } else { 10_000 }),
    }
}

/// Until standard input ends, which is when the other process does.
fn serve() -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::with_tls())?;
    println!("{}", endpoint.uri());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn hold(connections: u32) -> Result<(), Box<dyn Error>> {
    check_limit(connections)?;
    let mut server = Command::new(std::env::current_exe()?)
        .arg(SERVER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut uri = String::new();
    let output = server.stdout.take().ok_or("it has a standard output")?;
    BufReader::new(output).read_line(&mut uri)?;

    let options = format!("maxPoolSize={connections}&maxConnecting=64&connectTimeoutMS=60000");
    let pool = Pool::connect_to(&format!("{}&{options}", uri.trim()))?;
    pool.ready();
    pool.warm_up(1)?; // What is there once for all.
    let (before, began) = (resident()?, Instant::now());
    let made = pool.warm_up(connections)?;
    let took = began.elapsed();
    let each = (resident()? - before) / u64::from(made - 1);
    println!("{made} idle connections with TLS: {each} bytes each");
    println!("{} threads; opened in {took:.1?}", fs::read_dir("/proc/self/task")?.count());
    pool.close();
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
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
