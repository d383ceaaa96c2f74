//! A thousand functions that are frozen between two invocations.

use std::time::Duration;

use cenote_core::pool::PoolOptions;

use super::findings::{Axis, Corner, Findings, Plot, Series, Table, count, percentile, time};
use super::fleet::{Callers, Fleet, Freeze, Log, PoolKind, Service, Setup};

const CLIENTS: u32 = 1_000;
const FROM: Duration = Duration::from_secs(30);
const TO: Duration = Duration::from_secs(630);
const APART: Duration = Duration::from_millis(5);
const END: Duration = Duration::from_secs(660);

/// What a client does about its idle connections, and its name in the table.
struct Habit {
    name: &'static str,
    options: fn(PoolOptions) -> PoolOptions,
    releases: bool,
}

const HABITS: [Habit; 3] = [
    Habit { name: "keeps them", options: |options| options, releases: false },
    Habit {
        name: "maxIdleTimeMS=60000",
        options: |options| options.with_max_idle_time(Duration::from_secs(60)),
        releases: false,
    },
    Habit { name: "release_idle()", options: |options| options, releases: true },
];

fn setup(habit: &Habit, forgets: bool) -> Setup {
    let freeze = Freeze { from: FROM, to: TO, apart: APART, releases: habit.releases, forgets };
    Setup {
        clients: CLIENTS,
        options: (habit.options)(PoolOptions::default()),
        pool_kind: PoolKind::Cenote,
        service: Service {
            workers: 8,
            opening: Duration::from_millis(4),
            operation: Duration::from_micros(500),
            backlog: 4096,
            round_trip: Duration::from_millis(4),
            slow_opening: (0, Duration::ZERO),
            varies: false,
        },
        outage: None,
        cut_at: None,
        freeze: Some(freeze),
        callers: Callers::Each {
            callers: 3,
            think: Duration::from_secs(1),
            spread: Duration::from_secs(5),
        },
        has_labels: true,
        connect_timeout: Duration::from_secs(10),
        end: END,
    }
}

pub(super) fn run(seed: u64) -> Findings {
    let head = [
        "idle connections",
        "the network",
        "sockets before",
        "while frozen",
        "after",
        "clears",
        "errors that callers saw",
        "first answer: half",
        "99 %",
        "all",
    ];
    let mut table = Table::new(head);
    let mut series = Vec::new();
    for (forgets, network) in [(false, "keeps them"), (true, "forgets them")] {
        for habit in &HABITS {
            let log = Fleet::live(&setup(habit, forgets), seed);
            table.row(row(habit.name, network, &log));
            if forgets {
                let points = log.open.iter().map(|&(at, open)| (at.as_secs_f64(), open as f64));
                series.push(Series { name: habit.name.to_owned(), points: points.collect() });
            }
        }
    }
    let plot = Plot {
        name: "freeze".to_owned(),
        title: "Sockets of 1,000 functions that are frozen from 30 s to 630 s".to_owned(),
        across: Axis::linear("seconds"),
        up: Axis::linear("sockets at the server"),
        legend: Corner::Right,
        series,
    };
    Findings { tables: vec![table], plots: vec![plot] }
}

fn row(name: &str, network: &str, log: &Log) -> [String; 10] {
    let open_at = |time: Duration| {
        let seen = log.open.iter().find(|&&(at, _)| at >= time);
        count(seen.map_or(0, |&(_, open)| open))
    };
    let mut first = vec![None; CLIENTS as usize];
    for answer in log.answers.iter().filter(|answer| answer.answered >= TO) {
        first[answer.client as usize].get_or_insert(answer.answered - answer.asked);
    }
    let mut first: Vec<_> = first.into_iter().map(|first| first.unwrap_or(END - TO)).collect();
    let [p50, p99, all] = [50, 99, 100].map(|part| percentile(&mut first, part));
    let since = |times: &[Duration]| count(times.iter().filter(|&&time| time >= FROM).count());
    let before = open_at(FROM - Duration::from_secs(1));
    [
        name.to_owned(),
        network.to_owned(),
        before,
        open_at(TO - Duration::from_secs(1)),
        open_at(END - Duration::from_secs(1)),
        since(&log.clears),
        since(&log.failures),
        time(p50),
        time(p99),
        time(all),
    ]
}
