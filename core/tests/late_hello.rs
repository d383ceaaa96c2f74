//! Drivers that say late that hello is done, with the number of clears at that time: no connection is
//! handed out whose service was cleared since, and without a clear none is lost.

use cenote_core::pool::{
    Action, ConnId, Input, Instant, NoPayload, PoolOptions, PoolState, Purpose, ServiceId, WaiterId,
};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    CheckOut,
    /// The server replies to the hello of a connection; the driver notes the number of clears.
    Hello(u8),
    /// The driver tells the pool so, and right after that it is established.
    Establish(u8),
    /// A connection is checked in, errored: a service may lose its last one.
    CheckIn(u8),
    Clear(u8),
}

const SERVICES: u8 = 3;

fn service(of: u8) -> ServiceId {
    ServiceId([of % SERVICES; 12])
}

/// A connection that the driver has to do with.
#[derive(Clone, Copy)]
struct Known {
    id: ConnId,
    /// Its service, and the number of clears at hello.
    hello: Option<(ServiceId, u64)>,
}

struct Driver {
    pool: PoolState<NoPayload>,
    /// The service that each clear named.
    clears: Vec<ServiceId>,
    requests: u64,
    opening: Vec<Known>,
    in_use: Vec<ConnId>,
}

impl Driver {
    fn new() -> Self {
        let options = PoolOptions::default().with_load_balanced(true).with_max_connecting(4);
        let pool = PoolState::new(Instant::ORIGIN, options, &mut |_| {}).expect("usable options");
        let mut driver =
            Self { pool, clears: Vec::new(), requests: 0, opening: Vec::new(), in_use: Vec::new() };
        driver.feed(Input::Ready);
        driver
    }

    fn feed(&mut self, input: Input<NoPayload>) {
        let mut actions = Vec::new();
        self.pool.handle(Instant::ORIGIN, input, &mut actions).expect("a valid input");
        self.pool.check_invariants();
        for action in actions {
            if let Action::StartEstablish { id, .. } = action {
                self.opening.push(Known { id, hello: None });
            } else if let Action::Deliver { outcome: Ok((id, ())), .. } = action {
                self.in_use.push(id);
            }
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::CheckOut => {
                self.requests += 1;
                let (id, purpose) = (WaiterId(self.requests), Purpose::Other);
                self.feed(Input::CheckOutRequested { id, waiter: (), deadline: None, purpose });
            }
            Step::Hello(which) => {
                let hello = Some((service(which / 8), self.pool.service_clears()));
                let mut opening = self.opening.iter_mut().filter(|known| known.hello.is_none());
                if let Some(known) = opening.nth(usize::from(which % 8)) {
                    known.hello = hello;
                }
            }
            Step::Establish(which) => {
                let ready = |known: &Known| known.hello.is_some();
                let places = (0..self.opening.len()).filter(|&at| ready(&self.opening[at]));
                let place = places.clone().nth(usize::from(which) % places.count().max(1));
                if let Some(place) = place {
                    self.establish(place);
                }
            }
            Step::CheckIn(which) => {
                if !self.in_use.is_empty() {
                    let id = self.in_use.remove(usize::from(which) % self.in_use.len());
                    let health = cenote_core::pool::Health::Errored(());
                    self.feed(Input::CheckedIn { id, conn: (), health });
                }
            }
            Step::Clear(which) => {
                self.clears.push(service(which));
                let service = Some(service(which));
                self.feed(Input::Clear { cause: (), interrupt: false, service });
                assert_eq!(self.pool.service_clears(), self.clears.len() as u64);
            }
        }
    }

    fn establish(&mut self, place: usize) {
        let Known { id, hello } = self.opening.remove(place);
        let (service, seen) = hello.expect("chosen for it");
        self.feed(Input::Handshaken { id, service: Some(service), clears_at_hello: Some(seen) });
        let since = &self.clears[usize::try_from(seen).expect("few clears")..];
        let is_closed = self.pool.generation_of(id).is_none();
        assert!(is_closed || !since.contains(&service), "{id} missed a clear of its service");
        assert!(!is_closed || !since.is_empty(), "{id} was closed without a clear");
        self.feed(Input::EstablishSucceeded { id, conn: () });
        assert_eq!(self.in_use.contains(&id), !is_closed);
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::CheckOut),
        4 => any::<u8>().prop_map(Step::Hello),
        4 => any::<u8>().prop_map(Step::Establish),
        2 => any::<u8>().prop_map(Step::CheckIn),
        2 => any::<u8>().prop_map(Step::Clear),
    ]
}

proptest! {
    // LB-03
    #[test]
    fn a_late_hello_misses_no_clear(steps in prop::collection::vec(step(), 1..120)) {
        let mut driver = Driver::new();
        steps.into_iter().for_each(|step| driver.step(step));
    }
}
