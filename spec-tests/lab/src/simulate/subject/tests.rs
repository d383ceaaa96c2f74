//! Whose turn it is when late replies are switched off: requests 3 and 4 return to the queue, while request 5
//! owns a connection that is being established. Worlds of 5,000 steps failed here, all in this way: seeds 605, 1700, 5093,
//! 11108, 100670 and 20261190.

use cenote_core::pool::{Health, Purpose};

use super::*;

const NOW: Instant = Instant::ORIGIN;

struct World {
    subject: Subject,
    accounting: Accounting,
}

impl World {
    /// The owner of connection 3 was served right now; the machine agrees with the model all the way.
    fn new(max_connecting: u32, others: PoolOptions) -> Self {
        let options = PoolOptions::default().with_max_connecting(max_connecting);
        let options = options.with_experimental_pending_response(true);
        let judges = Judges { has_model: true, keeps_inputs: false };
        let subject = Subject::new(&options, judges).expect("valid options");
        let mut world = Self { subject, accounting: Accounting::default() };
        world.feed(Input::Ready);
        for number in 1..=2 {
            let request = world.ask();
            world.feed(Input::EstablishSucceeded { id: id(number), conn: number });
            world.accounting.answer(request).expect("it waits");
        }
        for number in 1..=2 {
            let health = Health::PendingResponse { request_id: 1, cause: 0 };
            world.feed(Input::CheckedIn { id: id(number), conn: number, health });
        }
        for _ in 3..=5 {
            world.ask();
        }
        world.feed(Input::SetOptions { options: others.into() });
        world.feed(Input::EstablishSucceeded { id: id(3), conn: 3 });
        world
    }

    fn ask(&mut self) -> WaiterId {
        let id = self.accounting.ask(0);
        let purpose = Purpose::Other;
        self.feed(Input::CheckOutRequested { id, waiter: id.0, deadline: None, purpose });
        id
    }

    fn feed(&mut self, input: Input<Tagged>) {
        self.subject.feed(NOW, input).expect("a valid input");
    }

    fn turn(&self, request: u64, connection: u64) -> Result<(), String> {
        self.subject.expect_turn(&self.accounting, WaiterId(request), id(connection))
    }
}

fn id(number: u64) -> ConnId {
    ConnId::from_parts(number, u32::try_from(number - 1).expect("few"))
}

fn worlds() -> [World; 3] {
    let others = PoolOptions::default();
    [
        World::new(2, others.clone().with_max_pool_size(1)),
        World::new(1, others.clone().with_max_connecting(1)),
        World::new(2, others),
    ]
}

// WQ-17
#[test]
fn an_owner_gets_its_connection_before_older_requests_that_returned() {
    for world in worlds() {
        assert_eq!(world.turn(5, 3), Ok(()));
        let message = "w5 owns c3, but gets c4";
        assert_eq!(world.turn(5, 4), Err(message.to_owned()));
    }
}

// WQ-03
#[test]
fn those_that_returned_are_served_in_order() {
    let message = "w4 is served before w3, which came first";
    let [no_place, one_permit, two_permits] = worlds();
    assert_eq!(no_place.turn(4, 3), Err(message.to_owned()));
    assert_eq!(no_place.turn(3, 3), Ok(()));
    // Request 3 owns connection 4 by now.
    assert_eq!(one_permit.turn(4, 3), Ok(()));
    assert_eq!(two_permits.turn(4, 3), Ok(()));
}
