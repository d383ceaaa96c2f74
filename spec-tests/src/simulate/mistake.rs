//! Mistakes of whoever embeds a pool: inputs that make no sense, each of which has to be refused.

use std::time::Duration;

use cenote_core::pool::{
    ConnId, Health, Input, InvalidOptions, Maintenance, PoolOptions, PoolTypes, Purpose, WaiterId,
};

use super::books::{Books, Place};
use super::chance::Chance;
use crate::lockstep;

/// What a mistake is made with.
struct Hand<'a, F> {
    books: &'a Books,
    is_balanced: bool,
    chance: &'a mut Chance,
    cause: F,
}

/// One of them, if there is something that it can be made with at present. `cause` is why something
/// is said to have failed.
pub(super) fn mistake<S: PoolTypes<Conn = u64, Waiter = u64>>(
    books: &Books,
    is_balanced: bool,
    chance: &mut Chance,
    cause: impl FnOnce() -> S::Cause,
) -> Option<Input<S>> {
    let kind = chance.below(14);
    let mut hand = Hand { books, is_balanced, chance, cause };
    match kind {
        0 => hand.check_in_of(is_idle),
        1 => hand.check_in_of(is_opening),
        2 => hand.check_in_of_nobody(),
        3 => hand.success_of(|place| is_idle(place) || is_used(place)),
        4 => hand.failure_of(|place| is_idle(place) || is_used(place)),
        5 => hand.request_under_old_id(),
        6 => Some(hand.foreign_clear()),
        7 => hand.interrupt_of_service(),
        8 => Some(Input::SetOptions { options: Box::new(unusable_options()) }),
        9 => Some(hand.other_kind_of_pool()),
        10 => hand.unknown_service(),
        11 => hand.hello_twice(),
        12 => hand.end_of_opening(),
        _ => hand.purpose_of(|place| is_idle(place) || is_opening(place)),
    }
}

impl<F> Hand<'_, F> {
    fn some(&mut self, wanted: impl Fn(Place) -> bool) -> Option<ConnId> {
        let those: Vec<_> =
            self.books.sockets().filter(|it| wanted(it.place)).map(|it| it.id).collect();
        self.chance.pick(&those)
    }

    fn check_in_of<S>(&mut self, wanted: impl Fn(Place) -> bool) -> Option<Input<S>>
    where
        S: PoolTypes<Conn = u64>,
    {
        let id = self.some(wanted)?;
        Some(Input::CheckedIn { id, conn: u64::MAX, health: Health::Healthy })
    }

    fn check_in_of_nobody<S>(self) -> Option<Input<S>>
    where
        S: PoolTypes<Conn = u64>,
        F: FnOnce() -> S::Cause,
    {
        let id = ConnId::from_parts(self.books.last_connection() + 1, 0);
        Some(Input::CheckedIn { id, conn: u64::MAX, health: Health::Errored((self.cause)()) })
    }

    fn success_of<S>(&mut self, wanted: impl Fn(Place) -> bool) -> Option<Input<S>>
    where
        S: PoolTypes<Conn = u64>,
    {
        let id = self.some(wanted)?;
        Some(Input::EstablishSucceeded { id, conn: u64::MAX })
    }

    fn failure_of<S>(mut self, wanted: impl Fn(Place) -> bool) -> Option<Input<S>>
    where
        S: PoolTypes,
        F: FnOnce() -> S::Cause,
    {
        let id = self.some(wanted)?;
        Some(Input::EstablishFailed { id, cause: (self.cause)() })
    }

    fn request_under_old_id<S: PoolTypes<Waiter = u64>>(&self) -> Option<Input<S>> {
        let id = self.books.last_request();
        let purpose = Purpose::Other;
        let request = Input::CheckOutRequested { id, waiter: u64::MAX, deadline: None, purpose };
        (id != WaiterId(0)).then_some(request)
    }

    /// The one kind of clear that this kind of pool does not know.
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
        let id = self.some(|place| place == Place::Opening { is_greeted: false })?;
        let service = (!self.is_balanced).then(|| lockstep::service(1));
        Some(Input::Handshaken { id, service })
    }

    fn hello_twice<S: PoolTypes>(&mut self) -> Option<Input<S>> {
        let id = self.some(|place| place == Place::Opening { is_greeted: true })?;
        let service = self.is_balanced.then(|| lockstep::service(1));
        Some(Input::Handshaken { id, service })
    }

    /// What is not open yet cannot be closed while it is idle.
    fn end_of_opening<S>(mut self) -> Option<Input<S>>
    where
        S: PoolTypes,
        F: FnOnce() -> S::Cause,
    {
        let id = self.some(is_opening)?;
        Some(Input::IdleClosedByPeer { id, cause: (self.cause)() })
    }

    fn purpose_of<S: PoolTypes>(&mut self, wanted: impl Fn(Place) -> bool) -> Option<Input<S>> {
        let id = self.some(wanted)?;
        Some(Input::Repurposed { id, purpose: Purpose::Cursor })
    }
}

fn is_idle(place: Place) -> bool {
    place == Place::Idle
}

fn is_used(place: Place) -> bool {
    matches!(place, Place::Used { .. })
}

fn is_opening(place: Place) -> bool {
    matches!(place, Place::Opening { .. })
}

fn unusable_options() -> PoolOptions {
    let options =
        PoolOptions::default().with_maintenance(Maintenance::PauseAfterFailure(Duration::ZERO));
    debug_assert_eq!(options.validate(), Err(InvalidOptions::NoPause));
    options
}
