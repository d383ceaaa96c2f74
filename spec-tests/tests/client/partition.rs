//! A network that drops everything and resets nothing.

use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use cenote::proxy::FaultProxy;
use cenote_core::client::Selector;
use cenote_core::connect::ServerKind;
use cenote_core::error::OperationError;

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{SOON, World, join_at, three};

on_all_runtimes!(a_member_that_is_cut_off, all_members_are_cut_off);

fn cables(set: &[cenote_endpoint::Endpoint]) -> Vec<FaultProxy> {
    let proxy = |server: &cenote_endpoint::Endpoint| FaultProxy::to(&server.address());
    let cables: Vec<_> = set.iter().map(|server| proxy(server).expect("it starts")).collect();
    let addresses: Vec<_> = cables.iter().map(FaultProxy::address).collect();
    join_at(&set.iter().collect::<Vec<_>>(), &addresses);
    cables
}

fn through(shell: Shell, cables: &[FaultProxy], options: &str) -> World {
    let addresses: Vec<_> = cables.iter().map(FaultProxy::address).collect();
    World::at(shell, &addresses, options)
}

// SD-41: only that member's pool is cleared, with an interrupt, when its check is not answered; what
// runs there fails at once, though no byte and no reset ever comes. Once the network is whole again
// the member is found within a heartbeat.
fn a_member_that_is_cut_off(shell: Shell) {
    let set = three();
    let cables = cables(&set);
    let world = through(shell, &cables, &format!("replicaSet=rs0&{SOON}"));
    world.ping();
    world.until_all_known();
    let mut connection = world.check_out(&Selector::Primary);
    cables[0].cut();
    let begin = Instant::now();
    let error = connection.command("admin", &rawdoc! { "ping": 1 }).expect_err("it fails");
    assert!(matches!(error, OperationError::Interrupted(_)), "{error}");
    assert!(error.is_retryable());
    // One second in theory: heartbeatFrequencyMS and connectTimeoutMS. Sockets have no limit.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    drop(connection);
    world.until("Unknown", |world| world.kinds()[0].is_none());
    let cleared = world.addresses_of("ConnectionPoolCleared");
    assert!(cleared.iter().all(|address| *address == cables[0].address().to_string()));
    world.until("reported", |world| world.interrupts() >= 1);
    assert!(world.kinds()[1..].iter().all(|&kind| kind == Some(ServerKind::RsSecondary)));
    assert!(world.client.check_out(&Selector::Secondary).is_ok());
    world.until("timed out", |world| {
        world.error_of(0).is_some_and(|error| error.contains("timed out"))
    });
    cables[0].mend();
    world.until("whole", |world| world.kinds()[0] == Some(ServerKind::RsPrimary));
    world.ping();
    world.client.close();
}

/// A caller that waits for a server meanwhile gets it when there is one again.
fn all_members_are_cut_off(shell: Shell) {
    let set = three();
    let cables = cables(&set);
    let world = through(shell, &cables, &format!("replicaSet=rs0&{SOON}"));
    world.until_all_known();
    cables.iter().for_each(FaultProxy::cut);
    world.until("Unknown", |world| world.kinds().iter().all(Option::is_none));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| world.ping());
        world.until("tried in vain", |world| {
            (0..3).all(|index| world.error_of(index).is_some_and(|it| it.contains("timed out")))
        });
        assert!(!waiting.is_finished());
        cables.iter().for_each(FaultProxy::mend);
        waiting.join().expect("a reply");
    });
    world.until_all_known();
    world.client.close();
}
