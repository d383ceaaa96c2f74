use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use super::chance::Chance;
use crate::endpoint::{Ending, Endpoint, Fault, Script, TlsFault};

/// How often each trouble came.
pub(crate) type Troubles = BTreeMap<&'static str, u64>;

/// Gives the endpoint one trouble after another, and none in the end.
pub(super) async fn make(
    endpoint: Arc<Endpoint>,
    mut chance: Chance,
    is_over: Arc<AtomicBool>,
) -> Troubles {
    let mut troubles = Troubles::new();
    while !is_over.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(300 + chance.below(600))).await;
        let name = begin(&endpoint, &mut chance);
        *troubles.entry(name).or_default() += 1;
        sleep(Duration::from_millis(20 + chance.below(100))).await;
        endpoint.set_tls_fault(None);
        endpoint.with(crate::endpoint::Server::clear_faults);
    }
    troubles
}

fn begin(endpoint: &Endpoint, chance: &mut Chance) -> &'static str {
    let fault = |fault, times| {
        let script = Script::new(fault).at_command("ping", 0).times(times);
        endpoint.with(|server, now| server.set_fault(now, script));
    };
    let times = 1 + chance.below(30);
    match chance.below(10) {
        0 => {
            endpoint.with(crate::endpoint::Server::restart);
            "restart"
        }
        1 => {
            endpoint.with(|server, now| server.break_connections(now, Ending::Reset, None));
            "reset of all"
        }
        2 => {
            endpoint.with(|server, now| server.break_connections(now, Ending::Stall, None));
            "stall of all"
        }
        3 => {
            endpoint.with(|server, now| server.set_fault(now, Script::new(Fault::Refuse)));
            "nobody listens"
        }
        4 => {
            endpoint.set_tls_fault(Some(TlsFault::Stall));
            endpoint.with(|server, now| server.break_connections(now, Ending::Close, None));
            "close of all, and TLS stalls"
        }
        5 => {
            fault(Fault::Reset, times);
            "reset"
        }
        6 => {
            fault(Fault::Cut { bytes: 20, then: Ending::Close }, times);
            "cut in the middle"
        }
        7 => {
            fault(Fault::Garbage { bytes: 100 }, times);
            "garbage"
        }
        8 => {
            fault(Fault::Stall, times);
            "stall"
        }
        _ => {
            fault(Fault::Drip { bytes: 3, every: Duration::from_millis(1) }, times);
            "slow drip"
        }
    }
}
