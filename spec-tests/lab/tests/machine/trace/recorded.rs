//! Random runs, recorded.

use cenote_core::pool::{Action, Instant, PoolState, WithoutEvents};
use cenote_core::trace::{JournalOptions, Recorder, TraceInfo, TraceWriter};
use cenote_lab::lockstep::Tagged;
use cenote_lab::random_run::RandomRun;

pub(crate) type Pool = Recorder<Tagged>;

/// A pool with payloads, before anything happened to it.
pub(crate) fn pool(run: &RandomRun) -> Pool {
    let ignore = &mut |_: Action<Tagged>| {};
    let pool = PoolState::new(Instant::ORIGIN, run.options.clone(), ignore);
    Recorder::new(pool.expect("usable options"))
}

/// Lets a run happen, and says what came of it.
pub(crate) fn play(
    run: &mut RandomRun,
    pool: &mut Pool,
    mut after: impl FnMut(&mut Pool),
) -> Vec<Vec<Action<Tagged>>> {
    let mut all = Vec::new();
    while let Some((now, input)) = run.next_tagged(pool) {
        let mut actions = Vec::new();
        // With and without events, as subscribers come and go.
        if all.len() % 7 < 4 {
            let _ = pool.handle(now, input, &mut actions);
        } else {
            let _ = pool.handle(now, input, &mut WithoutEvents(&mut actions));
        }
        all.push(actions);
        after(pool);
    }
    all
}

/// The whole run as a trace.
pub(crate) fn trace(seed: u64, steps: usize, options: JournalOptions) -> Vec<u8> {
    let mut run = RandomRun::new(seed, steps);
    let mut pool = pool(&run).with_journal(options);
    let mut writer = TraceWriter::new(Vec::new(), info());
    play(&mut run, &mut pool, |pool| drain(pool, &mut writer));
    finish(pool, writer)
}

pub(crate) fn finish(mut pool: Pool, mut writer: TraceWriter<Vec<u8>>) -> Vec<u8> {
    pool.flush();
    drain(&mut pool, &mut writer);
    writer.finish().expect("memory can be written to")
}

pub(crate) fn drain(pool: &mut Pool, writer: &mut TraceWriter<Vec<u8>>) {
    while let Some(chunk) = pool.take_chunk() {
        writer.write(&chunk).expect("memory can be written to");
        pool.give_back(chunk);
    }
}

pub(crate) fn info() -> TraceInfo {
    TraceInfo::new("db.example.com:27017").with_program("tests").with_origin(1_700_000_000_000)
}

/// Few bytes in a chunk, so that there are many.
pub(crate) fn small_chunks() -> JournalOptions {
    JournalOptions::default().with_chunk_bytes(512).with_fingerprint_every(1)
}
