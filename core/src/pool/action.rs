//! What comes out: actions, in one ordered stream, through a sink.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use smallvec::SmallVec;

use super::error::CheckOutError;
use super::event::Event;
use super::id::ConnId;
use super::time::Instant;

/// What a shell brings. The machine moves these in and out and never looks inside.
pub trait PoolTypes {
    /// An established connection: a socket and what belongs to it.
    type Conn;
    /// Whoever waits for a connection: a waker, a channel, a thread's parking place.
    type Waiter;
    /// Why something failed. One cause can fail many requests, so it must be cheap to clone.
    type Cause: Clone;
}

/// The shell without a shell: every payload is `()`.
///
/// For replay, simulation, fuzzing and tests, which care about decisions alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoPayload {}

impl PoolTypes for NoPayload {
    type Conn = ();
    type Waiter = ();
    type Cause = ();
}

/// What the shell is to do, or may tell others.
///
/// The order of actions is part of the contract: CMAP makes the order of events normative, across
/// kinds (T-01 … T-10), and a shell that carries actions out in the order in which it received
/// them keeps it.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<S: PoolTypes> {
    /// Connect, say hello, negotiate, authenticate; then answer with `EstablishSucceeded` or
    /// `EstablishFailed`, exactly once, unless `AbortEstablish` comes first (ES-02).
    StartEstablish {
        /// The connection that has just been created.
        id: ConnId,
        /// The deadline that the caller gave with its request, if any (CS-03, CS-05). The shell
        /// applies `connectTimeoutMS` besides.
        deadline: Option<Instant>,
        /// Whether nobody waits for this connection: it is made to reach `minPoolSize` (CS-08).
        background: bool,
    },
    /// Stop establishing and drop whatever there is of the socket. No answer is owed; one that is
    /// already on its way does no harm.
    AbortEstablish {
        /// A connection that is closed by now, as far as the pool is concerned.
        id: ConnId,
    },
    /// Wake a waiter with what became of its request. Exactly one for each request.
    Deliver {
        /// As it came with the request.
        waiter: S::Waiter,
        /// The connection, now in use, or why there is none.
        outcome: Result<(ConnId, S::Conn), CheckOutError<S::Cause>>,
    },
    /// Tear the socket down, without blocking (KX-02). The payload moves to the shell: it cannot be
    /// closed twice and cannot leak.
    CloseSocket {
        /// A connection that is closed by now, as far as the pool is concerned.
        id: ConnId,
        /// The payload.
        conn: S::Conn,
    },
    /// Break what a checked-out connection is doing, now, and let the operation on it fail with a
    /// retryable error (INT-02, INT-06). The connection still has to be checked in.
    Interrupt {
        /// A connection in use.
        id: ConnId,
    },
    /// A connection has been in use for as long as was configured: perhaps it leaks.
    /// Reported once for each check-out; a hint, no part of CMAP.
    ReportLeak {
        /// A connection in use.
        id: ConnId,
        /// For how long by now.
        held: Duration,
    },
    /// Tell the subscribers, in this place of the order (EV-01).
    EmitEvent(Event<S::Cause>),
}

/// Where actions go.
///
/// `Vec`, `VecDeque`, `SmallVec` and closures are sinks. A shell behind a lock collects and
/// performs them after unlocking; a shell on one thread may perform them in place.
pub trait ActionSink<S: PoolTypes> {
    /// Takes the next action of the stream.
    fn act(&mut self, action: Action<S>);

    /// Whether anybody would look at an `EmitEvent`. If not, the machine does not even build it.
    /// No decision depends on the answer.
    fn wants_events(&self) -> bool {
        true
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

/// A list of actions that needs no heap for what one input usually causes.
pub type Actions<S> = SmallVec<[Action<S>; 4]>;

/// A sink that passes everything on but has no use for events.
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
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::pool::{Input, Instant, PoolOptions, PoolState};

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
