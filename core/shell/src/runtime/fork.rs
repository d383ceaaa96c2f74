//! A child process that was forked from the one that made the pool.

use thiserror::Error;

/// Why a pool cannot be used in a child process, or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ForkError {
    /// A pool needs a runtime to live in.
    #[error("there is no runtime here: call it in the child's own runtime")]
    NoRuntime,
    /// The runtime's queues are the parent's, too.
    #[error("this runtime is the parent's: make another one in the child")]
    InheritedRuntime,
    /// The pool does not reset itself on this runtime.
    #[error("the pool is the parent process's: call reset_after_fork first")]
    NotReset,
    /// A thread that used the pool at the moment of the fork does not exist in the child, and cannot
    /// release the pool's lock.
    #[error(
        "another thread used the pool at the moment of the fork, and its lock is held for ever: \
         fork when no thread uses the pool, or make a new pool in the child"
    )]
    InUseAtFork,
}
