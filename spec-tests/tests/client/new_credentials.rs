//! Credentials that change while a client is in use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::client::Selector;
use cenote_core::error::Stage;
use cenote_core::uri::Credential;
use cenote_endpoint::{Endpoint, ListenOptions, Settings, User};

use crate::shells::{Shell, on_all_runtimes};
use crate::world::World;

on_all_runtimes!(
    a_password_changes_without_an_outage,
    connections_in_use_retire_when_they_are_checked_in,
    a_credential_that_cannot_be_used_changes_nothing,
    a_wrong_password_fails_only_new_connections,
);

/// A server on which both the old and the new user may log in.
fn endpoint() -> Endpoint {
    let users = vec![User::new("old", "pencil"), User::new("new", "eraser")];
    let settings = Settings { auth: true, users, ..Settings::default() };
    Endpoint::start(settings, ListenOptions::default()).expect("it starts")
}

fn world(shell: Shell, endpoint: &Endpoint, options: &str) -> World {
    let world =
        World::new(shell, &format!("mongodb://old:pencil@{}/?{options}", endpoint.address()));
    world.ping();
    world
}

fn new() -> Credential {
    Credential::of_user("new", "eraser", "admin")
}

/// Callers are busy meanwhile, and none of them notices.
fn a_password_changes_without_an_outage(shell: Shell) {
    let only = endpoint();
    let world = world(shell, &only, "maxPoolSize=4&minPoolSize=2");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    world.ping();
                }
            });
        }
        let created = |world: &World| world.count("ConnectionCreated");
        for round in 0..3 {
            thread::sleep(Duration::from_millis(50));
            let before = created(&world);
            let credential =
                if round % 2 == 0 { new() } else { Credential::of_user("old", "pencil", "admin") };
            world.client.replace_credential(credential).expect("it can be used");
            world.until("new connections", |world| created(world) > before);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(world.count("ConnectionPoolCleared"), 0);
    assert_eq!(world.count("ConnectionCheckOutFailed"), 0);
    world.client.close();
    // Every connection of before has retired for the reason of a lifetime that is over.
    let reasons = world.closed_for();
    assert!(reasons.iter().filter(|reason| *reason == "idle").count() >= 3, "{reasons:?}");
    assert!(reasons.iter().all(|reason| reason == "idle" || reason == "poolClosed"), "{reasons:?}");
}

fn connections_in_use_retire_when_they_are_checked_in(shell: Shell) {
    let only = endpoint();
    let world = world(shell, &only, "maxPoolSize=2");
    let mut held = world.check_out(&Selector::Any);
    let idle = world.check_out(&Selector::Any);
    drop(idle);
    world.client.replace_credential(new()).expect("it can be used");
    world.until_told("ConnectionClosed", 1);
    // It goes on until then.
    held.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
    drop(held);
    world.until_told("ConnectionClosed", 2);
    assert_eq!(world.closed_for(), ["idle", "idle"]);
    world.ping();
    assert_eq!((world.count("ConnectionCreated"), world.count("ConnectionPoolCleared")), (3, 0));
    world.client.close();
}

fn a_credential_that_cannot_be_used_changes_nothing(shell: Shell) {
    let only = endpoint();
    let world = world(shell, &only, "");
    let mut without_user = new();
    without_user.username = None;
    let of_aws = Credential::of_aws_keys("AKIA", "eraser".to_owned().into(), None);
    for credential in [without_user, of_aws] {
        let error = world.client.replace_credential(credential).expect_err("it cannot be used");
        assert!(!error.to_string().contains("eraser"), "{error}");
    }
    world.ping();
    assert_eq!((world.count("ConnectionCreated"), world.count("ConnectionClosed")), (1, 0));
    world.client.close();
}

fn a_wrong_password_fails_only_new_connections(shell: Shell) {
    let only = endpoint();
    let world = world(shell, &only, "");
    let mut held = world.check_out(&Selector::Any);
    let wrong = Credential::of_user("new", "wrong", "admin");
    world.client.replace_credential(wrong).expect("it could be used");
    let error = world.command(&rawdoc! { "ping": 1 }).expect_err("the server refuses it");
    let cenote_core::client::ClientError::Pool(error) = error else { panic!("{error}") };
    let cenote_core::pool::CheckOutError::EstablishFailed { cause } = error.error() else {
        panic!("{error}")
    };
    assert_eq!(cause.stage(), Stage::Authentication, "{cause}");
    assert!(!cause.to_string().contains("wrong"), "{cause}");
    held.command("admin", &rawdoc! { "ping": 1 }).expect("it is logged in");
    drop(held);
    world.client.replace_credential(new()).expect("it can be used");
    world.until("ready again", |world| world.command(&rawdoc! { "ping": 1 }).is_ok());
    world.client.close();
}
