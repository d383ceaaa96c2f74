//! Bytes of heap for what pools and clients keep: the table of `docs/performance.md`, which is held to a tenth.
//!
//! Without the usual harness, whose threads allocate as well: the counts are the whole process's. The servers are in
//! another process.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use cenote::workload::Busy;
use cenote_core::client::Selector;
use cenote_core::pool::PoolOptions;
use cenote_endpoint::{Endpoint, ListenOptions, Settings, Topology};
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Where the figures are.
const TABLE: &str = include_str!("../../docs/performance.md");
/// What another process of this program is told to do: with a number of servers, and how they listen.
const SERVE: &str = "serve";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, what, servers, security] = &arguments[..]
        && what == SERVE
    {
        return serve(servers.parse().expect("a number"), security == "tls");
    }
    let _profiler = dhat::Profiler::builder().testing().build();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let rows = [
        ("a request that waits, in the machine", requests()),
        ("a caller that waits, tokio", runtime.block_on(callers())),
        ("an idle connection over TCP, tokio", idle_on_tokio(&runtime, "tcp")),
        ("the same, mio", idle_on_mio("tcp")),
        ("an idle connection over TLS, tokio", idle_on_tokio(&runtime, "tls")),
        ("the same over TLS, mio", idle_on_mio("tls")),
        (
            "a server at rest, monitored, with an idle connection, tokio",
            servers(&|uri| on_tokio(&runtime, uri)),
        ),
        ("a server at rest, mio", servers(&on_mio)),
    ];
    let wrong = rows.iter().filter(|(row, bytes)| !is_as_written(row, *bytes)).count();
    assert_eq!(wrong, 0, "figures of docs/performance.md, which are to be measured again");
}

/// Prints a row; whether the table says so, to a tenth.
fn is_as_written(row: &str, bytes: usize) -> bool {
    println!("| {row} | {bytes} |");
    let line = TABLE.lines().find_map(|line| line.strip_prefix("| ")?.strip_prefix(row));
    let digits = line.unwrap_or_default().chars().filter(char::is_ascii_digit);
    let written: usize = digits.collect::<String>().parse().unwrap_or(0);
    bytes.abs_diff(written) * 10 <= written
}

fn heap() -> usize {
    dhat::HeapStats::get().curr_bytes
}

/// What each of `count` takes beyond what is there once for all, such as certificates.
fn each_of(count: usize, mut have: impl FnMut(usize)) -> usize {
    have(count / 10);
    let before = heap();
    have(count + count / 10);
    heap().saturating_sub(before) / count
}

fn requests() -> usize {
    let limit = Duration::from_secs(3600);
    let mut busy = Busy::new(PoolOptions::default().with_wait_queue_timeout(limit));
    let mut waiting = 0;
    each_of(100_000, |all| {
        busy.enqueue(all as u64 - waiting);
        waiting = all as u64;
    })
}

async fn callers() -> usize {
    let servers = Servers::start(1, "tcp");
    let uri = format!("{}&maxPoolSize=1", servers.uri);
    let pool = cenote_tokio::Pool::connect_to(&uri).expect("a good URI");
    pool.ready();
    let _held = pool.check_out().await.expect("a connection");
    let count = 10_000;
    // Not counted: how large a caller's own future is.
    let mut callers: Vec<_> = (0..2 * count).map(|_| Box::pin(pool.check_out())).collect();
    let mut polled = 0;
    let each = tokio::task::unconstrained(async {
        each_of(count, |all| {
            for caller in &mut callers[polled..all] {
                let mut context = Context::from_waker(Waker::noop());
                assert!(caller.as_mut().poll(&mut context).is_pending(), "it waits");
            }
            polled = all;
        })
    });
    each.await
}

const CONNECTIONS: usize = 80;

fn idle_on_tokio(runtime: &Runtime, security: &str) -> usize {
    let servers = Servers::start(1, security);
    let pool = runtime.block_on(async { cenote_tokio::Pool::connect_to(&servers.uri) });
    let pool = pool.expect("a good URI");
    pool.ready();
    let each = each_of(CONNECTIONS, |all| {
        let made = runtime.block_on(pool.warm_up(all as u32)).expect("a server");
        assert_eq!(made as usize, all);
        settle(Some(runtime));
    });
    runtime.block_on(pool.close());
    each
}

fn idle_on_mio(security: &str) -> usize {
    let servers = Servers::start(1, security);
    let pool = cenote_mio::Pool::connect_to(&servers.uri).expect("a good URI");
    pool.ready();
    let each = each_of(CONNECTIONS, |all| {
        assert_eq!(pool.warm_up(all as u32).expect("a server") as usize, all);
        settle(None);
    });
    pool.close();
    each
}

/// What a server takes, of a hundred more.
fn servers(held: &dyn Fn(&Servers) -> usize) -> usize {
    let few = held(&Servers::start(10, "tcp"));
    held(&Servers::start(110, "tcp")).saturating_sub(few) / 100
}

fn on_tokio(runtime: &Runtime, servers: &Servers) -> usize {
    let before = heap();
    let client = runtime.block_on(async { cenote_tokio::Client::new(&servers.uri) });
    let client = client.expect("a good URI");
    for server in client.servers() {
        let selector = Selector::Address(server.address.as_ref().clone());
        drop(runtime.block_on(client.check_out(&selector)).expect("a connection"));
    }
    settle(Some(runtime));
    let held = heap().saturating_sub(before);
    runtime.block_on(client.close());
    held
}

fn on_mio(servers: &Servers) -> usize {
    let before = heap();
    let client = cenote_mio::Client::new(&servers.uri).expect("a good URI");
    for server in client.servers() {
        let selector = Selector::Address(server.address.as_ref().clone());
        drop(client.check_out(&selector).expect("a connection"));
    }
    settle(None);
    let held = heap().saturating_sub(before);
    client.close();
    held
}

/// Until nothing has changed for a while: monitors have both their sockets.
fn settle(runtime: Option<&Runtime>) {
    let pause = Duration::from_millis(100);
    let mut quiet = 0;
    while quiet < 5 {
        let before = heap();
        match runtime {
            Some(runtime) => runtime.block_on(async { tokio::time::sleep(pause).await }),
            None => thread::sleep(pause),
        }
        quiet = if heap() == before { quiet + 1 } else { 0 };
    }
}

/// Until standard input ends, which is when the other process does.
fn serve(servers: usize, is_tls: bool) {
    let listen = || if is_tls { ListenOptions::with_tls() } else { ListenOptions::default() };
    // Several servers of one client are routers.
    let topology = if servers > 1 { Topology::Mongos } else { Topology::Standalone };
    let settings = || Settings { topology: topology.clone(), ..Settings::default() };
    let start = |_| Endpoint::start(settings(), listen()).expect("a free port");
    let endpoints: Vec<_> = (0..servers).map(start).collect();
    match &endpoints[..] {
        [one] => println!("{}", one.uri()),
        all => {
            let hosts: Vec<_> = all.iter().map(|it| it.address().to_string()).collect();
            println!("mongodb://{}/?", hosts.join(","));
        }
    }
    std::io::stdin().read_to_end(&mut Vec::new()).expect("a pipe");
}

struct Servers {
    process: Child,
    uri: String,
}

impl Servers {
    fn start(count: usize, security: &str) -> Self {
        let program = std::env::current_exe().expect("this one");
        let mut process = Command::new(program)
            .args([SERVE, &count.to_string(), security])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program again");
        let mut uri = String::new();
        let output = process.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut uri).expect("a URI");
        Self { process, uri: uri.trim().to_owned() }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
