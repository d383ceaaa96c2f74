//! When all troubles are over: everything gets well, and comes to its end.

use std::time::Duration;

use cenote_core::pool::Input;

use super::{QUICK, World};

/// How long it may take until everything is well again: many connections may be dead without anybody
/// having noticed, and each of them costs somebody a timeout.
const CALM: Duration = Duration::from_secs(600);

/// So many packets go to and fro, at most, until a connection is open.
const OPENING: u32 = 20;

impl World<'_> {
    /// Nothing goes wrong any more: the monitor sees the server, everybody is served, the minimum is
    /// there, nothing is pending.
    pub(super) fn get_well(&mut self) -> Result<(), String> {
        self.calm_down()?;
        let (since, deadline) = (self.now, self.now + CALM);
        while !self.is_well() {
            let waited = self.now.saturating_since(since);
            if !self.sees_server() && waited > self.sight() {
                return Err(format!(
                    "all has been well for {waited:?}, and the monitor sees nobody"
                ));
            }
            if self.now > deadline || !self.step()? {
                return Err(format!(
                    "all has been well for {waited:?}, and still: {}, {} wait, {} were not served",
                    self.subject.snapshot(),
                    self.books.waiting(),
                    self.served.iter().filter(|&&served| !served).count(),
                ));
            }
        }
        Ok(())
    }

    fn is_well(&self) -> bool {
        let is_quiet = self.subject.is_at_rest(QUICK * OPENING) && self.books.waiting() == 0;
        is_quiet && self.sees_server() && self.served.iter().all(|&served| served)
    }

    /// All troubles end at once.
    fn calm_down(&mut self) -> Result<(), String> {
        self.end_trouble();
        self.calm_since = Some(self.now);
        self.clock.forget_timer();
        if let Some(watch) = &mut self.watch {
            watch.clock.forget_timer();
        }
        self.finish_everything();
        self.parent_ends()
    }

    /// The pool is closed, what is out comes home, and nothing is left.
    pub(super) fn end(&mut self) -> Result<(), String> {
        if !self.is_calm() {
            self.calm_down()?;
        }
        self.is_closed = true;
        self.feed(Input::Close)?;
        self.end_watching()?;
        if self.books.waiting() != 0 {
            return Err(format!("{} wait for a closed pool", self.books.waiting()));
        }
        self.finish_everything();
        let deadline = self.now + CALM;
        while self.now < deadline && !self.is_over() && self.step()? {}
        self.books.expect_nothing()?;
        self.expect_no_link()?;
        match self.subject.snapshot().total {
            0 => Ok(()),
            total => Err(format!("{total} connections are left in a closed pool")),
        }
    }

    fn is_over(&self) -> bool {
        self.books.is_empty() && self.expect_no_link().is_ok()
    }

    /// No socket is left, at the server either, if it could hear of the end.
    fn expect_no_link(&self) -> Result<(), String> {
        let held: Vec<_> = self.network.held().collect();
        let forgotten: Vec<_> = self.network.forgotten().collect();
        if held.is_empty() && forgotten.is_empty() && self.lines.is_empty() {
            return Ok(());
        }
        let lines = self.lines.len();
        Err(format!("sockets are left: {held:?}, the server's {forgotten:?}, {lines} lines"))
    }
}
