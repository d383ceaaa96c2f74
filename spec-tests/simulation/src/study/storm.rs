//! Ten thousand clients, and a server that restarts.

use std::time::Duration;

use cenote_core::pool::PoolOptions;

use super::findings::{Axis, Corner, Findings, Plot, Series, Table, count, percentile, rate, time};
use super::fleet::{Callers, Fleet, Log, PoolKind, Service, Setup};

const CLIENTS: u32 = 10_000;
const DOWN: Duration = Duration::from_secs(40);
const UP: Duration = Duration::from_secs(42);
const END: Duration = Duration::from_secs(120);

/// What a client does about overload, and its name in the tables.
struct Answer {
    name: &'static str,
    has_labels: bool,
    policies: fn(PoolOptions) -> PoolOptions,
}

const ANSWERS: [Answer; 4] = [
    Answer { name: "with labels", has_labels: true, policies: |options| options },
    Answer { name: "without labels", has_labels: false, policies: |options| options },
    Answer { name: "backoff", has_labels: true, policies: back_off },
    Answer {
        name: "backoff, adaptive",
        has_labels: true,
        policies: |options| back_off(options).with_adaptive_connecting(true),
    },
];

fn back_off(options: PoolOptions) -> PoolOptions {
    options.with_overload_backoff(Duration::from_millis(500))
}

/// The server's capacity is 2,000 new connections or 80,000 operations per second.
fn setup(answer: &Answer) -> Setup {
    Setup {
        clients: CLIENTS,
        options: (answer.policies)(PoolOptions::default().with_max_pool_size(10)),
        pool_kind: PoolKind::OwnSeeds,
        service: Service {
            workers: 8,
            opening: Duration::from_millis(4),
            operation: Duration::from_micros(100),
            backlog: 4096,
            round_trip: Duration::from_millis(1),
            slow_opening: (0, Duration::ZERO),
            varies: false,
        },
        outage: Some((DOWN, UP)),
        cut_at: None,
        freeze: None,
        callers: Callers::Each {
            callers: 4,
            think: Duration::from_secs(1),
            spread: Duration::from_secs(30),
        },
        has_labels: answer.has_labels,
        connect_timeout: Duration::from_secs(10),
        end: END,
    }
}

pub(super) fn run(seed: u64) -> Findings {
    let head = [
        "clients",
        "half of the clients served",
        "99 %",
        "all",
        "connections begun",
        "in vain",
        "clears",
        "errors that callers saw",
    ];
    let mut table = Table::new(head);
    let (mut answers, mut openings) = (Vec::new(), Vec::new());
    for answer in &ANSWERS {
        let log = Fleet::live(&setup(answer), seed);
        table.row(row(answer.name, &log));
        let name = answer.name.to_owned();
        let second = Duration::from_secs(1);
        let points = rate(log.answers.iter().map(|answer| answer.answered), second, END);
        answers.push(Series { name: name.clone(), points });
        let points = rate(log.openings.iter().copied(), second, END);
        openings.push(Series { name, points });
    }
    let plot = |name: &str, title: &str, up: &str, series| Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        across: Axis::linear("seconds; the server is away from 40 to 42"),
        up: Axis::linear(up),
        legend: Corner::Right,
        series,
    };
    let plots = vec![
        plot("storm-answers", "What gets done", "answers a second", answers),
        plot(
            "storm-openings",
            "What the server is asked for",
            "connections begun a second",
            openings,
        ),
    ];
    Findings { tables: vec![table], plots }
}

fn row(name: &str, log: &Log) -> [String; 8] {
    let mut first = vec![None; CLIENTS as usize];
    for answer in log.answers.iter().filter(|answer| answer.answered >= UP) {
        first[answer.client as usize].get_or_insert(answer.answered - UP);
    }
    let mut served: Vec<_> = first.iter().flatten().copied().collect();
    let all = if served.len() == first.len() {
        time(percentile(&mut served, 100))
    } else {
        format!("{} never", count(first.len() - served.len()))
    };
    // Of all clients, including those that were never served.
    served.resize(first.len(), END - UP);
    let since = |times: &[Duration]| times.iter().filter(|&&time| time >= DOWN).count();
    [
        name.to_owned(),
        time(percentile(&mut served, 50)),
        time(percentile(&mut served, 99)),
        all,
        count(since(&log.openings)),
        count(since(&log.wasted)),
        count(since(&log.clears)),
        count(since(&log.failures)),
    ]
}
