//! After all faults ended: the pool recovers, and is closed.

use cenote_core::pool::Input;

use super::{FAST, Transport, World};

impl<T: Transport> World<'_, T> {
    /// No more faults: the server is seen again, all callers get a connection, the pool has its minimum
    /// size, and nothing is pending.
    pub(super) fn recover(&mut self) -> Result<(), String> {
        T::begin_recovery(self)?;
        let (since, deadline) = (self.now, self.now + T::RECOVERY);
        while !self.has_recovered() {
            let waited = self.now.saturating_since(since);
            if !T::sees_server(self) && waited > T::sight(self.plan) {
                return Err(format!(
                    "{waited:?} after all faults ended the monitor sees no server"
                ));
            }
            if self.now > deadline || !self.step()? {
                return Err(format!(
                    "{waited:?} after all faults ended: {}, {} requests wait, {} callers were not served",
                    self.subject.snapshot(),
                    self.accounting.waiting(),
                    self.served.iter().filter(|&&served| !served).count(),
                ));
            }
        }
        Ok(())
    }

    fn has_recovered(&self) -> bool {
        let is_quiet = self.subject.is_at_rest(FAST * T::OPENING) && self.accounting.waiting() == 0;
        is_quiet && T::sees_server(self) && self.served.iter().all(|&served| served)
    }

    /// The pool is closed, callers return their connections, and nothing is left.
    pub(super) fn end(&mut self) -> Result<(), String> {
        T::before_close(self)?;
        self.is_closed = true;
        self.feed(Input::Close)?;
        T::after_close(self)?;
        if self.accounting.waiting() != 0 {
            return Err(format!("{} requests wait for a closed pool", self.accounting.waiting()));
        }
        self.finish_everything();
        let deadline = self.now + T::RECOVERY;
        while self.now < deadline && !self.is_over() && self.step()? {}
        self.accounting.expect_nothing()?;
        T::expect_no_socket(self)?;
        match self.subject.snapshot().total {
            0 => Ok(()),
            total => Err(format!("{total} connections are left in a closed pool")),
        }
    }

    fn is_over(&self) -> bool {
        self.accounting.is_empty() && T::expect_no_socket(self).is_ok()
    }
}
