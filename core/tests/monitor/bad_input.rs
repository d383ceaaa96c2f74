//! What embedders should not do.

use cenote_core::connect::EstablishOptions;
use cenote_core::monitor::{
    Input, InvalidMonitorOptions, Misuse, Monitor, MonitorOptions, SocketId,
};
use cenote_core::pool::Instant;
use cenote_core::uri::ConnectionString;

use crate::monitor::world::{MS, SECOND, World, establish, hello, primary, standalone};

fn opened(socket: u64) -> Input {
    let hello = Box::new(hello(&standalone()));
    Input::Opened { socket: SocketId(socket), hello, round_trip: MS }
}

fn replied(socket: u64) -> Input {
    Input::Replied { socket: SocketId(socket), reply: standalone(), more_to_come: false }
}

#[test]
fn a_broken_contract_changes_nothing() {
    let mut world = World::new();
    world.done();
    let socket = SocketId;
    assert_eq!(world.try_feed(opened(0)), Err(Misuse::UnknownSocket(socket(0))));
    assert_eq!(world.try_feed(opened(2)), Err(Misuse::UnknownSocket(socket(2))));
    assert_eq!(world.try_feed(replied(1)), Err(Misuse::NothingAsked(socket(1))));
    assert_eq!(world.try_feed(opened(1)), Ok(()));
    world.done();
    assert_eq!(world.try_feed(opened(1)), Err(Misuse::AlreadyOpen(socket(1))));
    assert_eq!(world.try_feed(replied(1)), Err(Misuse::NothingAsked(socket(1))));
    assert!(world.done().is_empty());
    let text = Misuse::UnknownSocket(socket(2)).to_string();
    assert_eq!(
        text,
        "monitoring socket 2 was never asked for: use the number that came with `Open`"
    );
}

#[test]
fn time_does_not_run_backwards() {
    let mut world = World::new();
    world.wait(SECOND);
    world.opened(1, &standalone());
    world.now = Instant::ORIGIN;
    world.feed(Input::Timer);
    assert_eq!(world.monitor.next_deadline().unwrap().at.as_nanos(), 11_000_000_000);
}

// SM-13: closed is closed.
#[test]
fn nothing_comes_after_the_close() {
    let mut world = World::new();
    world.opened(1, &primary(1));
    world.done();
    world.feed(Input::Close);
    assert_eq!(world.done(), ["close 1", "close 2"]);
    assert_eq!(world.monitor.next_deadline(), None);
    for input in [opened(2), replied(1), Input::RequestCheck, Input::Timer, Input::Close] {
        world.feed(input);
    }
    assert!(world.done().is_empty());
}

// OP-22, LB-40
#[test]
fn what_cannot_be_watched() {
    let mut options = MonitorOptions::default();
    options.heartbeat_frequency = MS * 499;
    let mut actions = Vec::new();
    let refused = Monitor::new(Instant::ORIGIN, options, establish(), &mut actions);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "heartbeatFrequencyMS is 499ms, which is less than 500ms: servers are not asked more often"
    );
    let mut behind = EstablishOptions::clone(&establish());
    behind.load_balanced = true;
    let refused =
        Monitor::new(Instant::ORIGIN, MonitorOptions::default(), behind.into(), &mut actions);
    assert_eq!(refused.unwrap_err(), InvalidMonitorOptions::LoadBalanced);
    assert!(actions.is_empty());
}

// OP-18, OP-22, OP-30
#[test]
fn options_of_a_connection_string() {
    let uri = "mongodb://db/?heartbeatFrequencyMS=700&connectTimeoutMS=20&serverMonitoringMode=poll\
               &replicaSet=rs0&directConnection=true";
    let options = MonitorOptions::new(&ConnectionString::parse(uri).unwrap(), true);
    assert_eq!(options.heartbeat_frequency, MS * 700);
    assert_eq!(options.connect_timeout, MS * 20);
    assert_eq!(options.mode.name(), "poll");
    assert_eq!(options.set_name.as_deref(), Some("rs0"));
    assert!(options.is_faas);
    let plain = ConnectionString::parse("mongodb://db").unwrap();
    assert_eq!(MonitorOptions::new(&plain, false), MonitorOptions::default());
}
