//! The shells beside other pools and beside what no pool can do without, in one process and in
//! rounds that take turns: `cargo bench --profile compare -p cenote --bench versus [-- ROUNDS] [ROW…]`. With
//! `-- instructions [ROW…]` valgrind counts instead, and strace the system calls, for the rows that take one
//! thread; `--profile plain` is what a program has that depends on these crates.
//!
//! The figures are of this machine and this hour; the ratios to the pool made by hand, of the least
//! and of each round, are what can be compared. A row is chosen by a part of its name. With
//! `--features clients` the official driver takes part in the pings.

mod alone;
mod bare;
mod bare_ping;
mod clear;
mod contended;
mod counted;
mod measure;
mod ping;
mod pools;
mod server;
mod threads;
mod tls;
mod waiters;

use crate::measure::{Row, print_table};
use crate::waiters::Scene;

/// All rows, in the order in which they run.
fn rows() -> Vec<Row> {
    vec![
        Row::new("alone", "pair, alone (pool of 10, one task)", alone::contestants)
            .counted_in(alone::PAIRS),
        Row::new("contended-1", "pair, 64 tasks over 8 connections, one thread", || {
            contended::on_one_thread()
        })
        .counted_in(contended::UNITS),
        Row::new("contended-2", "pair, 64 tasks over 8 connections, two threads", || {
            contended::on_two_threads()
        }),
        Row::new("waiters-10000", "serve one of 10,000 waiters over 4 connections", || {
            waiters::contestants(Scene::Served(10_000))
        })
        .counted_in(10_000),
        Row::new("waiters-100000", "serve one of 100,000 waiters over 4 connections", || {
            waiters::contestants(Scene::Served(100_000))
        })
        .counted_in(100_000),
        Row::new("given-up", "one of 256 waiters, of which 240 give up", || {
            waiters::contestants(Scene::GivenUp)
        })
        .counted_in(waiters::CALLERS),
        Row::new("clear", "the caller of clear, while callers wait", clear::contestants),
        Row::new("threads-alone", "threads: pair, alone (pool of 10)", threads::alone),
        Row::new("threads-contended", "threads: pair, 64 over 8 connections", threads::contended),
        ping::row("ping-1", "check out, ping, check in over TCP: 1 task", 1, ping::plain),
        ping::row("ping-8", "check out, ping, check in over TCP: 8 tasks", 8, ping::plain),
        ping::row("ping-64", "check out, ping, check in over TCP: 64 tasks", 64, ping::plain),
        ping::row("tls-1", "check out, ping, check in over TLS: 1 task", 1, ping::secured),
        ping::row("tls-8", "check out, ping, check in over TLS: 8 tasks", 8, ping::secured),
        ping::row("tls-64", "check out, ping, check in over TLS: 64 tasks", 64, ping::secured),
        ping::row("tls-512", "check out, ping, check in over TLS: 512 tasks", 512, ping::secured),
        ping::replies("reply-1k", "a reply of 1 KB over TCP", 14, 4_800),
        ping::replies("reply-64k", "a reply of 64 KB over TCP", 900, 480),
        ping::replies("reply-16m", "a reply of 16 MB over TCP", 225_000, 1),
    ]
}

fn main() {
    if server::is_asked_to_serve() {
        return;
    }
    if counted::is_asked_for_one_scene(rows) {
        return;
    }
    // `cargo bench` adds `--bench`; `cargo test` runs the binary, too, and gets one round.
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let (numbers, mut names): (Vec<_>, Vec<_>) =
        arguments.partition(|argument| argument.parse::<usize>().is_ok());
    let counts = names.iter().any(|name| name == "instructions");
    names.retain(|name| name != "instructions");
    let rounds = numbers.last().and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(if is_test { 1 } else { 31 });
    let is_chosen =
        |row: &Row| names.is_empty() || names.iter().any(|name| row.name.contains(name.as_str()));
    let chosen: Vec<_> = rows().into_iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        let all: Vec<_> = rows().iter().map(|row| row.name).collect();
        eprintln!("no row is called {names:?}; there are {}", all.join(", "));
        std::process::exit(2);
    }
    if counts {
        return chosen.into_iter().for_each(counted::report);
    }
    let outcomes: Vec<_> = chosen.into_iter().filter_map(|row| row.report(rounds)).collect();
    print_table(&outcomes);
}
