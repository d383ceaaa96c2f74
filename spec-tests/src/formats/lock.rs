use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose content is consistent after every statement, so that a panic elsewhere does not
/// matter.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
