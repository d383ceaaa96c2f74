//! Holds what a machine tells to the rules about events.

use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::pool::{Action, Event, Input, Instant, Maintenance, PoolOptions};

use super::tagged::Tagged;
use crate::check::{Checker, Line};

/// Everything that was told so far, as its judge remembers it.
pub(super) struct Story {
    address: ServerAddress,
    checker: Checker,
    /// Whether there was ever nobody to tidy up. Then what lay there when the pool was cleared may yet
    /// be closed by the peer, which looks as if SDAM had heard of it too late.
    was_untidy: bool,
}

impl Default for Story {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "a name without anything odd in it")]
        let address = "pool".parse().expect("an address");
        Self { address, checker: Checker::default(), was_untidy: false }
    }
}

impl Story {
    /// There is a pool with these options.
    pub(super) fn begins(&mut self, options: &PoolOptions) {
        self.look_at(options);
        let options = Box::new(options.clone());
        let created = Event::<String>::ConnectionPoolCreated { options };
        self.checker.tell(&Line::of(&created, &self.address, Duration::ZERO));
    }

    /// What was told of an input.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, in words.
    pub(super) fn goes_on(
        &mut self,
        input: &Input<Tagged>,
        actions: &[Action<Tagged>],
        now: Instant,
    ) -> Result<(), String> {
        if let Input::SetOptions { options } = input {
            self.look_at(options);
        }
        let (at, address) = (now.saturating_since(Instant::ORIGIN), &self.address);
        if let Input::SetOptions { options } = input {
            self.checker.tell(&Line::options_changed(options, address, at));
        }
        if let Input::ResetAfterFork = input {
            self.checker.tell(&Line::reset_after_fork(address, at));
        }
        for action in actions {
            if let Action::EmitEvent(event) = action {
                self.checker.tell(&Line::of(event, address, at));
            }
        }
        let may_be = |rule: &str| self.was_untidy && rule == "T-09";
        let mut findings = self.checker.so_far().findings.iter();
        match findings.find(|finding| !may_be(finding.rule)) {
            Some(finding) => Err(format!("the events, {finding}")),
            None => Ok(()),
        }
    }

    fn look_at(&mut self, options: &PoolOptions) {
        self.was_untidy |= options.maintenance == Some(Maintenance::Never);
    }
}
