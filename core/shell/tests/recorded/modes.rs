//! What is random in a run, whichever shell it is on.

use std::sync::Mutex;
use std::time::Duration;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::pool::{Maintenance, PoolOptions, ServiceId};
use cenote_replay::random::SplitMix;

/// What no trace may hold.
pub(crate) const SECRET: &str = "pencil, which is a secret";

/// Opens connections after a while, or not.
pub(crate) struct RandomConnector {
    random: Mutex<SplitMix>,
    is_balanced: bool,
    unit: Duration,
}

/// What becomes of a connection.
pub(crate) struct ConnectionPlan {
    pub(crate) delay: Duration,
    /// In load-balanced mode.
    pub(crate) service: Option<ServiceId>,
    pub(crate) outcome: Result<Socket, ConnectionError>,
}

/// A payload like any other.
pub(crate) struct Socket {
    pub(crate) secret: String,
    pub(crate) broken: bool,
}

/// What a caller finally does with a connection that it has checked out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UseEnd {
    Breaks,
    Marks,
    Nothing,
}

/// What the controlling task does.
pub(crate) enum Order {
    Clear { interrupt: bool, pause: Duration },
    ClearService(ServiceId),
    SetMost(u32),
    Nothing,
}

impl RandomConnector {
    /// `unit` is how long a millisecond of the story takes.
    pub(crate) fn new(seed: u64, options: &PoolOptions, unit: Duration) -> Self {
        let is_balanced = options.load_balanced.unwrap_or(false);
        Self { random: Mutex::new(SplitMix(seed ^ 0xC0)), is_balanced, unit }
    }

    pub(crate) fn plan(&self) -> ConnectionPlan {
        let mut random = self.random.lock().expect("no panic");
        let delay = self.unit * random.below(40) as u32;
        let (fails, service) = (random.one_in(6), random.below(3));
        let service = self.is_balanced.then_some(ServiceId([service as u8; 12]));
        let outcome = match fails {
            true => Err(ConnectionError::network(Stage::Hello, "of this plan")),
            false => Ok(Socket { secret: SECRET.to_owned(), broken: false }),
        };
        ConnectionPlan { delay, service, outcome }
    }

    pub(crate) fn fault(socket: &Socket) -> Option<ConnectionError> {
        socket.broken.then(|| ConnectionError::network(Stage::Operation, "broken"))
    }
}

pub(crate) fn options(seed: u64, unit: Duration) -> PoolOptions {
    let random = &mut SplitMix(seed);
    let mut options = PoolOptions::default()
        .with_max_pool_size(1 + random.below(4) as u32)
        .with_max_connecting(1 + random.below(2) as u32);
    if random.one_in(2) {
        options = options.with_wait_queue_timeout(unit * (5 + random.below(60) as u32));
    }
    if random.one_in(2) {
        options = options.with_max_idle_time(unit * (20 + random.below(60) as u32));
    }
    if random.one_in(3) {
        options = options.with_min_pool_size(1);
    }
    if random.one_in(3) {
        options = options.with_maintenance(Maintenance::Never);
    }
    if random.one_in(4) {
        options = options.with_load_balanced(true);
    }
    options
}

pub(crate) fn use_end(random: &mut SplitMix) -> UseEnd {
    match random.below(8) {
        0 => UseEnd::Breaks,
        1 => UseEnd::Marks,
        _ => UseEnd::Nothing,
    }
}

pub(crate) fn reset() -> ConnectionError {
    ConnectionError::network(Stage::Operation, "reset")
}

pub(crate) fn order(random: &mut SplitMix, options: &PoolOptions, unit: Duration) -> Order {
    let is_balanced = options.load_balanced.unwrap_or(false);
    match random.below(4) {
        0 if is_balanced => Order::ClearService(ServiceId([random.below(3) as u8; 12])),
        0 => {
            let interrupt = random.one_in(2);
            Order::Clear { interrupt, pause: unit * random.below(20) as u32 }
        }
        1 => Order::SetMost(1 + random.below(5) as u32),
        _ => Order::Nothing,
    }
}

pub(crate) fn gone() -> ConnectionError {
    ConnectionError::network(Stage::Operation, "the server went away")
}
