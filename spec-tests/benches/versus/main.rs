//! The shells beside other pools and beside what no pool can do without, in one process and in
//! rounds that take turns: `cargo bench -p cenote --bench versus [-- ROUNDS] [ROW…]`. With
//! `-- instructions [ROW…]` valgrind counts instead, for the rows that take one thread.
//!
//! The figures are of this machine and this hour; the ratios to the bare limit of the same round are
//! what can be compared. Medians of all rounds. A row is chosen by a part of its name.

mod alone;
mod bare;
mod bare_ping;
mod contended;
mod counted;
mod dead;
mod fairness;
mod measure;
mod peer;
mod ping;
mod pools;
mod server;
mod threads;
mod timeouts;
mod waiters;

use crate::measure::Row;

/// The least that is there of everything that is compared, in the order in which it is told.
fn rows() -> Vec<Row> {
    vec![
        Row::new("alone", "pair, alone (pool of 10, one task)", alone::contestants)
            .counted_in(alone::PAIRS),
        Row::new(
            "contended",
            "pair, 64 tasks over 8 connections, two threads",
            contended::contestants,
        ),
        fairness::row(),
        Row::new("waiters-10000", "serve one of 10,000 waiters over 4 connections", || {
            waiters::contestants(10_000)
        })
        .counted_in(10_000),
        Row::new("waiters-100000", "serve one of 100,000 waiters over 4 connections", || {
            waiters::contestants(100_000)
        })
        .counted_in(100_000),
        timeouts::row(),
        Row::new("dead-16", "a live waiter behind 16 that gave up", || dead::contestants(16)),
        Row::new("dead-1000", "a live waiter behind 1,000 that gave up", || {
            dead::contestants(1_000)
        }),
        Row::new("threads-alone", "threads: pair, alone (pool of 10)", threads::alone),
        Row::new("threads-contended", "threads: pair, 64 over 8 connections", threads::contended),
        ping::row("ping-1", "check out, ping, check in over TCP: 1 task over 8 connections", 1),
        ping::row("ping-8", "check out, ping, check in over TCP: 8 tasks over 8 connections", 8),
        ping::row("ping-64", "check out, ping, check in over TCP: 64 tasks over 8 connections", 64),
    ]
}

fn main() {
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
    for row in chosen {
        if counts { counted::report(row) } else { row.report(rounds) }
    }
}
