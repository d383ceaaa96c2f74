//! Time for a pair of check-out and check-in, beside the least that any pool has to do.

use std::sync::Mutex;

use cenote::workload::Warm;
use cenote_core::pool::PoolOptions;
use criterion::{Criterion, criterion_group, criterion_main};

fn pairs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pair");
    group.bench_function("bare: Mutex<Vec> pop and push", |bencher| {
        let idle = Mutex::new(vec![7_u64]);
        bencher.iter(|| {
            let conn = idle.lock().expect("no panic").pop().expect("one");
            idle.lock().expect("no panic").push(std::hint::black_box(conn));
        });
    });
    group.bench_function("machine, events off", |bencher| {
        let mut warm = Warm::new(PoolOptions::default());
        bencher.iter(|| warm.silent_pair());
    });
    group.bench_function("machine, events into a reused buffer", |bencher| {
        let mut warm = Warm::new(PoolOptions::default());
        let mut buffer = Vec::with_capacity(16);
        bencher.iter(|| warm.buffered_pair(&mut buffer));
    });
    group.finish();
}

criterion_group!(benches, pairs);
criterion_main!(benches);
