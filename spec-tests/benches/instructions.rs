//! Counts instructions under callgrind: the same numbers on every run, however busy the machine.
//!
//! Each scene runs twice in a process of its own, with n and with 2n repetitions; the difference
//! divided by n is what one repetition costs, free of set-up.

use std::hint::black_box;
use std::time::Duration;

use bson::spec::BinarySubtype;
use bson::{Binary, RawArrayBuf, RawDocument, RawDocumentBuf, Timestamp, rawdoc};

use cenote::conversation::Conversation;
use cenote::workload::{self, Busy, Crowd, OnSocket, Recorded, Warm, WarmOnMio, WarmOnTokio};
use cenote_core::connect::ScramCache;
use cenote_core::error::CommandError;
use cenote_core::pool::{Maintenance, PoolOptions};
use cenote_core::uri::ConnectionString;
use cenote_core::wire::{Channel, Flags, Ids, MessageLimit, MessageWriter};
use cenote_endpoint::{Endpoint, ListenOptions, Settings};

const HOUR: Duration = Duration::from_secs(3600);

/// Name, repetitions, most instructions allowed for each (none: no target), and the scene.
type Scene = (&'static str, u64, Option<u64>, fn(u64));

const SCENES: &[Scene] = &[
    ("warm pair, events off", 10_000, Some(290), |n| {
        let mut warm = Warm::new(PoolOptions::default());
        (0..n).for_each(|_| warm.silent_pair());
    }),
    ("warm pair, idle time and wait timeout", 10_000, Some(305), |n| {
        let options = PoolOptions::default().with_max_idle_time(HOUR).with_wait_queue_timeout(HOUR);
        let mut warm = Warm::new(options);
        (0..n).for_each(|_| warm.timed_pair());
    }),
    ("warm pair, events into a reused buffer", 10_000, Some(480), |n| {
        let mut warm = Warm::new(PoolOptions::default());
        let mut buffer = Vec::with_capacity(16);
        (0..n).for_each(|_| warm.buffered_pair(&mut buffer));
    }),
    ("warm pair at once, events off", 10_000, Some(240), |n| {
        let mut warm = Warm::new(PoolOptions::default());
        (0..n).for_each(|_| warm.silent_pair_at_once());
    }),
    ("warm pair at once, events into a reused buffer", 10_000, Some(405), |n| {
        let mut warm = Warm::new(PoolOptions::default());
        let mut buffer = Vec::with_capacity(16);
        (0..n).for_each(|_| warm.buffered_pair_at_once(&mut buffer));
    }),
    ("warm pair, recorder off", 10_000, Some(320), |n| {
        let mut recorded = Recorded::new(PoolOptions::default(), None);
        (0..n).for_each(|_| recorded.timed_pair());
    }),
    ("warm pair, flight recorder on", 10_000, Some(375), |n| {
        let mut recorded = Recorded::new(PoolOptions::default(), Some(64 << 10));
        (0..n).for_each(|_| recorded.timed_pair());
    }),
    ("pair through cenote-tokio, events off", 10_000, Some(455), |n| {
        WarmOnTokio::new(untimed(), false).pairs(n);
    }),
    ("pair through cenote-tokio, timed", 10_000, Some(665), |n| {
        WarmOnTokio::new(timed(), false).pairs(n);
    }),
    ("pair through cenote-tokio, timed, counted", 10_000, Some(1_185), |n| {
        WarmOnTokio::new(timed(), true).pairs(n);
    }),
    ("pair through cenote-tokio, recorded", 10_000, Some(625), |n| {
        WarmOnTokio::with_flight_recorder(untimed(), FLIGHT_RECORDER).pairs(n);
    }),
    ("pair through cenote-tokio, timed, recorded", 10_000, Some(815), |n| {
        WarmOnTokio::with_flight_recorder(timed(), FLIGHT_RECORDER).pairs(n);
    }),
    ("pair through cenote-tokio, not watched", 10_000, Some(455), |n| {
        WarmOnTokio::inspectable(untimed()).0.pairs(n);
    }),
    ("pair through cenote-tokio, watched", 10_000, Some(610), |n| {
        let (warm, _inspector) = WarmOnTokio::watched(untimed());
        warm.pairs(n);
    }),
    ("pair through cenote-mio, events off", 10_000, Some(385), |n| {
        WarmOnMio::new(untimed(), false).pairs(n);
    }),
    ("pair through cenote-mio, timed", 10_000, Some(595), |n| {
        WarmOnMio::new(timed(), false).pairs(n);
    }),
    ("pair through cenote-mio, timed, counted", 10_000, Some(1_160), |n| {
        WarmOnMio::new(timed(), true).pairs(n);
    }),
    ("pair with a socket through cenote-tokio", 10_000, Some(630), |n| on_tokio::<true>(n)),
    ("the same, not looked at: pair, cenote-tokio", 10_000, None, |n| on_tokio::<false>(n)),
    ("pair with a socket through cenote-mio", 10_000, Some(590), |n| on_mio::<true>(n)),
    ("the same, not looked at: pair, cenote-mio", 10_000, None, |n| on_mio::<false>(n)),
    ("pair of 64 tasks over 8 connections", 12_800, Some(1_760), |n| {
        workload::share_on_tokio(untimed().with_max_pool_size(8), 64, n);
    }),
    ("pair of 64 tasks over 8 connections, timed", 12_800, Some(2_180), |n| {
        workload::share_on_tokio(timed().with_max_pool_size(8), 64, n);
    }),
    ("enqueue one of 1,000", 1_000, None, |n| enqueue(n)),
    ("enqueue one of 10,000", 10_000, None, |n| enqueue(n)),
    ("enqueue one of 100,000", 100_000, None, |n| enqueue(n)),
    ("enqueue one of 1,000,000", 1_000_000, None, |n| enqueue(n)),
    ("enqueue and serve one of 1,000", 1_000, None, |n| enqueue_and_serve(n)),
    ("enqueue and serve one of 10,000", 10_000, None, |n| enqueue_and_serve(n)),
    ("enqueue and serve one of 100,000", 100_000, None, |n| enqueue_and_serve(n)),
    ("enqueue and serve one of 1,000,000", 1_000_000, None, |n| enqueue_and_serve(n)),
    ("cancel one of 1,000", 1_000, None, |n| cancel_among(1_000, n)),
    ("cancel one of 10,000", 1_000, None, |n| cancel_among(10_000, n)),
    ("cancel one of 100,000", 1_000, None, |n| cancel_among(100_000, n)),
    ("cancel one of 1,000,000", 1_000, None, |n| cancel_among(1_000_000, n)),
    ("enqueue and time out one of 1,000", 1_000, None, |n| time_out(n)),
    ("enqueue and time out one of 10,000", 10_000, None, |n| time_out(n)),
    ("enqueue and time out one of 100,000", 100_000, None, |n| time_out(n)),
    ("enqueue and time out one of 1,000,000", 1_000_000, None, |n| time_out(n)),
    ("enqueue and clear one of 1,000", 1_000, None, |n| clear(n)),
    ("enqueue and clear one of 10,000", 10_000, None, |n| clear(n)),
    ("enqueue and clear one of 100,000", 100_000, None, |n| clear(n)),
    ("enqueue and clear one of 1,000,000", 1_000_000, None, |n| clear(n)),
    ("prune one of 1,000 connections", 250, None, |n| prune_among(1_000, n)),
    ("prune one of 10,000 connections", 250, None, |n| prune_among(10_000, n)),
    ("prune one of 100,000 connections", 250, None, |n| prune_among(100_000, n)),
    ("exchange: a ping", 10_000, Some(1_805), |n| exchange(&rawdoc! { "ok": 1.0 }, n)),
    ("exchange: a ping of a replica set", 10_000, Some(3_120), |n| {
        exchange(&of_a_replica_set(), n);
    }),
    ("exchange: a reply of 64 KB", 1_000, Some(552_000), |n| {
        let batch: RawArrayBuf =
            (0..1000).map(|id| rawdoc! { "_id": id, "name": "x".repeat(40) }).collect();
        let cursor = rawdoc! { "id": 0_i64, "ns": "shop.orders", "firstBatch": batch };
        exchange(&rawdoc! { "cursor": cursor, "ok": 1.0 }, n);
    }),
    ("establish: hello to be sent", 1_000, None, |n| {
        let conversation = Conversation::without_credential();
        (0..n).for_each(|_| assert_ne!(conversation.hello(), 0));
    }),
    ("establish: hello and its reply", 1_000, None, |n| {
        play(&Conversation::without_credential(), n);
    }),
    ("establish: SCRAM-SHA-256, result known", 1_000, None, |n| {
        play(&Conversation::scram_sha_256(), n);
    }),
    ("establish: SCRAM-SHA-1, result known", 1_000, None, |n| {
        play(&Conversation::scram_sha_1(), n);
    }),
    ("establish: SCRAM-SHA-256 on the wire", 1_000, None, |n| {
        let (conversation, mut cache) = (Conversation::scram_sha_256(), ScramCache::default());
        (0..n).for_each(|_| assert_ne!(conversation.play_on_the_wire(&mut cache), 0));
    }),
    ("establish: SCRAM-SHA-256 with PBKDF2", 10, None, |n| {
        let conversation = Conversation::scram_sha_256();
        (0..n).for_each(|_| assert_ne!(conversation.play(&mut ScramCache::default()), 0));
    }),
];

/// So little that it turns over within a scene.
const FLIGHT_RECORDER: usize = 64 << 10;

/// With nothing that needs the time.
fn untimed() -> PoolOptions {
    PoolOptions::default().with_maintenance(Maintenance::Never)
}

/// With an idle time and a limit for waiting, as services have them.
fn timed() -> PoolOptions {
    PoolOptions::default().with_max_idle_time(HOUR).with_wait_queue_timeout(HOUR)
}

/// Pairs of a connection to an endpoint, which the pool looks at before it hands it out if `LOOKS`.
fn on_tokio<const LOOKS: bool>(n: u64) {
    let (_endpoint, uri) = endpoint();
    let connector =
        OnSocket::<_, LOOKS>(cenote_tokio::MongoConnector::new(&uri).expect("no files"));
    let builder = cenote_tokio::Builder::new(uri.hosts[0].clone(), connector);
    WarmOnTokio::start(builder.replace_options(untimed())).pairs(n);
}

/// As [`on_tokio`].
fn on_mio<const LOOKS: bool>(n: u64) {
    let (_endpoint, uri) = endpoint();
    let connector = OnSocket::<_, LOOKS>(cenote_mio::MongoConnector::new(&uri).expect("no files"));
    let builder = cenote_mio::Builder::new(uri.hosts[0].clone(), connector);
    WarmOnMio::start(builder.replace_options(untimed())).pairs(n);
}

fn endpoint() -> (Endpoint, ConnectionString) {
    let endpoint = Endpoint::start(Settings::default(), ListenOptions::default());
    let endpoint = endpoint.expect("an endpoint");
    let uri = ConnectionString::parse(&endpoint.uri()).expect("a connection string");
    (endpoint, uri)
}

/// A command and its reply, without a socket: written, read and judged.
fn exchange(reply: &RawDocument, n: u64) {
    let (mut channel, mut answer) = (Channel::new(), Vec::new());
    let ids = Ids { request_id: 7, response_to: 0 };
    let message = MessageWriter::new(&mut answer, ids, Flags::NONE, reply);
    message.finish(MessageLimit::DEFAULT).expect("small");
    let ping = rawdoc! { "ping": 1 };
    for request in 1..=n as i32 {
        channel.begin(&ping, Some("admin"), Flags::NONE).expect("its turn");
        assert!(black_box(channel.outgoing()).ends_with(b"admin\0\0"));
        channel.written();
        answer[8..12].copy_from_slice(&request.to_le_bytes());
        let mut rest = &answer[..];
        let reply = loop {
            if let Some(reply) = channel.reply().expect("a reply") {
                break reply;
            }
            let spare = channel.spare();
            let count = spare.len().min(rest.len());
            spare[..count].copy_from_slice(&rest[..count]);
            channel.filled(count);
            rest = &rest[count..];
        };
        assert_eq!(CommandError::from_reply(&reply), None);
    }
}

fn of_a_replica_set() -> RawDocumentBuf {
    let time = Timestamp { time: 1, increment: 2 };
    let hash = Binary { subtype: BinarySubtype::Generic, bytes: vec![0; 20] };
    let signature = rawdoc! { "hash": hash, "keyId": 0_i64 };
    let cluster_time = rawdoc! { "clusterTime": time, "signature": signature };
    rawdoc! { "ok": 1.0, "$clusterTime": cluster_time, "operationTime": time }
}

/// With the result of PBKDF2 from the first time.
fn play(conversation: &Conversation, n: u64) {
    let mut cache = ScramCache::default();
    (0..n).for_each(|_| assert_ne!(conversation.play(&mut cache), 0));
}

fn enqueue(n: u64) {
    Busy::new(PoolOptions::default().with_wait_queue_timeout(HOUR)).enqueue(n);
}

fn enqueue_and_serve(n: u64) {
    let mut busy = Busy::new(PoolOptions::default().with_wait_queue_timeout(HOUR));
    busy.enqueue(n);
    busy.serve(n);
}

/// Cancels `n` of `among`, spread over the queue.
fn cancel_among(among: u64, n: u64) {
    let mut busy = Busy::new(PoolOptions::default().with_wait_queue_timeout(HOUR));
    busy.enqueue(2 * among);
    (1..=n).for_each(|i| busy.cancel(i * 7919 % (2 * among)));
}

fn time_out(n: u64) {
    let mut busy = Busy::new(PoolOptions::default().with_wait_queue_timeout(HOUR));
    busy.enqueue(n);
    busy.time_out_all();
}

fn clear(n: u64) {
    let mut busy = Busy::new(PoolOptions::default().with_wait_queue_timeout(HOUR));
    busy.enqueue(n);
    busy.clear();
}

fn prune_among(among: u64, n: u64) {
    Crowd::new(among, HOUR).prune(n, HOUR);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, "--scene", name, n] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        let scene = SCENES.iter().find(|scene| scene.0 == name).expect("a scene of this program");
        return (scene.3)(n.parse().expect("a number"));
    }
    for (what, bytes) in workload::sizes() {
        println!("{:<45} {bytes:>8} bytes", format!("size of an {what}"));
    }
    let filter = arguments.iter().skip(1).find(|argument| !argument.starts_with("--"));
    let mut missed = false;
    for &(name, n, at_most, _) in SCENES {
        if filter.is_some_and(|filter| !name.contains(filter.as_str())) {
            continue;
        }
        let each = (count(name, 2 * n) - count(name, n)) / n;
        let target = at_most.map_or(String::new(), |at_most| format!("  (at most {at_most})"));
        println!("{name:<45} {each:>8} instructions{target}");
        missed |= at_most.is_some_and(|at_most| each > at_most);
    }
    std::process::exit(i32::from(missed));
}

/// All instructions of a process that plays the scene with `n` repetitions.
fn count(name: &str, n: u64) -> u64 {
    workload::instructions_of(&["--scene", name, &n.to_string()])
}
