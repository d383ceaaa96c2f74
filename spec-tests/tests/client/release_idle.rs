//! Connections that are given back before the process is frozen.

use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::client::Selector;
use cenote_endpoint::{Endpoint, ListenOptions, Settings};

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{World, sockets_to};

on_all_runtimes!(the_server_keeps_nothing_that_is_not_used, the_minimum_comes_back_after_a_second,);

fn world(shell: Shell, endpoint: &Endpoint, options: &str) -> World {
    World::new(shell, &format!("mongodb://{}/?{options}", endpoint.address()))
}

fn endpoint() -> Endpoint {
    Endpoint::start(Settings::default(), ListenOptions::default()).expect("it starts")
}

fn the_server_keeps_nothing_that_is_not_used(shell: Shell) {
    let only = endpoint();
    // One socket of a monitor.
    let world = world(shell, &only, "serverMonitoringMode=poll&heartbeatFrequencyMS=60000");
    let mut held = world.check_out(&Selector::Any);
    let others = [(); 4].map(|()| world.check_out(&Selector::Any));
    drop(others);
    assert_eq!(sockets_to(&only), 1 + 5);

    world.client.release_idle();
    world.until_told("ConnectionClosed", 4);
    world.until("closed sockets", |_| sockets_to(&only) == 1 + 1);
    held.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
    drop(held);
    world.client.release_idle();
    world.until("closed sockets", |_| sockets_to(&only) == 1);
    assert_eq!(world.closed_for(), ["idle"; 5]);

    world.ping();
    assert_eq!(world.count("ConnectionCreated"), 6);
    assert_eq!(world.count("ConnectionPoolCleared"), 0);
    world.client.close();
}

fn the_minimum_comes_back_after_a_second(shell: Shell) {
    let only = endpoint();
    let world = world(shell, &only, "minPoolSize=2");
    world.ping();
    world.until("the minimum", |world| world.count("ConnectionReady") >= 2);
    let created = world.count("ConnectionCreated");
    world.client.release_idle();
    world.until("closed connections", |world| world.count("ConnectionClosed") == created);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(world.count("ConnectionCreated"), created);
    world.until("the minimum again", |world| world.count("ConnectionReady") >= created + 2);
    world.client.close();
}
