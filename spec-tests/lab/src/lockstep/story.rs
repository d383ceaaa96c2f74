//! Checks a machine's events against the rules for event streams.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use cenote_core::address::ServerAddress;
use cenote_core::pool::{Action, Event, Input, Instant, PoolOptions, PoolTypes};

use cenote_check::{Checker, Line, Report};

/// The events so far.
pub(crate) struct Story {
    address: ServerAddress,
    /// The address as text, shared by all events.
    written: Arc<str>,
    checker: Checker,
}

impl Default for Story {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "a name without anything odd in it")]
        let address: ServerAddress = "pool".parse().expect("an address");
        let written = address.to_string().into();
        Self { address, written, checker: Checker::default() }
    }
}

impl Story {
    /// Starts with the creation of a pool.
    pub(crate) fn begins(&mut self, options: &PoolOptions) {
        let options = Box::new(options.clone());
        let created = Event::<String>::ConnectionPoolCreated { options };
        self.checker.tell(&Line::of(&created, &self.address, Duration::ZERO));
    }

    /// Adds the events of an input.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub(crate) fn goes_on<S: PoolTypes<Cause: Display>>(
        &mut self,
        input: &Input<S>,
        actions: &[Action<S>],
        now: Instant,
    ) -> Result<(), String> {
        let (at, address) = (now.saturating_since(Instant::ORIGIN), &self.address);
        if let Input::SetOptions { options } = input {
            self.checker.tell(&Line::options_changed(options, address, at));
        }
        if let Input::ResetAfterFork = input {
            self.checker.tell(&Line::reset_after_fork(address, at));
        }
        for action in actions {
            if let Action::EmitEvent(event) = action {
                self.checker.tell(&Line::of_pool(event, address, &self.written, at));
            }
        }
        verdict(self.checker.so_far())
    }

    /// Checks the complete stream.
    ///
    /// # Errors
    ///
    /// The first violation.
    #[cfg(feature = "simulate")]
    pub(crate) fn ends(self) -> Result<(), String> {
        verdict(&self.checker.finish())
    }
}

fn verdict(report: &Report) -> Result<(), String> {
    match report.findings.first() {
        Some(finding) => Err(format!("the events, {finding}")),
        None => Ok(()),
    }
}
