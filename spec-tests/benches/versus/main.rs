//! The shells beside other pools and beside what no pool can do without, in one process and in
//! rounds that take turns: `cargo bench -p cenote --bench versus [-- ROUNDS]`.
//!
//! The times are of this machine and this hour; the ratios to the bare limit of the same rounds are
//! what can be compared. Medians of all rounds.

mod alone;
mod bare;
mod contended;
mod pools;
mod threads;
mod waiters;

use std::time::Duration;

/// A contestant: its name, and one measured round, as time for one unit.
pub(crate) type Contestant = (&'static str, Box<dyn FnMut() -> Duration>);

fn main() {
    // `cargo bench` adds `--bench`; `cargo test` runs the binary, too, and gets one round.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let rounds = arguments.next().and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(if is_test { 1 } else { 31 });
    report("pair, alone (pool of 10, one task)", rounds, alone::contestants());
    report("pair, 64 tasks over 8 connections, two threads", rounds, contended::contestants());
    report("serve one of 10,000 waiters over 4 connections", rounds, waiters::contestants());
    report("threads: pair, alone (pool of 10)", rounds, threads::alone());
    report("threads: pair, 64 over 8 connections", rounds, threads::contended());
}

/// Lets them take turns, the first of them being the measure of all.
fn report(title: &str, rounds: usize, mut contestants: Vec<Contestant>) {
    let mut times = vec![Vec::with_capacity(rounds); contestants.len()];
    // The first round warms up, and does not count.
    for round in 0..=rounds {
        for ((_, run), times) in contestants.iter_mut().zip(&mut times) {
            let time = run();
            if round > 0 {
                times.push(time);
            }
        }
    }
    println!("{title}: medians of {rounds} rounds");
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e9
    };
    let bare = median(&mut times[0]);
    for ((name, _), times) in contestants.iter().zip(&mut times) {
        let time = median(times);
        println!("  {name:<44} {time:>9.0} ns {:>8.2}", time / bare);
    }
    println!();
}
