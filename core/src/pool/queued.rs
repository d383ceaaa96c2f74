//! A pool whose actions are pulled instead of pushed.

use alloc::collections::VecDeque;
use core::fmt;

use super::action::Action;
use super::input::Input;
use super::misuse::Misuse;
use super::options::{InvalidOptions, PoolOptions};
use super::state::PoolState;
use super::time::Instant;
use super::types::PoolTypes;

/// A [`PoolState`] with a queue of actions in front of it.
///
/// ```
/// use cenote_core::pool::{NoPayload, Input, Instant, PoolOptions, Queued};
///
/// let now = Instant::ORIGIN;
/// let mut pool = Queued::<NoPayload>::new(now, PoolOptions::default())?;
/// pool.handle(now, Input::Ready)?;
/// while let Some(action) = pool.poll_action() {
///     println!("{action:?}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Queued<S: PoolTypes> {
    state: PoolState<S>,
    actions: VecDeque<Action<S>>,
}

impl<S: PoolTypes> Queued<S> {
    /// As [`PoolState::new`].
    ///
    /// # Errors
    ///
    /// When no pool can work with these options.
    pub fn new(now: Instant, options: PoolOptions) -> Result<Self, InvalidOptions> {
        let mut actions = VecDeque::new();
        let state = PoolState::new(now, options, &mut actions)?;
        Ok(Self { state, actions })
    }

    /// As [`PoolState::handle`]; what follows from the input is queued behind what was not polled
    /// yet.
    ///
    /// # Errors
    ///
    /// An input that makes no sense in this state comes back; then nothing is queued.
    // PRD-02, PO-06, OUT-13
    pub fn handle(&mut self, now: Instant, input: Input<S>) -> Result<(), Misuse<S>> {
        self.state.handle(now, input, &mut self.actions)
    }

    /// The next action, in order.
    pub fn poll_action(&mut self) -> Option<Action<S>> {
        self.actions.pop_front()
    }

    /// The pool itself.
    pub const fn state(&self) -> &PoolState<S> {
        &self.state
    }
}

impl<S: PoolTypes> fmt::Debug for Queued<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state, actions } = self;
        write!(f, "Queued({}, {} actions)", state.snapshot(), actions.len())
    }
}
