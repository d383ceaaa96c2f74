//! A ping, there and back, by the official Rust driver and by ours, beside the bare bytes.
//!
//! The official driver keeps its wire path to itself: only a whole operation can be asked of it. So
//! what is measured is a ping round trip on one open connection, as time and as CPU time of the
//! client's thread, and what is reported is how much more than the bare bytes each takes. The
//! official driver's part holds all that it does for a command: choosing a server, its pool, a
//! session, encoding, framing, decoding. To that compares the line with our pool, which has a pool
//! and no servers and sessions; the line above it has the wire format alone.
//!
//! All in one process: the server is a thread that answers with canned bytes, every client runs on
//! the main thread, in turns.

#[path = "versus/bare_ping.rs"]
mod bare_ping;
#[path = "versus/server.rs"]
mod server;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bson::{doc, rawdoc};
use cenote_core::wire::{
    Exchange, Flags, Framer, Ids, Message, MessageLimit, MessageWriter, Progress, RequestIds,
    decompress,
};
use cenote_tokio::Pool;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use self::bare_ping::NoPayload;

const LIMIT: MessageLimit = MessageLimit::DEFAULT;
const PINGS: u32 = 5_000;
const ROUNDS: usize = 9;

/// Time and CPU time of one ping.
#[derive(Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: f64,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(run());
}

async fn run() {
    let address = server::serve();
    let uri = format!("mongodb://{address}/?directConnection=true&maxPoolSize=1");
    let mut bare = NoPayload::connect(address).await;
    let mut wire = Wire::connect(address).await;
    let pool = Pool::connect_to(&uri).expect("a pool");
    pool.ready();
    let client = mongodb::Client::with_uri_str(&uri).await.expect("a client");
    let admin = client.database("admin");

    let mut costs: [Vec<Cost>; 4] = Default::default();
    for round in 0..=ROUNDS {
        let measured = [
            measure(async || bare.ping().await).await,
            measure(async || wire.ping().await).await,
            measure(async || {
                let mut connection = pool.check_out().await.expect("a connection");
                let reply = connection.command("admin", &rawdoc! { "ping": 1 }).await;
                assert!(reply.is_ok_and(|reply| reply.get_f64("ok").is_ok_and(|ok| ok == 1.0)));
            })
            .await,
            measure(async || {
                let reply = admin.run_command(doc! { "ping": 1 }).await;
                assert!(reply.is_ok_and(|reply| reply.get_f64("ok").is_ok_and(|ok| ok == 1.0)));
            })
            .await,
        ];
        // The first round connects and warms up.
        if round > 0 {
            costs.iter_mut().zip(measured).for_each(|(costs, cost)| costs.push(cost));
        }
    }
    report(&costs);
}

/// Medians of the rounds, and of what each round cost beyond its bare bytes.
fn report(costs: &[Vec<Cost>; 4]) {
    let names =
        ["the bare bytes", "cenote: the wire format", "cenote-tokio: the pool", "official driver"];
    let bare = &costs[0];
    println!("µs a ping                  time      CPU   time beyond bare   CPU beyond bare");
    for (name, costs) in names.iter().zip(costs) {
        let beyond = |part: fn(&Cost) -> f64| {
            median(costs.iter().zip(bare).map(|(cost, bare)| part(cost) - part(bare)))
        };
        println!(
            "{name:<24} {:>7.2} {:>8.2} {:>18.2} {:>17.2}",
            median(costs.iter().map(|cost| cost.wall)),
            median(costs.iter().map(|cost| cost.cpu)),
            beyond(|cost| cost.wall),
            beyond(|cost| cost.cpu),
        );
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn measure(mut ping: impl AsyncFnMut()) -> Cost {
    let (start, cpu) = (Instant::now(), cpu_time());
    for _ in 0..PINGS {
        ping().await;
    }
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6 / f64::from(PINGS);
    Cost { wall: micros(start.elapsed()), cpu: micros(cpu_time() - cpu) }
}

/// Of this thread, as Linux counts it.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = text.split(' ').next().and_then(|it| it.parse().ok());
    Duration::from_nanos(nanoseconds.expect("the first number is the time on a CPU"))
}

/// The same through the wire format, as a connection has it.
struct Wire {
    socket: tokio::net::TcpStream,
    ids: RequestIds,
    exchange: Exchange,
    framer: Framer,
    scratch: Vec<u8>,
    out: Vec<u8>,
}

impl Wire {
    async fn connect(address: SocketAddr) -> Self {
        Self {
            socket: connect(address).await,
            ids: RequestIds::default(),
            exchange: Exchange::default(),
            framer: Framer::new(LIMIT),
            scratch: Vec::new(),
            out: Vec::new(),
        }
    }

    async fn ping(&mut self) {
        let request_id = self.ids.next_id();
        self.out.clear();
        let (ids, ping) = (Ids::request(request_id), rawdoc! { "ping": 1 });
        MessageWriter::command(&mut self.out, ids, Flags::NONE, &ping, "admin")
            .and_then(|writer| writer.finish(LIMIT))
            .expect("a command");
        self.exchange.begin_request(request_id, Flags::NONE).expect("our turn");
        self.socket.write_all(&self.out).await.expect("an open connection");
        self.exchange.request_written();
        loop {
            let count = self.socket.read(self.framer.spare()).await.expect("a reply");
            self.framer.filled(count);
            let Some(frame) = self.framer.next_frame().expect("a message") else { continue };
            let frame = decompress(frame, LIMIT, &mut self.scratch).expect("not compressed");
            let message = Message::parse(frame).expect("an OP_MSG");
            let progress = self.exchange.reply(message.header(), message.flags());
            assert_eq!(progress, Ok(Progress::Complete));
            assert!(message.body().get_f64("ok").is_ok_and(|ok| ok == 1.0));
            return;
        }
    }
}

async fn connect(address: SocketAddr) -> tokio::net::TcpStream {
    let socket = tokio::net::TcpStream::connect(address).await.expect("the server listens");
    socket.set_nodelay(true).expect("TCP");
    socket
}
