//! Where actions go.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use smallvec::SmallVec;

use super::action::Action;
use super::error::CheckOutError;
use super::event::Event;
use super::state::wait_queue::FailedRequests;
use super::types::PoolTypes;

/// Where actions go.
///
/// `Vec`, `VecDeque`, `SmallVec` and closures are sinks. A shell behind a lock collects and
/// performs them after unlocking; a shell on one thread may perform them in place.
pub trait ActionSink<S: PoolTypes> {
    /// Takes the next action of the stream.
    fn act(&mut self, action: Action<S>);

    /// Whether there is a use for `EmitEvent`. If not, events are not even built.
    /// No decision depends on the answer.
    fn wants_events(&self) -> bool {
        true
    }

    /// Takes the `Deliver` of the same error to many requests, one after the other. Called only if there is no use for
    /// events, none of which may come between. A sink may keep them and answer them later, in this order, so that
    /// the caller that clears a pool need not wait for that.
    fn fail_all(&mut self, requests: FailedRequests<S::Waiter>, error: &CheckOutError<S::Cause>) {
        for waiter in requests {
            self.act(Action::Deliver { waiter, outcome: Err(error.clone()) });
        }
    }
}

impl<S: PoolTypes> ActionSink<S> for Vec<Action<S>> {
    fn act(&mut self, action: Action<S>) {
        self.push(action);
    }
}

impl<S: PoolTypes> ActionSink<S> for VecDeque<Action<S>> {
    fn act(&mut self, action: Action<S>) {
        self.push_back(action);
    }
}

impl<S: PoolTypes, A: smallvec::Array<Item = Action<S>>> ActionSink<S> for SmallVec<A> {
    fn act(&mut self, action: Action<S>) {
        self.push(action);
    }
}

impl<S: PoolTypes, F: FnMut(Action<S>)> ActionSink<S> for F {
    fn act(&mut self, action: Action<S>) {
        self(action);
    }
}

/// A list of actions that does not allocate for the usual number of actions of an input.
pub type Actions<S> = SmallVec<[Action<S>; 4]>;

/// A sink that passes everything on but has no use for events.
///
/// That is for pools without subscribers. Around a single input it hides more than the event that was
/// meant: with `Ready` also `ConnectionCreated` of the connections that the input starts. For a pool
/// that is ready without `ConnectionPoolReady` there is [`PoolState::new_ready`].
///
/// [`PoolState::new_ready`]: super::PoolState::new_ready
///
/// ```
/// use cenote_core::pool::{NoPayload, Instant, PoolOptions, PoolState, WithoutEvents};
///
/// let mut actions = Vec::new();
/// PoolState::<NoPayload>::new(Instant::ORIGIN, PoolOptions::default(), &mut WithoutEvents(&mut actions))?;
/// assert!(actions.is_empty());
/// # Ok::<(), cenote_core::pool::InvalidOptions>(())
/// ```
#[derive(Debug)]
pub struct WithoutEvents<K>(pub K);

impl<S: PoolTypes, K: ActionSink<S>> ActionSink<S> for WithoutEvents<&mut K> {
    fn act(&mut self, action: Action<S>) {
        self.0.act(action);
    }

    fn wants_events(&self) -> bool {
        false
    }

    fn fail_all(&mut self, requests: FailedRequests<S::Waiter>, error: &CheckOutError<S::Cause>) {
        self.0.fail_all(requests, error);
    }
}

/// Emits an event, if the sink has a use for it.
// PS-07, PS-21
#[inline(always)]
pub(super) fn emit<S: PoolTypes>(
    out: &mut impl ActionSink<S>,
    event: impl FnOnce() -> Event<S::Cause>,
) {
    if out.wants_events() {
        out.act(Action::EmitEvent(event()));
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::pool::{Input, Instant, NoPayload, PoolOptions, PoolState};

    fn names(actions: impl IntoIterator<Item = Action<NoPayload>>) -> Vec<&'static str> {
        let name = |action| {
            if let Action::EmitEvent(event) = action { event.name() } else { "an action" }
        };
        actions.into_iter().map(name).collect()
    }

    fn run(out: &mut impl ActionSink<NoPayload>) {
        let options = PoolOptions::default().with_min_pool_size(1);
        let mut pool = PoolState::<NoPayload>::new(Instant::ORIGIN, options, out).unwrap();
        pool.handle(Instant::ORIGIN, Input::Ready, out).unwrap();
    }

    #[test]
    fn all_sinks_take_the_same() {
        let told =
            ["ConnectionPoolCreated", "ConnectionPoolReady", "ConnectionCreated", "an action"];
        let (mut list, mut queue, mut small, mut called) =
            (Vec::new(), VecDeque::new(), Actions::<NoPayload>::new(), Vec::new());
        run(&mut list);
        run(&mut queue);
        run(&mut small);
        run(&mut |action| called.push(action));
        assert_eq!(names(list), told);
        assert_eq!(names(queue), told);
        assert_eq!(names(small), told);
        assert_eq!(names(called), told);
        let mut without = Vec::new();
        run(&mut WithoutEvents(&mut without));
        assert_eq!(names(without), ["an action"]);
    }
}
