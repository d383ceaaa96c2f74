//! A caller for which a connection is opened: does it wait for that one, or take what comes first?

use std::time::Duration;

use cenote_core::pool::PoolOptions;

use super::findings::{Axis, Corner, Findings, Plot, Series, Table, percentile, time};
use super::fleet::{Callers, Fleet, PoolKind, Service, Setup};
use crate::replay::random::SplitMix;

/// The number of empty pools.
const RUNS: u32 = 200;
const END: Duration = Duration::from_secs(60);
const PARTS: [usize; 9] = [10, 25, 50, 75, 90, 95, 98, 99, 100];

fn setup(pool_kind: PoolKind, slow: Duration) -> Setup {
    Setup {
        clients: 1,
        options: PoolOptions::default().with_max_pool_size(20),
        pool_kind,
        service: Service {
            workers: 64,
            opening: Duration::from_millis(20),
            operation: Duration::from_millis(5),
            backlog: 4096,
            round_trip: Duration::from_millis(1),
            slow_opening: (10, slow),
            varies: false,
        },
        outage: None,
        cut_at: None,
        freeze: None,
        // One burst at a pool without connections, where the two kinds of pools differ.
        callers: Callers::Bursts { size: 40, every: END },
        has_labels: true,
        connect_timeout: Duration::from_secs(10),
        end: END,
    }
}

pub(super) fn run(seed: u64) -> Findings {
    let head = [
        "opening",
        "a request that starts a connection",
        "half of the waits",
        "90 %",
        "99 %",
        "longest",
        "connections opened in each",
    ];
    let mut table = Table::new(head);
    let mut series = Vec::new();
    let openings =
        [("20 ms", Duration::ZERO), ("20 ms, one in ten a second more", Duration::from_secs(1))];
    for (opening, slow) in openings {
        for (name, pool_kind) in [
            ("waits for that one", PoolKind::Cenote),
            ("takes what comes first", PoolKind::Unchained),
        ] {
            let mut waits = Vec::new();
            let mut opened = 0;
            let mut seeds = SplitMix(seed);
            for _ in 0..RUNS {
                let log = Fleet::live(&setup(pool_kind, slow), seeds.number());
                waits.extend(log.answers.iter().map(|answer| answer.checked_out - answer.asked));
                opened += log.openings.len();
            }
            let [half, most, nearly, longest] =
                [50, 90, 99, 100].map(|part| time(percentile(&mut waits, part)));
            table.row([
                opening.to_owned(),
                name.to_owned(),
                half,
                most,
                nearly,
                longest,
                format!("{:.1}", opened as f64 / f64::from(RUNS)),
            ]);
            if !slow.is_zero() {
                let points = PARTS.into_iter().enumerate();
                let points = points.map(|(place, part)| {
                    (place as f64, percentile(&mut waits, part).as_secs_f64() * 1e3)
                });
                series.push(Series { name: name.to_owned(), points: points.collect() });
            }
        }
    }
    let plot = Plot {
        name: "chained".to_owned(),
        title: "Waits of 40 callers before an empty pool, one opening in ten slow".to_owned(),
        across: Axis::steps(
            "so many hundredths wait no longer",
            PARTS.map(|part| part.to_string()),
        ),
        up: Axis::logarithmic("milliseconds"),
        legend: Corner::UpperLeft,
        series,
    };
    Findings { tables: vec![table], plots: vec![plot] }
}
