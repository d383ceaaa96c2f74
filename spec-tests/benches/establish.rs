//! CPU time of establishing a connection, without sockets and TLS: hello, its reply, SCRAM, and what
//! PBKDF2 adds to it when its result is not cached yet.

use cenote::conversation::Conversation;
use cenote_core::connect::ScramCache;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

fn hello(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hello");
    let conversations = [
        ("no credential", Conversation::without_credential()),
        ("SCRAM-SHA-256", Conversation::scram_sha_256()),
    ];
    for (name, conversation) in &conversations {
        group.bench_function(BenchmarkId::new("to be sent", name), |bencher| {
            bencher.iter(|| conversation.hello());
        });
    }
    let (_, conversation) = &conversations[0];
    group.bench_function("and its reply", |bencher| {
        bencher.iter(|| conversation.play(&mut ScramCache::default()));
    });
    group.bench_function("and its reply, on the wire", |bencher| {
        bencher.iter(|| conversation.play_on_the_wire(&mut ScramCache::default()));
    });
    group.finish();
}

fn scram(criterion: &mut Criterion) {
    for (name, conversation) in [
        ("SCRAM-SHA-256", Conversation::scram_sha_256()),
        ("SCRAM-SHA-1", Conversation::scram_sha_1()),
    ] {
        let mut group = criterion.benchmark_group(name);
        let mut cache = ScramCache::default();
        conversation.play(&mut cache);
        group.bench_function("from hello on, PBKDF2's result known", |bencher| {
            bencher.iter(|| conversation.play(&mut cache));
        });
        group.bench_function("the same on the wire", |bencher| {
            bencher.iter(|| conversation.play_on_the_wire(&mut cache));
        });
        group.bench_function("from hello on, with PBKDF2", |bencher| {
            bencher.iter(|| conversation.play(&mut ScramCache::default()));
        });
        group.finish();
    }
}

criterion_group!(benches, hello, scram);
criterion_main!(benches);
