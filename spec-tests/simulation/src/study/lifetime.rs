//! Connections that are created together, and end together.

use std::time::Duration;

use cenote_core::pool::PoolOptions;

use super::findings::{Axis, Corner, Findings, Plot, Series, Table, count, percentile, rate, time};
use super::fleet::{Callers, Fleet, PoolKind, Service, Setup};

const LIFETIME: Duration = Duration::from_secs(300);
const END: Duration = Duration::from_secs(1_000);

fn setup(options: PoolOptions, pool_kind: PoolKind, cut_at: Option<Duration>) -> Setup {
    Setup {
        clients: 200,
        options: options.with_max_pool_size(10),
        pool_kind,
        service: Service {
            workers: 8,
            opening: Duration::from_millis(20),
            operation: Duration::from_millis(1),
            backlog: 4096,
            round_trip: Duration::from_millis(1),
            slow_opening: (0, Duration::ZERO),
            varies: false,
        },
        outage: None,
        cut_at,
        freeze: None,
        callers: Callers::Each {
            callers: 10,
            think: Duration::from_secs(1),
            spread: Duration::from_secs(1),
        },
        has_labels: true,
        connect_timeout: Duration::from_secs(10),
        end: END,
    }
}

pub(super) fn run(seed: u64) -> Findings {
    let head = [
        "what ends connections",
        "begun in the busiest second",
        "waits of callers, half",
        "99.9 %",
        "longest",
        "clears",
        "errors that callers saw",
    ];
    let mut table = Table::new(head);
    let mut series = Vec::new();
    let none = PoolOptions::default;
    for (name, setup) in [
        ("the network, at 300 s sharp", setup(none(), PoolKind::Cenote, Some(LIFETIME))),
        (
            "maxLifetime 300 s, every pool with the same seed",
            setup(none().with_max_lifetime(LIFETIME), PoolKind::Cenote, None),
        ),
        (
            "maxLifetime 300 s, each pool with a seed of its own",
            setup(none().with_max_lifetime(LIFETIME), PoolKind::OwnSeeds, None),
        ),
    ] {
        let log = Fleet::live(&setup, seed);
        let second = Duration::from_secs(1);
        let points = rate(log.openings.iter().copied(), second, END);
        // The first ten seconds are left out, because they are the same for all.
        let later = points.iter().filter(|point| point.0 >= 10.0);
        let busiest = later.map(|point| point.1).fold(0.0, f64::max);
        let later = log.answers.iter().filter(|answer| answer.asked.as_secs() >= 10);
        let mut waits: Vec<_> = later.map(|it| it.answered - it.asked).collect();
        let half = time(percentile(&mut waits, 50));
        let nearly = waits.get(waits.len() * 999 / 1000).copied().unwrap_or_default();
        table.row([
            name.to_owned(),
            count(busiest as usize),
            half,
            time(nearly),
            time(percentile(&mut waits, 100)),
            count(log.clears.len()),
            count(log.failures.len()),
        ]);
        series.push(Series { name: name.to_owned(), points });
    }
    let plot = Plot {
        name: "lifetime".to_owned(),
        title: "Connections that are made within four seconds, and grow old together".to_owned(),
        across: Axis::linear("seconds"),
        up: Axis::linear("connections begun a second"),
        legend: Corner::UpperRight,
        series,
    };
    Findings { tables: vec![table], plots: vec![plot] }
}
