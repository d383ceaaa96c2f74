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

fn setup(callers: Callers, options: PoolOptions) -> Setup {
    Setup {
        clients: 1,
        options: options.with_max_pool_size(10),
        pool_kind: PoolKind::Cenote,
        service: Service {
            workers: 10,
            opening: Duration::from_millis(10),
            operation: Duration::from_millis(9),
            backlog: 4096,
            round_trip: Duration::from_millis(1),
            slow_opening: (0, Duration::ZERO),
            varies: false,
        },
        outage: None,
        cut_at: None,
        freeze: None,
        callers,
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
            let options =
                PoolOptions::default().with_wait_queue_timeout(Duration::from_millis(limit));
            let log = Fleet::live(&setup(Callers::Flow { per_second }, options), seed);
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
    let (policies, compared) = compare_policies(seed);
    Findings { tables: vec![table, policies], plots: vec![plot, compared] }
}

/// How callers come, and whether the times of operations vary.
const WAYS: [(&str, Way, bool); 4] = [
    ("independently", Way::Flow, false),
    ("independently, operations vary", Way::Flow, true),
    ("in ten bursts a second", Way::Bursts, false),
    ("in ten bursts a second, operations vary", Way::Bursts, true),
];

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Flow,
    Bursts,
}

impl Way {
    fn callers(self, per_second: fn(Duration) -> u64) -> Callers {
        match self {
            Self::Flow => Callers::Flow { per_second },
            Self::Bursts => {
                let size = u32::try_from(per_second(Duration::ZERO) / 10).unwrap_or(u32::MAX);
                Callers::Bursts { size, every: Duration::from_millis(100) }
            }
        }
    }
}

/// What a pool without a timeout does, and what its callers do when they are refused.
struct Policy {
    name: &'static str,
    pool_kind: PoolKind,
    options: fn() -> PoolOptions,
    /// Whether callers try again after a backoff, as drivers do.
    retries: bool,
}

const fn policy(name: &'static str, options: fn() -> PoolOptions) -> Policy {
    Policy { name, pool_kind: PoolKind::Cenote, options, retries: false }
}

const POLICIES: [Policy; 5] = [
    policy("none", PoolOptions::default),
    policy("at most 100 wait", || PoolOptions::default().with_max_wait_queue_size(100)),
    policy("shedding", shedding),
    Policy { retries: true, ..policy("shedding, callers retry", shedding) },
    Policy { pool_kind: PoolKind::NewestFirst, ..policy("shedding, newest first", shedding) },
];

fn shedding() -> PoolOptions {
    PoolOptions::default().with_codel_target(PoolOptions::DEFAULT_CODEL_TARGET)
}

/// No timeout is set.
fn compare_policies(seed: u64) -> (Table, Plot) {
    let head = [
        "callers come",
        "policy",
        "useful at 90 %",
        "110 %",
        "150 %",
        "200 %",
        "half of the answers at 200 % took",
        "99 %",
    ];
    let mut table = Table::new(head);
    let mut series = Vec::new();
    for (way_name, way, varies) in WAYS {
        for Policy { name, pool_kind, options, retries } in POLICIES {
            let lives = LOADS.map(|(_, per_second)| {
                let mut setup = setup(way.callers(per_second), options());
                (setup.pool_kind, setup.service.varies) = (pool_kind, varies);
                setup.has_labels = retries;
                took(&Fleet::live(&setup, seed))
            });
            let [_, at_90, _, at_110, at_150, at_200] = lives.each_ref().map(|took| useful(took));
            let [.., mut took] = lives.clone();
            table.row([
                way_name.to_owned(),
                name.to_owned(),
                at_90,
                at_110,
                at_150,
                at_200,
                time(percentile(&mut took, 50)),
                time(percentile(&mut took, 99)),
            ]);
            if way == Way::Flow && !varies {
                let places = lives.iter().enumerate();
                let points = places.map(|(place, took)| (place as f64, a_second(took))).collect();
                series.push(Series { name: name.to_owned(), points });
            }
        }
    }
    let plot = Plot {
        name: "overload-policies".to_owned(),
        title: "Answers within 500 ms without a timeout, by load and policy".to_owned(),
        across: Axis::steps("load", LOADS.map(|(name, _)| name.to_owned())),
        up: Axis::linear("answers a second"),
        legend: Corner::Right,
        series,
    };
    (table, plot)
}

/// Answers in time, a second.
fn a_second(took: &[Duration]) -> f64 {
    let in_time = took.iter().filter(|&&took| took <= PATIENCE).count();
    in_time as f64 / END.as_secs() as f64
}

/// As a part of the capacity.
fn useful(took: &[Duration]) -> String {
    format!("{:.1} %", a_second(took) * 100.0 / CAPACITY as f64)
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
