//! Pairs of check-out and check-in on 1, 2, 4 … threads that share one pool:
//! `cargo bench --profile compare -p cenote --bench threads [-- THREADS]`. Up to as many threads as the
//! computer has cores, unless the command line says how many.
//!
//! A pool has as many connections as threads, so no thread waits for a connection: what is measured
//! is how long they wait for each other at the pool's lock. The first table is the worst case, pairs
//! with nothing in between. In the second, each thread works for 10 µs while it has a connection,
//! which is less than the fastest operation on a server takes.

#[path = "versus/bare.rs"]
#[expect(dead_code, reason = "shared with another benchmark, which uses all of it")]
mod bare;
#[path = "versus/peer.rs"]
mod peer;
#[path = "versus/pools.rs"]
#[expect(dead_code, reason = "shared with another benchmark, which uses all of it")]
mod pools;

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use crate::bare::HandMade;
use crate::peer::Peer;

/// What a thread does while it has a connection, and how many pairs it makes in a round.
struct Load {
    title: &'static str,
    work: Duration,
    pairs: u32,
}

const LOADS: [Load; 2] = [
    Load { title: "nothing in between", work: Duration::ZERO, pairs: 50_000 },
    Load { title: "10 µs of work in between", work: Duration::from_micros(10), pairs: 1_000 },
];

/// Makes the pairs of a load on this thread, once all threads have come to the barrier, and returns
/// when it began.
type Contestant = Box<dyn Fn(&Barrier, &Load) -> Instant + Sync>;

fn main() {
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let arguments: Vec<_> = std::env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let given = arguments.iter().find_map(|argument| argument.parse().ok());
    let (most, rounds) = if is_test { (2, 1) } else { (given.unwrap_or(cores), 15) };
    let mut threads: Vec<_> = (0..).map(|power| 1 << power).take_while(|&it| it < most).collect();
    threads.push(most);
    println!(
        "Million pairs a second on {cores} cores, the most of {rounds} rounds that take turns"
    );
    for load in LOADS {
        print(load.title, &threads, &measure(&load, &threads, rounds));
    }
}

fn contestants(connections: usize) -> Vec<(&'static str, Contestant)> {
    let runtime = runtime();
    let count = u32::try_from(connections).expect("threads of one computer");
    let r2d2 = pools::r2d2(count);
    let mut all = vec![
        ("semaphore and mutex, by hand", on(HandMade::new(count.into()))),
        ("cenote", on(runtime.block_on(pools::cenote(pools::plain(count), false)))),
        ("cenote, timed", on(runtime.block_on(pools::cenote(pools::timed(count), false)))),
        ("deadpool", on(runtime.block_on(pools::deadpool(connections, None)))),
        ("bb8", on(runtime.block_on(pools::bb8(count, None)))),
    ];
    all.push((
        "r2d2",
        Box::new(move |start, load| {
            let began = begin(start);
            for _ in 0..load.pairs {
                let held = r2d2.get();
                busy(load.work);
                drop(black_box(held));
            }
            began
        }),
    ));
    all
}

fn on<P: Peer>(pool: P) -> Contestant {
    Box::new(move |start, load| {
        runtime().block_on(async {
            let began = begin(start);
            for _ in 0..load.pairs {
                let held = pool.take().await;
                busy(load.work);
                drop(black_box(held));
            }
            began
        })
    })
}

fn begin(start: &Barrier) -> Instant {
    start.wait();
    Instant::now()
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn busy(work: Duration) {
    if work > Duration::ZERO {
        let began = Instant::now();
        while began.elapsed() < work {}
    }
}

/// For each contestant, million pairs a second by number of threads.
fn measure(load: &Load, threads: &[usize], rounds: usize) -> Vec<(&'static str, Vec<f64>)> {
    let mut measured: Vec<(&'static str, Vec<f64>)> = Vec::new();
    for &count in threads {
        let contestants = contestants(count);
        let mut most = vec![0.0; contestants.len()];
        for _ in 0..rounds {
            for ((_, contestant), most) in contestants.iter().zip(&mut most) {
                *most = f64::max(*most, round(contestant, load, count));
            }
        }
        for (place, ((name, _), most)) in contestants.iter().zip(most).enumerate() {
            if measured.len() == place {
                measured.push((name, Vec::new()));
            }
            measured[place].1.push(most);
        }
    }
    measured
}

fn round(contestant: &Contestant, load: &Load, threads: usize) -> f64 {
    let start = Barrier::new(threads);
    let times = thread::scope(|scope| {
        let run = || (contestant(&start, load), Instant::now());
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        all.into_iter().map(|it| it.join().expect("no panic")).collect::<Vec<_>>()
    });
    let began = times.iter().map(|(began, _)| *began).min().expect("a thread");
    let ended = times.iter().map(|(_, ended)| *ended).max().expect("a thread");
    let pairs = threads as f64 * f64::from(load.pairs);
    pairs / (ended - began).as_secs_f64() / 1e6
}

/// As a table in Markdown.
fn print(title: &str, threads: &[usize], measured: &[(&str, Vec<f64>)]) {
    println!("\n| {title} |{}", cells(threads.iter().map(|count| format!("on {count}"))));
    println!("|---|{}", "---|".repeat(threads.len()));
    for (name, numbers) in measured {
        println!("| {name} |{}", cells(numbers.iter().map(|number| format!("{number:.3}"))));
    }
}

fn cells(texts: impl Iterator<Item = String>) -> String {
    texts.map(|text| format!(" {text} |")).collect()
}
