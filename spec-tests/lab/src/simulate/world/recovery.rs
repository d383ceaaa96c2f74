//! After all faults ended: the pool recovers, and is closed.

use cenote_core::pool::Input;

use super::{FAST, RECOVERY, World};

impl World<'_> {
    /// No more faults: all callers get a connection, the pool has its minimum
    /// size, and nothing is pending.
    pub(super) fn recover(&mut self) -> Result<(), String> {
        self.end_faults();
        self.finish_everything();
        let (since, deadline) = (self.now, self.now + RECOVERY);
        while !self.has_recovered() {
            let waited = self.now.saturating_since(since);
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
        let opening = if self.wire.is_some() { FAST * 4 } else { FAST };
        let is_quiet = self.subject.is_at_rest(opening) && self.accounting.waiting() == 0;
        is_quiet && self.served.iter().all(|&served| served)
    }

    /// The pool is closed, callers return their connections, and nothing is left.
    pub(super) fn end(&mut self) -> Result<(), String> {
        self.end_faults();
        self.is_closed = true;
        self.feed(Input::Close)?;
        if self.accounting.waiting() != 0 {
            return Err(format!("{} requests wait for a closed pool", self.accounting.waiting()));
        }
        self.finish_everything();
        let deadline = self.now + RECOVERY;
        while self.now < deadline && !self.accounting.is_empty() && self.step()? {}
        self.accounting.expect_nothing()?;
        match self.subject.snapshot().total {
            0 => Ok(()),
            total => Err(format!("{total} connections are left in a closed pool")),
        }
    }

    fn end_faults(&mut self) {
        self.is_recovering = true;
        self.end_trouble();
    }
}
