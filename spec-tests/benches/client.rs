//! What a client takes besides its pools, on both shells: `command` against the pool's own pair and
//! ping, also while an inspector is connected, and watching servers that have nothing to say, in memory and
//! processor time.
//! `cargo bench -p cenote --bench client [-- SERVERS [SECONDS]]`.
//!
//! Each figure is of a process of its own, and the servers are in another one. Client and servers share a
//! processor when an inspector is measured, which needs `taskset`.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use bson::{RawDocumentBuf, rawdoc};
use cenote_core::client::Selector;
use cenote_endpoint::{Endpoint, ListenOptions, Settings, Topology};

/// What another process of this binary is told to do.
const SERVE: &str = "serve";
const COMPARE: &str = "compare";
const WATCH: &str = "watch";
const INSPECT: &str = "inspect";

const SHELLS: [&str; 2] = ["tokio", "mio"];

/// How often the operating system counts a second of processor time, on every Linux.
const TICKS: f64 = 100.0;

const OF_CLIENT: &str = "Client::command(ping) ÷ the pool's check-out, ping and check-in";
const OF_INSPECTION: &str = "Client::command(ping) with an inspector ÷ without one";

/// How often the two are compared.
const ROUNDS: u64 = 40;

type Outcome<R> = Result<R, Box<dyn Error>>;

fn main() -> Outcome<()> {
    // `cargo bench` adds `--bench`; `cargo test` runs the binary, too, and gets a few.
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let arguments: Vec<_> = arguments.collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [SERVE, servers] => return serve(servers.parse()?),
        [COMPARE, "tokio", pings] => return block_on(on_tokio::compare(pings.parse()?)),
        [COMPARE, "mio", pings] => return on_mio::compare(pings.parse()?),
        [INSPECT, "tokio", pings] => return block_on(on_tokio::inspect(pings.parse()?)),
        [INSPECT, "mio", pings] => return on_mio::inspect(pings.parse()?),
        [WATCH, "tokio", servers, seconds] => {
            let time = Duration::from_secs(seconds.parse()?);
            return block_on(on_tokio::watch(servers.parse()?, time));
        }
        [WATCH, "mio", servers, seconds] => {
            return on_mio::watch(servers.parse()?, Duration::from_secs(seconds.parse()?));
        }
        _ => {}
    }
    let pings = if is_test { "40" } else { "40000" };
    let servers = words.first().copied().unwrap_or(if is_test { "3" } else { "1000" });
    let seconds = words.get(1).copied().unwrap_or(if is_test { "0" } else { "60" });
    for shell in SHELLS {
        in_process(&[COMPARE, shell, pings])?;
        on_one_processor(&[INSPECT, shell, pings])?;
        in_process(&[WATCH, shell, servers, seconds])?;
    }
    Ok(())
}

fn block_on<R>(work: impl Future<Output = Outcome<R>>) -> Outcome<R> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

fn in_process(words: &[&str]) -> Outcome<()> {
    run(Command::new(std::env::current_exe()?).args(words))
}

/// With several, the time of a ping depends on whether the scheduler runs client and server on the same one,
/// which one more thread changes: two to three times as long, whatever that thread does.
fn on_one_processor(words: &[&str]) -> Outcome<()> {
    let first = first_processor()?;
    run(Command::new("taskset")
        .args(["--cpu-list", &first])
        .arg(std::env::current_exe()?)
        .args(words))
}

fn run(command: &mut Command) -> Outcome<()> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Until standard input ends, which is when the other process does.
fn serve(servers: u64) -> Outcome<()> {
    let settings = || Settings { topology: Topology::Mongos, ..Settings::default() };
    let start = |_| Endpoint::start(settings(), ListenOptions::default());
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
    fn start(count: u64) -> Outcome<Self> {
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

    fn stop(mut self) -> Outcome<()> {
        drop(self.process.stdin.take());
        self.process.wait()?;
        Ok(())
    }
}

fn ping() -> RawDocumentBuf {
    rawdoc! { "ping": 1 }
}

/// Both in the same rounds, one after the other, so that what disturbs one disturbs the other.
#[derive(Default)]
struct Ratios(Vec<f64>);

impl Ratios {
    fn add(&mut self, one: Duration, other: Duration) {
        self.0.push(one.as_secs_f64() / other.as_secs_f64());
    }

    fn tell(mut self, shell: &str, what: &str) {
        self.0.sort_by(f64::total_cmp);
        let at = |part: usize| self.0[self.0.len() * part / 4];
        println!(
            "{shell}: {what}: {:.3} \
             (median of {ROUNDS}; half of them from {:.3} to {:.3})",
            at(2),
            at(1),
            at(3)
        );
    }
}

/// An inspector as `cenote top` is one, which looks at the first pool every second.
struct Inspector {
    thread: thread::JoinHandle<()>,
    hang_up: Sender<()>,
}

impl Inspector {
    fn attach(socket: &Path) -> Outcome<Self> {
        let stream = UnixStream::connect(socket)?;
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        // The pools are watched when it has its greeting.
        lines.next().ok_or("a greeting")??;
        let (hang_up, end) = channel();
        let thread = thread::spawn(move || {
            while (&stream).write_all(b"pools\npool 1\n").is_ok() {
                let answers = lines.by_ref().take(2).filter(Result::is_ok).count();
                let is_over =
                    end.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout);
                if answers < 2 || is_over {
                    return;
                }
            }
        });
        Ok(Self { thread, hang_up })
    }

    fn detach(self) -> Outcome<()> {
        drop(self.hang_up);
        self.thread.join().map_err(|_| "the inspector panicked")?;
        // The process notices a moment later.
        thread::sleep(Duration::from_millis(20));
        Ok(())
    }
}

/// What a process has used up to a moment.
struct Used {
    at: Instant,
    seconds: f64,
}

impl Used {
    fn now() -> Outcome<Self> {
        Ok(Self { at: Instant::now(), seconds: processor_time()? })
    }

    fn tell_since(&self, shell: &str) -> Outcome<()> {
        let time = self.at.elapsed();
        let share = 100.0 * (processor_time()? - self.seconds) / time.as_secs_f64();
        println!("{shell}: {share:.2} % of a core while nothing happens ({time:.0?})");
        Ok(())
    }
}

/// Each with both of its monitoring sockets, and with a connection of the pool.
fn tell_memory(shell: &str, before: u64, count: u64) -> Outcome<()> {
    let each = resident()?.saturating_sub(before) / count;
    let threads = fs::read_dir("/proc/self/task")?.count();
    println!(
        "{shell}: {count} servers watched by {threads} threads in all: {each} bytes each, with a \
         pooled connection"
    );
    Ok(())
}

mod on_tokio {
    use super::*;
    use cenote_tokio::Client;

    pub(super) async fn compare(pings: u64) -> Outcome<()> {
        let servers = Servers::start(1)?;
        let client = Client::new(&servers.uri)?;
        client.command("admin", &ping()).await?;
        let address = client.servers()[0].address.as_ref().clone();
        let pool = client.pool(&address).ok_or("the only host")?;
        let mut ratios = Ratios::default();
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
            ratios.add(of_client, began.elapsed());
        }
        ratios.tell("tokio", OF_CLIENT);
        client.close().await;
        servers.stop()
    }

    pub(super) async fn inspect(pings: u64) -> Outcome<()> {
        let servers = Servers::start(1)?;
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("pool.sock");
        let client = Client::builder(&servers.uri)?.inspect(&socket).build()?;
        client.command("admin", &ping()).await?;
        let mut ratios = Ratios::default();
        for _ in 0..ROUNDS {
            let inspector = Inspector::attach(&socket)?;
            let began = Instant::now();
            for _ in 0..pings / ROUNDS {
                client.command("admin", &ping()).await?;
            }
            let attached = began.elapsed();
            inspector.detach()?;
            let began = Instant::now();
            for _ in 0..pings / ROUNDS {
                client.command("admin", &ping()).await?;
            }
            ratios.add(attached, began.elapsed());
        }
        ratios.tell("tokio", OF_INSPECTION);
        client.close().await;
        servers.stop()
    }

    /// A client that does nothing but watch.
    pub(super) async fn watch(count: u64, time: Duration) -> Outcome<()> {
        let servers = Servers::start(count)?;
        let before = resident()?;
        let client = Client::new(&servers.uri)?;
        for server in client.servers() {
            let selector = Selector::Address(server.address.as_ref().clone());
            drop(client.check_out(&selector).await?);
        }
        tell_memory("tokio", before, count)?;
        let used = Used::now()?;
        tokio::time::sleep(time).await;
        if !time.is_zero() {
            used.tell_since("tokio")?;
        }
        client.close().await;
        servers.stop()
    }
}

mod on_mio {
    use super::*;
    use cenote_mio::Client;

    pub(super) fn compare(pings: u64) -> Outcome<()> {
        let servers = Servers::start(1)?;
        let client = Client::new(&servers.uri)?;
        client.command("admin", &ping())?;
        let address = client.servers()[0].address.as_ref().clone();
        let pool = client.pool(&address).ok_or("the only host")?;
        let mut ratios = Ratios::default();
        for _ in 0..ROUNDS {
            let began = Instant::now();
            for _ in 0..pings / ROUNDS {
                client.command("admin", &ping())?;
            }
            let of_client = began.elapsed();
            let began = Instant::now();
            for _ in 0..pings / ROUNDS {
                pool.check_out()?.command("admin", &ping())?;
            }
            ratios.add(of_client, began.elapsed());
        }
        ratios.tell("mio", OF_CLIENT);
        client.close();
        servers.stop()
    }

    pub(super) fn inspect(pings: u64) -> Outcome<()> {
        let servers = Servers::start(1)?;
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("pool.sock");
        let client = Client::builder(&servers.uri)?.inspect(&socket).build()?;
        client.command("admin", &ping())?;
        let mut ratios = Ratios::default();
        for _ in 0..ROUNDS {
            let inspector = Inspector::attach(&socket)?;
            let began = Instant::now();
            for _ in 0..pings / ROUNDS {
                client.command("admin", &ping())?;
            }
            let attached = began.elapsed();
            inspector.detach()?;
            let began = Instant::now();
            for _ in 0..pings / ROUNDS {
                client.command("admin", &ping())?;
            }
            ratios.add(attached, began.elapsed());
        }
        ratios.tell("mio", OF_INSPECTION);
        client.close();
        servers.stop()
    }

    /// A client that does nothing but watch.
    pub(super) fn watch(count: u64, time: Duration) -> Outcome<()> {
        let servers = Servers::start(count)?;
        let before = resident()?;
        let client = Client::new(&servers.uri)?;
        for server in client.servers() {
            drop(client.check_out(&Selector::Address(server.address.as_ref().clone()))?);
        }
        tell_memory("mio", before, count)?;
        let used = Used::now()?;
        thread::sleep(time);
        if !time.is_zero() {
            used.tell_since("mio")?;
        }
        client.close();
        servers.stop()
    }
}

/// Bytes of memory that are really there.
fn resident() -> Outcome<u64> {
    Ok(status("VmRSS:")?.parse::<u64>()? * 1024)
}

/// The number of the first processor that this process may use.
fn first_processor() -> Outcome<String> {
    let list = status("Cpus_allowed_list:")?;
    Ok(list.chars().take_while(char::is_ascii_digit).collect())
}

/// What Linux says of this process under `name`.
fn status(name: &str) -> Outcome<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("Linux says it")?;
    Ok(line.split_whitespace().next().ok_or("Linux says it")?.to_owned())
}

/// Seconds of this process, in user and in system mode.
fn processor_time() -> Outcome<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The second field is a name in parentheses, which may hold anything.
    let (_, fields) = stat.rsplit_once(')').ok_or("Linux says it")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / TICKS)
}
