//! Three members of a set stream hello as fast as their sockets take it: beside them the application's timers are in time,
//! commands to another member go on, memory stays as it is, `close` ends, and nothing is left.
//!
//! The members have threads of their own, which sleep while their sockets are full. They make the processor busy only as far
//! as the client reads.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use bson::{RawArrayBuf, oid::ObjectId, rawdoc};
use cenote_core::address::ServerAddress;
use cenote_core::client::{HeartbeatEvent, ReadPreference, Selector};
use cenote_core::uri::ReadPreferenceMode;
use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
use cenote_endpoint::{ReplicaSet, Role};
use cenote_mio::OperationOptions;
use cenote_shell::client::Client;
use cenote_shell::connection::Connection;
use cenote_shell::runtime::{CurrentRuntime, Network};
use cenote_smol::Smol;
use cenote_test_runtimes::alone;
use cenote_tokio::Tokio;
use socket2::SockRef;
use tokio::runtime::Builder;

use crate::threads::own_threads;
use crate::world::{change_set, member, three};

/// How long each load lasts.
const LOAD: Duration = Duration::from_millis(750);

/// How often the application's timer is due, and how long it waits between two commands.
const TICK: Duration = Duration::from_millis(5);

/// How long what a closed client leaves is waited for: much longer than it may take.
const LEFT: Duration = Duration::from_secs(1);

/// How late timers may be, however little late they are beside a healthy set: a busy machine does as much.
const LATE: Duration = Duration::from_millis(40);

/// The names that members list besides those that stay: in the N-th reply of all, from members with this port.
type Names = fn(u32, u16) -> Vec<String>;

const LOADS: [(&str, Names); 6] = [
    ("the same hello", |_, _| Vec::new()),
    ("another member each time", |n, _| vec![address(n, 1)]),
    ("45 new members each time", |n, _| fresh(n).map(|it| address(it, 1)).collect()),
    ("a hundred, which are too many", |n, _| (0..100).map(|it| address(100 * n + it, 1)).collect()),
    ("names that do not resolve", |n, _| fresh(n).map(|it| format!("n{it}.invalid")).collect()),
    ("new members that do the same", |n, port| fresh(n).map(|it| address(it, port)).collect()),
];

/// As many as are believed: with those of the reply before and the four that stay, less than a hundred.
fn fresh(n: u32) -> Range<u32> {
    45 * n..45 * (n + 1)
}

/// One of this machine's.
fn address(number: u32, port: u16) -> String {
    let [_, a, b, c] = number.to_be_bytes();
    format!("127.{a}.{b}.{c}:{port}")
}

/// Three primaries of one set, with a fourth member that stays.
fn restless(calm: &ServerAddress, names: Names) -> Vec<String> {
    let bind = |_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
    let listeners = [(); 3].map(bind);
    let port = |it: &TcpListener| it.local_addr().expect("an address").port();
    let own = listeners.each_ref().map(|it| format!("127.0.0.1:{}", port(it)));
    let stay: Arc<[_]> = [calm.to_string()].into_iter().chain(own).collect();
    let replies = Arc::new(AtomicU32::new(1));
    for listener in listeners {
        let (stay, replies, port) = (Arc::clone(&stay), Arc::clone(&replies), port(&listener));
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                // So that little is written that is never read.
                SockRef::from(&socket).set_send_buffer_size(4096).expect("an option");
                let (stay, replies) = (Arc::clone(&stay), Arc::clone(&replies));
                let me = socket.local_addr().expect("an address").to_string();
                let list = move || {
                    let names = names(replies.fetch_add(1, Ordering::Relaxed), port);
                    stay.iter().cloned().chain([me.clone()]).chain(names).collect()
                };
                // Until the client closes the socket.
                thread::spawn(move || _ = answer(socket, list));
            }
        });
    }
    stay.to_vec()
}

/// Answers each hello once, and one that may be answered by a stream without an end.
fn answer(mut socket: TcpStream, list: impl Fn() -> RawArrayBuf) -> io::Result<()> {
    const OP_MSG: i32 = 2013;
    const EXHAUST_ALLOWED: i32 = 1 << 16;
    let process = ObjectId::new();
    loop {
        let mut begin = [0; 20];
        socket.read_exact(&mut begin)?;
        let number = |at: usize| i32::from_le_bytes([0, 1, 2, 3].map(|it| begin[at + it]));
        let (length, response_to, code, flags) = (number(0), number(4), number(12), number(16));
        let rest = u64::try_from(length - 20).expect("a length");
        io::copy(&mut (&socket).take(rest), &mut io::sink())?;
        let more_to_come = code == OP_MSG && flags & EXHAUST_ALLOWED != 0;
        loop {
            let version = rawdoc! { "processId": process, "counter": 1_i64 };
            let hello = rawdoc! {
                "ok": 1, "isWritablePrimary": true, "setName": "rs0", "hosts": list(),
                "maxWireVersion": 25, "topologyVersion": version,
            };
            let mut bytes = Vec::new();
            let (ids, flags) = (Ids { request_id: 1, response_to }, Flags::NONE);
            let flags = Flags { more_to_come, ..flags };
            let writer = MessageWriter::new(&mut bytes, ids, flags, &hello);
            writer.finish(MessageLimit::DEFAULT).expect("small");
            socket.write_all(&bytes)?;
            if !more_to_come {
                break;
            }
        }
    }
}

/// What an application sees beside a load.
#[derive(Default)]
struct Seen {
    is_over: AtomicBool,
    /// How many checks have succeeded.
    checks: Arc<AtomicUsize>,
    times: Mutex<Times>,
}

#[derive(Default)]
struct Times {
    /// How late its timer was each time.
    late: Vec<Duration>,
    /// When its commands were answered.
    answered: Vec<Instant>,
}

impl Seen {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().expect("no panic")
    }

    /// A time of the timer has come: the next one is a tick later, be this one late or not.
    fn ticked(&self, due: &mut Instant) {
        self.times().late.push(due.elapsed());
        *due += TICK;
    }

    /// A subscriber that counts checks.
    fn count(&self) -> impl Fn(&HeartbeatEvent) + Send + Sync + 'static {
        let checks = Arc::clone(&self.checks);
        move |event| {
            if event.event.name() == "ServerHeartbeatSucceeded" {
                checks.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn answered(&self) {
        self.times().answered.push(Instant::now());
    }
}

/// An application of tasks: one has a timer, the other sends commands.
fn tasks<R>(
    runtime: &R,
    uri: &str,
    calm: &ServerAddress,
    seen: &Arc<Seen>,
) -> (Client<R>, [R::Task; 2])
where
    R: CurrentRuntime + Network<Connection = Connection<R>>,
{
    let builder = Client::<R>::builder(uri).expect("a connection string");
    let client = builder.on_heartbeat(seen.count()).build().expect("good options");
    let timer = {
        let (runtime, seen) = (runtime.clone(), Arc::clone(seen));
        async move {
            let mut due = Instant::now();
            while seen.goes_on() {
                runtime.sleep_until(due).await;
                seen.ticked(&mut due);
            }
        }
    };
    let commands = {
        let (runtime, client, seen) = (runtime.clone(), client.clone(), Arc::clone(seen));
        let calm = Selector::Address(calm.clone());
        async move {
            while seen.goes_on() {
                // The client may be closed meanwhile; before that, silence tells of an error.
                let Ok(mut connection) = client.check_out(&calm).await else { return };
                if connection.command("admin", &rawdoc! { "ping": 1 }).await.is_ok() {
                    seen.answered();
                }
                drop(connection);
                runtime.sleep_until(Instant::now() + TICK).await;
            }
        }
    };
    let tasks = [runtime.spawn(timer), runtime.spawn(commands)];
    (client, tasks)
}

/// An application of threads. Its timer is the deadline of a call, because it shares no loop with the client.
fn threads(uri: &str, calm: &ServerAddress, seen: &Arc<Seen>) -> cenote_mio::Client {
    let builder = cenote_mio::Client::builder(uri).expect("a connection string");
    let client = builder.on_heartbeat(seen.count()).build().expect("good options");
    let mut tags = ReadPreference::of_mode(ReadPreferenceMode::Secondary);
    tags.tag_sets.push([("is".to_owned(), "nowhere".to_owned())].into());
    let (nowhere, calm) = (Selector::ReadPreference(tags), Selector::Address(calm.clone()));
    let (own, times) = (client.clone(), Arc::clone(seen));
    thread::spawn(move || {
        let mut due = Instant::now();
        while times.goes_on() {
            let until = OperationOptions::new().with_deadline(due);
            assert!(own.check_out_with(&nowhere, until).is_err(), "no server fits");
            times.ticked(&mut due);
        }
    });
    let (own, times) = (client.clone(), Arc::clone(seen));
    thread::spawn(move || {
        while times.goes_on() {
            let Ok(mut connection) = own.check_out(&calm) else { return };
            if connection.command("admin", &rawdoc! { "ping": 1 }).is_ok() {
                times.answered();
            }
            drop(connection);
            thread::sleep(TICK);
        }
    });
    client
}

struct Figures {
    /// Of a hundred timers, 99 were no later.
    late: Duration,
    /// The longest time without an answer to a command.
    silence: Duration,
    checks: usize,
    /// KiB when a third of the load was over, and at its end.
    memory: [u64; 2],
    close: Duration,
    /// How long threads and open files of the client were left after that.
    left: Duration,
}

impl Figures {
    /// Whether nothing kept the application from its work.
    fn are_good(&self, late: Duration) -> bool {
        let [before, after] = self.memory;
        self.late <= late
            && self.silence < Duration::from_millis(500)
            // Far fewer than are streamed: each of three twenty times and ten times a second.
            && self.checks < 300
            && after < before + 4_096
            && self.close < Duration::from_secs(5)
            && self.left < Duration::from_millis(100)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { late, silence, checks, memory: [before, after], close, left } = self;
        write!(f, "timers {late:.1?} late, {silence:.1?} without an answer, {checks} checks, ")?;
        write!(
            f,
            "{before} KiB and then {after}, closed in {close:.1?}, nothing left {left:.1?} later"
        )
    }
}

/// The resident memory of this process.
fn kibibytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux says it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|it| it.parse().ok()).expect("a number")
}

/// Threads that wait for the operating system to answer for names. Nothing can end them before.
fn resolvers() -> usize {
    own_threads().iter().filter(|name| *name == "cenote-resolver").count()
}

/// How many threads and open files there are, without those that wait for names: of files two each, at most.
fn resources() -> [usize; 2] {
    let files = fs::read_dir("/proc/self/fd").expect("Linux says it").count();
    let resolvers = resolvers();
    [own_threads().len().saturating_sub(resolvers), files.saturating_sub(2 * resolvers)]
}

/// Runs the application, and closes its client.
fn measure<C>(begin: impl FnOnce(&Arc<Seen>) -> C, close: impl FnOnce(C)) -> Figures {
    while resolvers() > 0 {
        thread::sleep(TICK);
    }
    let before = resources();
    let (seen, begun) = (Arc::new(Seen::default()), Instant::now());
    let running = begin(&seen);
    let memory = [LOAD / 3, LOAD * 2 / 3].map(|pause| {
        thread::sleep(pause);
        kibibytes()
    });
    let (mut times, ended) = (std::mem::take(&mut *seen.times()), Instant::now());
    seen.is_over.store(true, Ordering::Relaxed);
    close(running);
    let close = ended.elapsed();
    while std::iter::zip(resources(), before).any(|(now, before)| now > before)
        && ended.elapsed() < LEFT
    {
        thread::sleep(Duration::from_millis(1));
    }
    let left = ended.elapsed() - close;
    times.late.sort_unstable();
    let late = times.late[times.late.len() * 99 / 100];
    let moments = [&[begun], &times.answered[..], &[ended]].concat();
    let silence = moments.windows(2).map(|pair| pair[1].saturating_duration_since(pair[0])).max();
    let checks = seen.checks.load(Ordering::Relaxed);
    Figures { late, silence: silence.unwrap_or(LOAD), checks, memory, close, left }
}

/// Beside a healthy set, and beside each load.
fn compare(run: impl Fn(&str, &ServerAddress) -> Figures) {
    let set = three();
    let calm = set[0].address();
    let healthy = || {
        let figures = run(&format!("mongodb://{calm}/?replicaSet=rs0"), &calm);
        println!("{:30}: {figures}", "a healthy set");
        (10 * figures.late).max(LATE)
    };
    let mut late = healthy();
    for (what, names) in LOADS {
        let is_good = (0..5).any(|attempt| {
            // Other processes may have kept this one from its work.
            if attempt > 0 {
                late = healthy();
            }
            let calm = member(Role::Secondary);
            let hosts = restless(&calm.address(), names);
            change_set(&calm, |set| ReplicaSet { hosts: hosts.clone(), ..set });
            let uri = format!("mongodb://{}/?replicaSet=rs0", hosts.join(","));
            let figures = run(&uri, &calm.address());
            println!("{what:30}: {figures}");
            figures.are_good(late)
        });
        assert!(is_good, "{what}: see above; timers may be {late:.1?} late");
    }
}

fn on_tokio(workers: usize) {
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(workers).enable_all().build().expect("a runtime");
    let shell = Tokio::from(runtime.handle().clone());
    let _inside = runtime.enter();
    compare(|uri, calm| {
        let begin = |seen: &_| tasks(&shell, uri, calm, seen);
        measure(begin, |(client, _tasks)| runtime.block_on(client.close()))
    });
}

#[test]
fn on_tokio_with_one_worker() {
    alone(|| on_tokio(1));
}

#[test]
fn on_tokio_with_two_workers() {
    alone(|| on_tokio(2));
}

#[test]
fn on_smol() {
    alone(|| {
        compare(|uri, calm| {
            let begin = |seen: &_| tasks(&Smol, uri, calm, seen);
            measure(begin, |(client, _tasks)| smol::block_on(client.close()))
        });
    });
}

#[test]
fn on_mio() {
    alone(|| {
        compare(|uri, calm| measure(|seen| threads(uri, calm, seen), |client| client.close()));
    });
}
