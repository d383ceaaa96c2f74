//! Runs jobs on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Runs every job, at most `threads` at a time. The results are in the order of the jobs.
///
/// # Panics
///
/// If a job panics.
pub fn map<J: Sync, R: Send>(jobs: &[J], threads: usize, run: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            scope.spawn(|| {
                loop {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(job), Some(result)) = (jobs.get(job), results.get(job)) else {
                        return;
                    };
                    let done = run(job);
                    *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
                }
            });
        }
    });
    let result = |result: Mutex<Option<R>>| {
        let result = result.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.unwrap_or_else(|| unreachable!("every job is done when the threads have ended"))
    };
    results.into_iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn results_are_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..20).rev().collect();
        for threads in [1, 3, 40] {
            let mut doubled = map(&jobs, threads, |job| job * 2);
            doubled.reverse();
            assert_eq!(doubled, (0..20).map(|job| job * 2).collect::<Vec<_>>());
        }
        assert_eq!(map(&[0; 0], 4, |job| *job), [0; 0]);
    }
}
