//! Clients that start without connections.

use std::time::Duration;

use cenote_core::pool::PoolOptions;

use super::findings::{Axis, Corner, Findings, Plot, Series, Table, count, percentile, time};
use super::fleet::{Callers, Fleet, Log, PoolKind, Service, Setup};

const LIMITS: [u32; 8] = [1, 2, 4, 8, 14, 16, 32, 64];
const CALLERS: u32 = 100;

fn setup(clients: u32, max_connecting: u32, adapts: bool) -> Setup {
    let options = PoolOptions::default().with_max_connecting(max_connecting);
    Setup {
        clients,
        options: if adapts { options.with_adaptive_connecting(true) } else { options },
        pool_kind: PoolKind::Cenote,
        service: Service {
            workers: 8,
            opening: Duration::from_millis(4),
            operation: Duration::from_micros(500),
            backlog: 4096,
            // Two round trips for TCP and TLS, two for hello and SCRAM.
            round_trip: Duration::from_millis(4),
            slow_opening: (0, Duration::ZERO),
            varies: false,
        },
        outage: None,
        cut_at: None,
        freeze: None,
        callers: Callers::Each {
            callers: CALLERS,
            think: Duration::from_millis(100),
            spread: Duration::ZERO,
        },
        has_labels: true,
        connect_timeout: Duration::from_secs(10),
        end: Duration::from_secs(30),
    }
}

pub(super) fn run(seed: u64) -> Findings {
    let mut findings = Findings::default();
    let mut series = Vec::new();
    for (clients, name) in [(1, "one client"), (50, "50 clients at once")] {
        let head = [
            "maxConnecting",
            "half of the callers served",
            "99 %",
            "all",
            "connections opened",
            "callers per connection",
        ];
        let mut table = Table::new(head);
        for (adapts, how) in [(false, ""), (true, ", adaptive")] {
            let mut points = Vec::new();
            for (place, limit) in LIMITS.into_iter().enumerate() {
                let log = Fleet::live(&setup(clients, limit, adapts), seed);
                let mut first = first_answers(&log, clients);
                let [p50, p99, p100] = [50, 99, 100].map(|part| percentile(&mut first, part));
                let opened = log.openings.len();
                let share = f64::from(clients * CALLERS) / opened as f64;
                table.row([
                    format!("{limit}{how}"),
                    time(p50),
                    time(p99),
                    time(p100),
                    count(opened),
                    format!("{share:.1}"),
                ]);
                points.push((place as f64, p100.as_secs_f64() * 1e3));
            }
            series.push(Series { name: format!("{name}{how}"), points });
        }
        findings.tables.push(table);
    }
    findings.plots.push(Plot {
        name: "cold-start".to_owned(),
        title: "Until each of 100 callers has had its first answer".to_owned(),
        across: Axis::steps("maxConnecting", LIMITS.map(|limit| limit.to_string())),
        up: Axis::logarithmic("milliseconds"),
        legend: Corner::Right,
        series,
    });
    findings
}

/// The time of each caller's first answer since the beginning; without an answer, the end.
fn first_answers(log: &Log, clients: u32) -> Vec<Duration> {
    let mut first = vec![None; (clients * CALLERS) as usize];
    for answer in &log.answers {
        let place = (answer.client * CALLERS + answer.caller) as usize;
        first[place].get_or_insert(answer.answered);
    }
    first.into_iter().map(|first| first.unwrap_or(Duration::from_secs(30))).collect()
}
