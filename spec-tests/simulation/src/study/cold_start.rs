//! Clients that start without connections.

use std::time::Duration;

use cenote_core::pool::PoolOptions;

use super::findings::{Axis, Corner, Findings, Plot, Series, Table, count, percentile, time};
use super::fleet::{Callers, Fleet, Log, PoolKind, Service, Setup};

const LIMITS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
const CALLERS: u32 = 100;

fn setup(clients: u32, max_connecting: u32) -> Setup {
    Setup {
        clients,
        options: PoolOptions::default().with_max_connecting(max_connecting),
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
    let (mut halves, mut lasts) = (Vec::new(), Vec::new());
    for clients in [1, 50] {
        let head = [
            "maxConnecting",
            "half of the callers served",
            "99 %",
            "all",
            "connections opened",
            "callers per connection",
        ];
        let mut table = Table::new(head);
        let (mut half, mut last) = (Vec::new(), Vec::new());
        for (place, limit) in LIMITS.into_iter().enumerate() {
            let log = Fleet::live(&setup(clients, limit), seed);
            let mut first = first_answers(&log, clients);
            let [p50, p99, p100] = [50, 99, 100].map(|part| percentile(&mut first, part));
            let opened = log.openings.len();
            let share = f64::from(clients * CALLERS) / opened as f64;
            table.row([
                limit.to_string(),
                time(p50),
                time(p99),
                time(p100),
                count(opened),
                format!("{share:.1}"),
            ]);
            half.push((place as f64, p50.as_secs_f64() * 1e3));
            last.push((place as f64, p100.as_secs_f64() * 1e3));
        }
        findings.tables.push(table);
        let name = if clients == 1 { "one client" } else { "50 clients at once" };
        halves.push(Series { name: format!("{name}: half of the callers"), points: half });
        lasts.push(Series { name: format!("{name}: all callers"), points: last });
    }
    halves.append(&mut lasts);
    findings.plots.push(Plot {
        name: "cold-start".to_owned(),
        title: "Until each of 100 callers has had its first answer".to_owned(),
        across: Axis::steps("maxConnecting", LIMITS.map(|limit| limit.to_string())),
        up: Axis::logarithmic("milliseconds"),
        legend: Corner::Right,
        series: halves,
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
