//! Recording changes nothing.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cenote_core::error::ConnectionError;
use cenote_core::pool::{Event, PoolOptions};
use cenote_mio::PoolSource;
use cenote_replay::random::SplitMix;
use cenote_tokio::{Builder, PoolEvent, Recording};
use mio::Poll;

use crate::recorded::modes::{
    Order, RandomConnector, UseEnd, gone, options, order, reset, use_end,
};
use crate::recorded::on_tokio::run;
use crate::recorded::replayed::SharedBuffer;

#[test]
fn a_recorded_pool_on_tokio_tells_the_same_events() {
    for seed in 0..300 {
        let off = on_tokio(seed, |builder| builder);
        assert!(off.len() > 20, "{} events", off.len());
        assert_eq!(on_tokio(seed, |builder| builder.flight_recorder(1 << 10)), off, "seed {seed}");
        let recording = Recording::to_writer(SharedBuffer::default());
        let both = on_tokio(seed, |builder| builder.flight_recorder(1 << 10).record(recording));
        assert_eq!(both, off, "seed {seed}");
    }
}

#[test]
fn a_recorded_pool_on_mio_tells_the_same_events() {
    for seed in 0..300 {
        let off = on_mio(seed, |builder| builder);
        assert!(off.len() > 20, "{} events", off.len());
        assert_eq!(on_mio(seed, |builder| builder.flight_recorder(1 << 10)), off, "seed {seed}");
        let recording = Recording::to_writer(SharedBuffer::default());
        let both = on_mio(seed, |builder| builder.flight_recorder(1 << 10).record(recording));
        assert_eq!(both, off, "seed {seed}");
    }
}

/// The events, in their order.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn hear(&self, event: &Event<ConnectionError>, tells_times: bool) {
        let text = format!("{event:?}");
        let text = if tells_times { text } else { without_duration(&text) };
        self.0.lock().expect("no panic").push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

/// Each event with all fields, including times, which are virtual.
fn on_tokio(
    seed: u64,
    record: impl FnOnce(Builder<RandomConnector>) -> Builder<RandomConnector>,
) -> Vec<String> {
    let heard = Heard::default();
    let ear = heard.clone();
    let hear = move |event: &PoolEvent| ear.hear(&event.event, true);
    run(seed, |builder| record(builder.on_event(hear)), async |_| {});
    heard.take()
}

/// The pool is embedded in this thread, so that only the intended parts are random. Times are real,
/// and are left out.
fn on_mio(
    seed: u64,
    record: impl FnOnce(cenote_mio::Builder<RandomConnector>) -> cenote_mio::Builder<RandomConnector>,
) -> Vec<String> {
    let heard = Heard::default();
    let ear = heard.clone();
    let poll = Poll::new().expect("a poll");
    let address = "db.example.com".parse().expect("an address");
    let options = timeless(&options(seed, Duration::ZERO));
    let connector = RandomConnector::new(seed, &options, Duration::ZERO);
    let builder = cenote_mio::Builder::new(address, connector).replace_options(options);
    let builder = record(builder.on_event(move |event| ear.hear(&event.event, false)));
    let source = PoolSource::new(builder, poll.registry(), 0..64, || {}).expect("a pool");
    live(source, SplitMix(seed ^ 0xAB));
    heard.take()
}

/// The options without time limits.
fn timeless(options: &PoolOptions) -> PoolOptions {
    let mut timeless = PoolOptions::default();
    timeless.max_pool_size = options.max_pool_size;
    timeless.min_pool_size = options.min_pool_size;
    timeless.max_connecting = options.max_connecting;
    timeless.maintenance = options.maintenance;
    timeless.load_balanced = options.load_balanced;
    timeless
}

fn live(mut source: PoolSource<RandomConnector>, mut random: SplitMix) {
    let (mut asked, mut held) = (Vec::new(), Vec::new());
    source.pool().ready();
    for _ in 0..150 {
        match random.below(8) {
            0..=2 if asked.len() < 6 => asked.push(source.check_out()),
            // Its deadline has passed already.
            3 => asked.push(source.check_out_before(Instant::now())),
            4 if !asked.is_empty() => {
                let index = random.below(asked.len() as u64) as usize;
                source.cancel(asked.swap_remove(index));
            }
            5 | 6 if !held.is_empty() => {
                let index = random.below(held.len() as u64) as usize;
                let mut connection: cenote_mio::PooledConnection<RandomConnector> =
                    held.swap_remove(index);
                match use_end(&mut random) {
                    UseEnd::Breaks => connection.broken = true,
                    UseEnd::Marks => connection.mark_errored(reset()),
                    UseEnd::Nothing => {}
                }
            }
            7 => govern(&source, &mut random),
            _ => {}
        }
        source.turn();
        while let Some((request, outcome)) = source.next_ready() {
            asked.retain(|it| *it != request);
            held.extend(outcome);
        }
    }
    source.close();
}

fn govern(source: &PoolSource<RandomConnector>, random: &mut SplitMix) {
    let pool = source.pool();
    match order(random, &pool.options(), Duration::ZERO) {
        Order::Clear { interrupt, .. } => pool.clear(gone(), interrupt),
        Order::ClearService(service) => pool.clear_service(gone(), service),
        Order::SetMost(most) => {
            pool.set_options(pool.options().with_max_pool_size(most)).expect("good options");
        }
        Order::Nothing => pool.ready(),
    }
}

fn without_duration(text: &str) -> String {
    let Some((before, rest)) = text.split_once("duration: ") else { return text.to_owned() };
    let after = rest.find([',', ' ', '}']).map_or("", |at| &rest[at..]);
    format!("{before}{after}")
}
