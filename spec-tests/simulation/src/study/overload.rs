//! More load than the server can serve.

use std::time::Duration;

use cenote_core::pool::PoolOptions;

use super::findings::{Axis, Corner, Findings, Plot, Series, Table, count, percentile, time};
use super::fleet::{Callers, Fleet, Log, PoolKind, Service, Setup};

const END: Duration = Duration::from_secs(60);

/// How long an answer is useful to a caller.
const PATIENCE: Duration = Duration::from_millis(500);

/// Ten connections with 10 ms per operation: 1000 operations per second.
const CAPACITY: u64 = 1_000;

type Load = (&'static str, fn(Duration) -> u64);

const LOADS: [Load; 6] = [
    ("50 %", |_| CAPACITY / 2),
    ("90 %", |_| CAPACITY * 9 / 10),
    ("100 %", |_| CAPACITY),
    ("110 %", |_| CAPACITY * 11 / 10),
    ("150 %", |_| CAPACITY * 3 / 2),
    ("200 %", |_| CAPACITY * 2),
];

fn setup(per_second: fn(Duration) -> u64, limit: Duration) -> Setup {
    Setup {
        clients: 1,
        options: PoolOptions::default().with_max_pool_size(10).with_wait_queue_timeout(limit),
        pool_kind: PoolKind::Cenote,
        service: Service {
            workers: 10,
            opening: Duration::from_millis(10),
            operation: Duration::from_millis(9),
            backlog: 4096,
            round_trip: Duration::from_millis(1),
            slow_opening: (0, Duration::ZERO),
        },
        outage: None,
        cut_at: None,
        callers: Callers::Flow { per_second },
        has_labels: true,
        connect_timeout: Duration::from_secs(10),
        end: END,
    }
}

pub(super) fn run(seed: u64) -> Findings {
    let head = [
        "waitQueueTimeoutMS",
        "load",
        "answers in time, a second",
        "too late",
        "refused",
        "half of the answers took",
        "99 %",
    ];
    let mut table = Table::new(head);
    let mut series = Vec::new();
    for limit in [0, 2_000, 400, 100] {
        let name = if limit == 0 { "none".to_owned() } else { limit.to_string() };
        let mut points = Vec::new();
        for (place, (load, per_second)) in LOADS.into_iter().enumerate() {
            let log = Fleet::live(&setup(per_second, Duration::from_millis(limit)), seed);
            let took = took(&log);
            let in_time = took.iter().filter(|&&took| took <= PATIENCE).count();
            let seconds = END.as_secs() as usize;
            points.push((place as f64, in_time as f64 / seconds as f64));
            table.row(row(&name, load, &log, took));
        }
        let name = if limit == 0 { "no limit".to_owned() } else { format!("{limit} ms") };
        series.push(Series { name, points });
    }
    let plot = Plot {
        name: "overload".to_owned(),
        title: "Answers within 500 ms, by load and waitQueueTimeoutMS".to_owned(),
        across: Axis::steps("load", LOADS.map(|(name, _)| name.to_owned())),
        up: Axis::linear("answers a second"),
        legend: Corner::Right,
        series,
    };
    Findings { tables: vec![table], plots: vec![plot] }
}

fn took(log: &Log) -> Vec<Duration> {
    log.answers.iter().map(|answer| answer.answered - answer.asked).collect()
}

fn row(limit: &str, load: &str, log: &Log, mut took: Vec<Duration>) -> [String; 7] {
    let seconds = END.as_secs() as usize;
    let in_time = took.iter().filter(|&&took| took <= PATIENCE).count();
    [
        limit.to_owned(),
        load.to_owned(),
        count(in_time / seconds),
        count((took.len() - in_time) / seconds),
        count(log.failures.len() / seconds),
        time(percentile(&mut took, 50)),
        time(percentile(&mut took, 99)),
    ]
}
