//! Work that several threads do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Does every job, `hands` at a time at most, and gives the results in the order of the jobs.
///
/// # Panics
///
/// When a job does.
pub(super) fn work<J: Sync, R: Send>(
    jobs: &[J],
    hands: usize,
    does: impl Fn(&J) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for _ in 0..hands.min(jobs.len()) {
            scope.spawn(|| {
                loop {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(job), Some(result)) = (jobs.get(job), results.get(job)) else {
                        return;
                    };
                    let done = does(job);
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
    use super::work;

    #[test]
    fn results_keep_the_order_whoever_is_first() {
        let jobs: Vec<u64> = (0..20).rev().collect();
        for hands in [1, 3, 40] {
            let mut doubled = work(&jobs, hands, |job| job * 2);
            doubled.reverse();
            assert_eq!(doubled, (0..20).map(|job| job * 2).collect::<Vec<_>>());
        }
        assert_eq!(work(&[0; 0], 4, |job| *job), [0; 0]);
    }
}
