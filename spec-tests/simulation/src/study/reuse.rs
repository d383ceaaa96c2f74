//! Which available connection is used first.

use std::time::Duration;

use cenote_core::pool::{PoolOptions, ReuseOrder};

use super::findings::{Axis, Corner, Findings, Plot, Series, Table, count, percentile, time};
use super::fleet::{Callers, Fleet, PoolKind, Service, Setup};

const END: Duration = Duration::from_secs(600);

/// The load: low, a peak of one minute, then low again.
fn load(since_begin: Duration) -> u64 {
    if (120..180).contains(&since_begin.as_secs()) { 2_000 } else { 200 }
}

fn setup(order: ReuseOrder) -> Setup {
    Setup {
        clients: 1,
        options: PoolOptions::default()
            .with_max_idle_time(Duration::from_secs(60))
            .with_reuse_order(order),
        pool_kind: PoolKind::Cenote,
        service: Service {
            workers: 200,
            opening: Duration::from_millis(10),
            operation: Duration::from_millis(20),
            backlog: 4096,
            round_trip: Duration::from_millis(1),
            slow_opening: (0, Duration::ZERO),
            varies: false,
        },
        outage: None,
        cut_at: None,
        freeze: None,
        callers: Callers::Flow { per_second: load },
        has_labels: true,
        connect_timeout: Duration::from_secs(10),
        end: END,
    }
}

pub(super) fn run(seed: u64) -> Findings {
    let head = [
        "used first",
        "connections in the peak",
        "five minutes after it",
        "opened in all",
        "rest before a use, half",
        "99 %",
        "longest",
    ];
    let mut table = Table::new(head);
    let mut series = Vec::new();
    for (name, order) in [
        ("the one that came back last", ReuseOrder::MostRecentlyUsed),
        ("the one that waited longest", ReuseOrder::LeastRecentlyUsed),
    ] {
        let log = Fleet::live(&setup(order), seed);
        let at = |second: u64| {
            let found = log.open.iter().find(|(time, _)| time.as_secs() == second);
            found.map_or(0, |&(_, open)| open)
        };
        let mut rests = log.rests.clone();
        table.row([
            name.to_owned(),
            count(at(175)),
            count(at(480)),
            count(log.openings.len()),
            time(percentile(&mut rests, 50)),
            time(percentile(&mut rests, 99)),
            time(percentile(&mut rests, 100)),
        ]);
        let points = log.open.iter().map(|&(time, open)| (time.as_secs_f64(), open as f64));
        series.push(Series { name: name.to_owned(), points: points.collect() });
    }
    let plot = Plot {
        name: "reuse".to_owned(),
        title: "Connections of a pool before, in and after a peak".to_owned(),
        across: Axis::linear("seconds; the peak is from 120 to 180"),
        up: Axis::linear("connections"),
        legend: Corner::UpperRight,
        series,
    };
    Findings { tables: vec![table], plots: vec![plot] }
}
