//! The process in which something was made, told from its forked children without a system call.

use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A process, as its forked children and their children have others. Comparing two takes a few instructions.
///
/// It sees `fork()`. What makes a process without it, such as a bare `clone` system call, `vfork` or `_Fork`, is not seen:
/// such a child must execute another program at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(pub(crate) u32);

impl Process {
    /// This process. The first call in a program makes the operating system count its forks.
    // Inlined, it made a check-out and check-in dearer, which do not ask.
    #[inline(never)]
    #[must_use]
    pub fn current() -> Self {
        static IS_COUNTED: OnceLock<bool> = OnceLock::new();
        let is_counted = *IS_COUNTED.get_or_init(count_forks);
        Self(if is_counted { FORKS.load(Ordering::Relaxed) } else { process::id() })
    }

    /// Whether this is it, and not a child.
    #[inline(never)]
    #[must_use]
    pub fn is_current(self) -> bool {
        self == Self::current()
    }
}

/// How many forks lie between this process and the one in which [`count_forks`] was called.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Whether forks are counted from now on.
#[cfg(unix)]
fn count_forks() -> bool {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    #[expect(unsafe_code, reason = "the standard library has no handlers for forks")]
    // SAFETY: the handler is a function of this program, which takes nothing and returns nothing as `pthread_atfork` expects. It
    // runs in the child, where only what is async-signal-safe is allowed: it adds to an atomic and calls nothing.
    let status = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    status == 0
}

/// There are no forks.
#[cfg(not(unix))]
const fn count_forks() -> bool {
    true
}
