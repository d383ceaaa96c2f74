//! The same on the mio shell: threads instead of tasks. A thread gives up by a deadline, and is
//! interrupted by the shutdown of its socket.

mod work;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, io};

use cenote_endpoint::Endpoint;
use cenote_mio::Pool;
use tokio::runtime::{self, Runtime};

use self::work::Worker;
use super::chance::Chance;
use super::event_checker::EventChecker;
use super::monitor::Monitor;
use super::trouble::{self, Troubles};
use super::work::Tally;
use super::{MONITOR, Outcome, PATIENCE, Plan, WorkerKind, pool, server, sockets};

/// What a thread needs that pings: there may be a thousand of them.
const STACK: usize = 512 * 1024;

/// Works with threads, and says what came of it.
///
/// # Errors
///
/// What keeps it from beginning: no endpoint, no thread, no file for the events or the trace. A trace
/// that cannot be written to its end.
pub fn run(plan: &Plan) -> Result<Outcome, Box<dyn Error>> {
    let endpoint = Arc::new(server(Some(plan.seed))?);
    let (checker, ear) = EventChecker::new(plan.events.as_deref())?;
    let pool: Pool = pool(&endpoint, plan, ear)?;
    let began = Instant::now();
    let is_over = Arc::new(AtomicBool::new(false));

    let monitor = Monitor::new(&format!("{}&{MONITOR}", endpoint.uri()), super::PAUSE)?;
    let watch = {
        let (pool, is_over) = (pool.clone(), Arc::clone(&is_over));
        let tell = move |seen| match seen {
            Ok(()) => pool.ready(),
            Err((error, interrupt)) => pool.clear(error, interrupt),
        };
        spawn("cenote-monitor", move || monitor.watch(&is_over, tell))?
    };
    let chance = Chance::new(plan.seed);
    let trouble = make_trouble(&endpoint, chance.of(0), &is_over)?;
    let tally = Arc::new(Tally::default());
    let workers: Vec<_> = (1..=plan.tasks as u64)
        .map(|number| Worker {
            pool: pool.clone(),
            chance: chance.of(number),
            tally: Arc::clone(&tally),
            is_over: Arc::clone(&is_over),
        })
        .map(|worker| spawn("cenote-worker", move || worker.work()))
        .collect::<Result<_, _>>()?;

    thread::sleep(plan.time);
    is_over.store(true, Ordering::Relaxed);
    let troubles = end(trouble)??;
    let worked = began.elapsed();
    let hanging = finish(workers, PATIENCE)?;
    end(watch)?;
    let closed = pool.close_before(Instant::now() + PATIENCE).is_ok();
    let left = pool.snapshot().total;
    pool.end_recording()?;
    drop(pool);
    let sockets = runtime()?.block_on(sockets::settle([&endpoint.address()], PATIENCE))?;
    Ok(Outcome {
        plan: plan.clone(),
        worker_kind: WorkerKind::Threads,
        worked,
        troubles,
        counts: tally.counts(),
        hanging,
        closed,
        connections: left,
        sockets,
        threads: threads()?,
        report: checker.report()?,
    })
}

fn make_trouble(
    endpoint: &Arc<Endpoint>,
    chance: Chance,
    is_over: &Arc<AtomicBool>,
) -> io::Result<JoinHandle<io::Result<Troubles>>> {
    let (endpoint, is_over) = (Arc::clone(endpoint), Arc::clone(is_over));
    spawn("cenote-trouble", move || {
        Ok(runtime()?.block_on(trouble::make(endpoint, chance, is_over)))
    })
}

/// For what waits and is shared with the tokio shell's soak.
fn runtime() -> io::Result<Runtime> {
    runtime::Builder::new_current_thread().enable_time().build()
}

pub(crate) fn spawn<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> io::Result<JoinHandle<R>> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work)
}

fn end<R>(thread: JoinHandle<R>) -> io::Result<R> {
    thread.join().map_err(|_| io::Error::other("a thread panicked"))
}

/// Waits for the threads, for a limited time. Returns how many hang.
pub(crate) fn finish(mut threads: Vec<JoinHandle<()>>, patience: Duration) -> io::Result<u64> {
    let began = Instant::now();
    loop {
        let (ended, at_work): (Vec<_>, Vec<_>) =
            threads.into_iter().partition(JoinHandle::is_finished);
        ended.into_iter().try_for_each(end)?;
        if at_work.is_empty() || began.elapsed() > patience {
            return Ok(at_work.len() as u64);
        }
        threads = at_work;
        thread::sleep(Duration::from_millis(5));
    }
}

/// How many threads of pools this process has, as the operating system counts them, where it does.
pub(crate) fn threads() -> io::Result<Option<usize>> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let tasks = fs::read_dir("/proc/self/task")?.flatten();
    // One may end meanwhile.
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let is_ours = |name: &String| ["cenote-loop", "cenote-helper"].contains(&name.trim());
    Ok(Some(names.filter(is_ours).count()))
}
