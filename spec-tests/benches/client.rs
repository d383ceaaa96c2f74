//! What a client takes besides its pools: `command` against the pool's own pair and ping, and
//! watching servers that have nothing to say, in memory and processor time.
//! `cargo bench -p cenote --bench client [-- SERVERS [SECONDS]]`.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bson::{RawDocumentBuf, rawdoc};
use cenote::endpoint::{Endpoint, ListenOptions, Settings};
use cenote_tokio::{Client, Selector};

const SERVE: &str = "serve";

/// How often the operating system counts a second of processor time, on every Linux.
const TICKS: f64 = 100.0;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` adds `--bench`; `cargo test` runs the binary, too, and gets a few.
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let arguments: Vec<_> = arguments.collect();
    if let [first, servers] = arguments.as_slice() {
        if first == SERVE {
            return serve(servers.parse()?);
        }
    }
    let argument = |index: usize| arguments.get(index).map(|argument| argument.parse::<u64>());
    let servers = argument(0).transpose()?.unwrap_or(if is_test { 3 } else { 1000 });
    let seconds = argument(1).transpose()?.unwrap_or(if is_test { 0 } else { 60 });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        compare(if is_test { 10 } else { 20_000 }).await?;
        watch(servers, Duration::from_secs(seconds)).await
    })
}

/// Until standard input ends, which is when the other process does.
fn serve(servers: u64) -> Result<(), Box<dyn Error>> {
    let start = |_| Endpoint::start(Settings::default(), ListenOptions::default());
    let endpoints = (0..servers).map(start).collect::<Result<Vec<_>, _>>()?;
    let hosts: Vec<_> = endpoints.iter().map(|it| it.address().to_string()).collect();
    println!("mongodb://{}/", hosts.join(","));
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

struct Servers {
    process: std::process::Child,
    uri: String,
}

impl Servers {
    fn start(count: u64) -> Result<Self, Box<dyn Error>> {
        let mut process = Command::new(std::env::current_exe()?)
            .args([SERVE, &count.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut uri = String::new();
        let output = process.stdout.take().ok_or("it has a standard output")?;
        BufReader::new(output).read_line(&mut uri)?;
        Ok(Self { process, uri: uri.trim().to_owned() })
    }

    fn stop(mut self) -> Result<(), Box<dyn Error>> {
        drop(self.process.stdin.take());
        self.process.wait()?;
        Ok(())
    }
}

/// Both in the same rounds, one after the other, so that what disturbs one disturbs the other.
async fn compare(pings: u32) -> Result<(), Box<dyn Error>> {
    const ROUNDS: u32 = 10;
    let servers = Servers::start(1)?;
    let client = Client::new(&servers.uri)?;
    client.command("admin", &ping()).await?;
    let address = client.servers()[0].address.as_ref().clone();
    let pool = client.pool(&address).ok_or("the only host")?.clone();
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for _ in 0..pings / ROUNDS {
            client.command("admin", &ping()).await?;
        }
        let of_client = began.elapsed();
        let began = Instant::now();
        for _ in 0..pings / ROUNDS {
            pool.check_out().await?.command("admin", &ping()).await?;
        }
        ratios.push(of_client.as_secs_f64() / began.elapsed().as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "Client::command(ping) ÷ the pool's check-out, ping and check-in: {:.3} (median of {ROUNDS})",
        ratios[ratios.len() / 2]
    );
    client.close().await;
    servers.stop()
}

fn ping() -> RawDocumentBuf {
    rawdoc! { "ping": 1 }
}

/// A client that does nothing but watch.
async fn watch(count: u64, time: Duration) -> Result<(), Box<dyn Error>> {
    let servers = Servers::start(count)?;
    let before = resident()?;
    let client = Client::new(&servers.uri)?;
    for server in client.servers() {
        let selector = Selector::Address(server.address.as_ref().clone());
        drop(client.check_out(&selector).await?);
    }
    // Both sockets of each are there, and a first round-trip time.
    let known = client.servers().iter().all(|server| server.description.is_known());
    assert!(known, "every server was reached");
    let each = resident()?.saturating_sub(before) / count;
    let began = (Instant::now(), processor_time()?);
    tokio::time::sleep(time).await;
    let used = processor_time()? - began.1;
    println!("{count} servers watched: {each} bytes each, with a pooled connection");
    if !time.is_zero() {
        let share = 100.0 * used / began.0.elapsed().as_secs_f64();
        println!("{share:.2} % of a core while nothing happens ({:.0?})", began.0.elapsed());
    }
    client.close().await;
    servers.stop()
}

/// Bytes of memory that are really there.
fn resident() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("Linux says it")?;
    let kilobytes = line.split_whitespace().nth(1).ok_or("Linux says it")?;
    Ok(kilobytes.parse::<u64>()? * 1024)
}

/// Seconds of this process, in user and in system mode.
fn processor_time() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The second field is a name in parentheses, which may hold anything.
    let (_, fields) = stat.rsplit_once(')').ok_or("Linux says it")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / TICKS)
}
