//! A load that grows, and connections that are established before they are needed.

use std::time::Duration;

use cenote_core::pool::PoolOptions;

use super::findings::{Axis, Corner, Findings, Plot, Series, Table, count, percentile, time};
use super::fleet::{Callers, Fleet, Log, PoolKind, Service, Setup};

const END: Duration = Duration::from_secs(60);

/// 50 operations per second, then 100 more in each second, then 2,050.
fn grows(since: Duration) -> u64 {
    50 + 100 * since.as_secs().saturating_sub(10).min(20)
}

/// 50 operations per second, then 1,000.
fn jumps(since: Duration) -> u64 {
    if since.as_secs() < 10 { 50 } else { 1_000 }
}

type Load = (&'static str, fn(Duration) -> u64);

const LOADS: [Load; 2] = [("grows", grows), ("jumps", jumps)];

/// How long an operation takes at the server.
const OPERATIONS: [(&str, Duration); 2] =
    [("2 ms", Duration::from_millis(2)), ("200 ms", Duration::from_millis(200))];

type Policy = (&'static str, fn(PoolOptions) -> PoolOptions);

const POLICIES: [Policy; 6] = [
    ("maxConnecting 2", |options| options),
    ("maxConnecting 14", |options| options.with_max_connecting(14)),
    ("minPoolSize 500", |options| options.with_min_pool_size(500)),
    ("predictive", |options| options.with_predictive_min_pool_size(true)),
    ("maxConnecting 14, adaptive", |options| {
        options.with_max_connecting(14).with_adaptive_connecting(true)
    }),
    ("maxConnecting 14, adaptive, predictive", |options| {
        let options = options.with_max_connecting(14).with_adaptive_connecting(true);
        options.with_predictive_min_pool_size(true)
    }),
];

fn setup(per_second: fn(Duration) -> u64, operation: Duration, policy: Policy) -> Setup {
    Setup {
        clients: 1,
        options: (policy.1)(PoolOptions::default().with_max_pool_size(1_000)),
        pool_kind: PoolKind::Cenote,
        service: Service {
            workers: 1_000,
            opening: Duration::from_millis(80),
            operation,
            backlog: 4096,
            round_trip: Duration::from_millis(20),
            slow_opening: (0, Duration::ZERO),
            varies: true,
        },
        outage: None,
        cut_at: None,
        freeze: None,
        callers: Callers::Flow { per_second },
        has_labels: true,
        connect_timeout: Duration::from_secs(10),
        end: END,
    }
}

/// The load and the operations whose waits are plotted.
const PLOTTED: (&str, &str) = ("jumps", "200 ms");

pub(super) fn run(seed: u64) -> Findings {
    let mut findings = Findings::default();
    for (load, per_second) in LOADS {
        for (takes, operation) in OPERATIONS {
            let head = ["options", "99 % of the waits", "99.9 %", "longest", "connections"];
            let mut table = Table::new(head);
            let mut series = Vec::new();
            for policy in POLICIES {
                let log = Fleet::live(&setup(per_second, operation, policy), seed);
                table.row(row(policy.0, &log));
                series.push(Series { name: policy.0.to_owned(), points: longest_waits(&log) });
            }
            findings.tables.push(table);
            if (load, takes) == PLOTTED {
                findings.plots.push(plot(series));
            }
        }
    }
    findings
}

fn row(name: &str, log: &Log) -> [String; 5] {
    let mut waits: Vec<_> = log.answers.iter().map(|it| it.checked_out - it.asked).collect();
    let [p99, longest] = [99, 100].map(|part| percentile(&mut waits, part));
    let p999 = waits[waits.len() * 999 / 1000];
    [name.to_owned(), time(p99), time(p999), time(longest), count(log.openings.len())]
}

/// In each second, in milliseconds.
fn longest_waits(log: &Log) -> Vec<(f64, f64)> {
    let mut longest = vec![0.0_f64; END.as_secs() as usize];
    for answer in &log.answers {
        let wait = &mut longest[answer.asked.as_secs() as usize];
        *wait = wait.max((answer.checked_out - answer.asked).as_secs_f64() * 1e3);
    }
    let seconds = (0..).map(f64::from);
    seconds.zip(longest).skip(5).take(30).collect()
}

fn plot(series: Vec<Series>) -> Plot {
    Plot {
        name: "ahead".to_owned(),
        title: "After 10 s, 20 times the load: operations of 200 ms".to_owned(),
        across: Axis::linear("seconds"),
        up: Axis::linear("longest wait in each second, in ms"),
        legend: Corner::Right,
        series,
    }
}
