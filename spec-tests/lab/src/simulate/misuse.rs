//! Misuse of the pool by its embedder: invalid inputs, each of which has to be refused.

use std::time::Duration;

use cenote_core::pool::{
    ConnId, Health, Input, InvalidOptions, Maintenance, PoolOptions, PoolTypes, Purpose, WaiterId,
};

use super::accounting::{Accounting, SocketState};
use crate::lockstep;
use cenote_replay::random::SplitMix;

/// What an invalid input is made of.
struct Context<'a, F> {
    accounting: &'a Accounting,
    is_balanced: bool,
    random: &'a mut SplitMix,
    cause: F,
}

/// An invalid input, if one is possible in the present state. `cause` creates the cause of a failure.
pub(super) fn misuse<S: PoolTypes<Conn = u64, Waiter = u64>>(
    accounting: &Accounting,
    is_balanced: bool,
    random: &mut SplitMix,
    cause: impl FnOnce() -> S::Cause,
) -> Option<Input<S>> {
    let kind = random.below(15);
    let mut context = Context { accounting, is_balanced, random, cause };
    match kind {
        0 => context.check_in_of(is_idle),
        1 => context.check_in_of(is_opening),
        2 => context.check_in_of_unknown(),
        3 => context.success_of(|state| is_idle(state) || is_used(state)),
        4 => context.failure_of(|state| is_idle(state) || is_used(state)),
        5 => context.request_under_old_id(),
        6 => Some(context.foreign_clear()),
        7 => context.interrupt_of_service(),
        8 => Some(Input::SetOptions { options: Box::new(unusable_options()) }),
        9 => Some(context.other_kind_of_pool()),
        10 => context.unknown_service(),
        11 => context.hello_twice(),
        12 => context.end_of_opening(),
        13 => context.drain_of(|state| is_idle(state) || is_used(state) || is_opening(state)),
        _ => context.purpose_of(|state| is_idle(state) || is_opening(state)),
    }
}

impl<F> Context<'_, F> {
    fn some(&mut self, wanted: impl Fn(SocketState) -> bool) -> Option<ConnId> {
        let ids: Vec<_> =
            self.accounting.sockets().filter(|it| wanted(it.state)).map(|it| it.id).collect();
        self.random.pick(&ids)
    }

    fn check_in_of<S>(&mut self, wanted: impl Fn(SocketState) -> bool) -> Option<Input<S>>
    where
        S: PoolTypes<Conn = u64>,
    {
        let id = self.some(wanted)?;
        Some(Input::CheckedIn { id, conn: u64::MAX, health: Health::Healthy })
    }

    fn check_in_of_unknown<S>(self) -> Option<Input<S>>
    where
        S: PoolTypes<Conn = u64>,
        F: FnOnce() -> S::Cause,
    {
        let id = ConnId::from_parts(self.accounting.last_connection() + 1, 0);
        Some(Input::CheckedIn { id, conn: u64::MAX, health: Health::Errored((self.cause)()) })
    }

    fn success_of<S>(&mut self, wanted: impl Fn(SocketState) -> bool) -> Option<Input<S>>
    where
        S: PoolTypes<Conn = u64>,
    {
        let id = self.some(wanted)?;
        Some(Input::EstablishSucceeded { id, conn: u64::MAX })
    }

    fn failure_of<S>(mut self, wanted: impl Fn(SocketState) -> bool) -> Option<Input<S>>
    where
        S: PoolTypes,
        F: FnOnce() -> S::Cause,
    {
        let id = self.some(wanted)?;
        let overloaded = self.random.flip();
        Some(Input::EstablishFailed { id, cause: (self.cause)(), overloaded })
    }

    fn drain_of<S>(&mut self, wanted: impl Fn(SocketState) -> bool) -> Option<Input<S>>
    where
        S: PoolTypes<Conn = u64>,
    {
        let id = self.some(wanted)?;
        let progress = self.random.flip();
        Some(if progress {
            Input::DrainProgress { id }
        } else {
            Input::DrainSucceeded { id, conn: u64::MAX }
        })
    }

    fn request_under_old_id<S: PoolTypes<Waiter = u64>>(&self) -> Option<Input<S>> {
        let id = self.accounting.last_request();
        let purpose = Purpose::Other;
        let request = Input::CheckOutRequested { id, waiter: u64::MAX, deadline: None, purpose };
        (id != WaiterId(0)).then_some(request)
    }

    /// The kind of clear that this kind of pool does not support.
    fn foreign_clear<S>(self) -> Input<S>
    where
        S: PoolTypes,
        F: FnOnce() -> S::Cause,
    {
        let service = (!self.is_balanced).then(|| lockstep::service(1));
        Input::Clear { cause: (self.cause)(), interrupt: false, service }
    }

    fn interrupt_of_service<S>(self) -> Option<Input<S>>
    where
        S: PoolTypes,
        F: FnOnce() -> S::Cause,
    {
        let service = self.is_balanced.then(|| lockstep::service(1))?;
        Some(Input::Clear { cause: (self.cause)(), interrupt: true, service: Some(service) })
    }

    fn other_kind_of_pool<S: PoolTypes>(&self) -> Input<S> {
        let options = PoolOptions::default().with_load_balanced(!self.is_balanced);
        Input::SetOptions { options: Box::new(options) }
    }

    fn unknown_service<S: PoolTypes>(&mut self) -> Option<Input<S>> {
        let id = self.some(|state| state == SocketState::Opening { is_greeted: false })?;
        let service = (!self.is_balanced).then(|| lockstep::service(1));
        Some(Input::Handshaken { id, service, clears_at_hello: None })
    }

    fn hello_twice<S: PoolTypes>(&mut self) -> Option<Input<S>> {
        let id = self.some(|state| state == SocketState::Opening { is_greeted: true })?;
        let service = self.is_balanced.then(|| lockstep::service(1));
        Some(Input::Handshaken { id, service, clears_at_hello: None })
    }

    /// A pending connection cannot be closed as an idle one.
    fn end_of_opening<S>(mut self) -> Option<Input<S>>
    where
        S: PoolTypes,
        F: FnOnce() -> S::Cause,
    {
        let id = self.some(is_opening)?;
        Some(Input::IdleClosedByPeer { id, cause: (self.cause)() })
    }

    fn purpose_of<S: PoolTypes>(
        &mut self,
        wanted: impl Fn(SocketState) -> bool,
    ) -> Option<Input<S>> {
        let id = self.some(wanted)?;
        Some(Input::Repurposed { id, purpose: Purpose::Cursor })
    }
}

fn is_idle(state: SocketState) -> bool {
    state == SocketState::Idle
}

fn is_used(state: SocketState) -> bool {
    matches!(state, SocketState::Used { .. })
}

fn is_opening(state: SocketState) -> bool {
    matches!(state, SocketState::Opening { .. })
}

fn unusable_options() -> PoolOptions {
    let options =
        PoolOptions::default().with_maintenance(Maintenance::PauseAfterFailure(Duration::ZERO));
    debug_assert_eq!(options.validate(), Err(InvalidOptions::NoPause));
    options
}
