//! The operations of the test runner itself, and those that only wait or look.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::Outcome;
use crate::formats::unified::client::Failure;
use crate::formats::unified::client::command::{Command, Safety};
use crate::formats::unified::client::story::Told;
use crate::formats::unified::extended_json::document;
use crate::formats::unified::format::{Action, ExpectedEvent, Operation, RUNNER};
use crate::formats::unified::world::{Entity, World};

/// How long an event may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much later than it happens something may be told, by a thread that tells for another one.
const GRACE: Duration = Duration::from_secs(2);

/// Carries it out, if it is one of these.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others are for `crud`")]
pub(super) fn act(world: &Arc<World>, operation: &Operation) -> Option<Result<Outcome, Failure>> {
    let done = match &operation.action {
        Action::FailPoint { client, fail_point } => fail(world, client, fail_point),
        Action::CreateEntities { entities } => script(world.create(entities)),
        Action::RunOnThread { thread, operation } => {
            let thread = world.thread(thread);
            script(thread.and_then(|thread| thread.hand_over((**operation).clone())))
        }
        Action::WaitForThread { thread } => {
            script(world.thread(thread).and_then(|thread| thread.join()))
        }
        Action::WaitForEvent { client, event, count } => {
            script(wait_for(world, client, event, *count))
        }
        Action::AssertEventCount { client, event, count } => {
            script(assert_count(world, client, event, *count))
        }
        Action::AssertNumberConnectionsCheckedOut { client, connections } => {
            script(assert_checked_out(world, client, *connections))
        }
        Action::AssertSameLsidOnLastTwoCommands { client } => {
            script(assert_same_lsid(world, client))
        }
        Action::Wait { ms } => {
            thread::sleep(Duration::from_millis(*ms));
            Ok(())
        }
        Action::RecordTopologyDescription { client, id } => {
            script(record_topology(world, client, id))
        }
        Action::AssertTopologyType { topology_description, topology_type } => {
            script(assert_topology_type(world, topology_description, topology_type))
        }
        Action::WaitForPrimaryChange { client, prior_topology_description, timeout_ms } => {
            let limit = Duration::from_millis(*timeout_ms);
            script(wait_for_primary(world, client, prior_topology_description, limit))
        }
        _ => return None,
    };
    if operation.object != RUNNER {
        return Some(Err(Failure::script("this is an operation of the testRunner")));
    }
    Some(done.map(|()| Outcome::Nothing))
}

fn script(done: Result<(), String>) -> Result<(), Failure> {
    done.map_err(Failure::script)
}

/// Through the client's own pool, if the file observes it.
fn fail(
    world: &World,
    client: &str,
    fail_point: &serde_json::Map<String, serde_json::Value>,
) -> Result<(), Failure> {
    let client = world.client(client).map_err(Failure::script)?;
    let command = document(fail_point).map_err(Failure::script)?;
    if !client.is_observed() {
        return script(world.venue.fail(client.several, &command));
    }
    let client = client.get().map_err(Failure::script)?;
    client.run(&Command::new("admin", command, Safety::Unknown)).map(drop)
}

fn wait_for(
    world: &World,
    client: &str,
    event: &ExpectedEvent,
    count: usize,
) -> Result<(), String> {
    let client = world.client(client)?.get()?;
    let enough = |told: &[Told]| times(told, event) >= count;
    if client.story().wait_until(PATIENCE, enough) {
        return Ok(());
    }
    let seen = times(&client.story().all(), event);
    Err(format!("waited for {} {count} times, but saw it {seen} times", event.name))
}

fn record_topology(world: &World, client: &str, id: &str) -> Result<(), String> {
    let topology = world.client(client)?.get()?.topology();
    world.save(id, Entity::Topology(topology))
}

fn assert_topology_type(world: &World, id: &str, expected: &str) -> Result<(), String> {
    let seen = world.topology(id)?.kind.name();
    if seen == expected { Ok(()) } else { Err(format!("expected {expected}, saw {seen}")) }
}

/// Until there is another primary than there was.
fn wait_for_primary(
    world: &World,
    client: &str,
    prior: &str,
    limit: Duration,
) -> Result<(), String> {
    let (client, prior) = (world.client(client)?.get()?, world.topology(prior)?);
    let prior = prior.primary().map(|(address, _)| address);
    let deadline = Instant::now() + limit;
    loop {
        let topology = client.topology();
        let primary = topology.primary().map(|(address, _)| address);
        if primary.is_some() && primary != prior {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(format!("there is no other primary than {prior:?}: {topology}"));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn assert_count(
    world: &World,
    client: &str,
    event: &ExpectedEvent,
    count: usize,
) -> Result<(), String> {
    let client = world.client(client)?.get()?;
    client.story().wait_until(GRACE, |told| times(told, event) >= count);
    client.catch_up();
    let seen = times(&client.story().all(), event);
    if seen == count {
        return Ok(());
    }
    Err(format!("expected {} {count} times, saw it {seen} times", event.name))
}

fn times(told: &[Told], event: &ExpectedEvent) -> usize {
    told.iter().filter(|told| event.matches(told)).count()
}

fn assert_checked_out(world: &World, client: &str, expected: usize) -> Result<(), String> {
    let client = world.client(client)?.get()?;
    let out = |told: &[Told]| {
        let times = |name: &str| told.iter().filter(|told| told.name == name).count();
        times("connectionCheckedOutEvent").saturating_sub(times("connectionCheckedInEvent"))
    };
    if client.story().wait_until(GRACE, |told| out(told) == expected) {
        return Ok(());
    }
    let seen = out(&client.story().all());
    Err(format!("expected {expected} connections to be checked out, but {seen} are"))
}

fn assert_same_lsid(world: &World, client: &str) -> Result<(), String> {
    let told = world.client(client)?.get()?.story().all();
    let mut started = told.iter().rev().filter(|told| told.name == "commandStartedEvent");
    match (started.next(), started.next()) {
        (Some(last), Some(before)) => {
            let lsid = |told: &Told| told.fields["command"]["lsid"].clone();
            let (last, before) = (lsid(last), lsid(before));
            if !last.is_null() && last == before {
                return Ok(());
            }
            Err(format!("the last two commands have the sessions {before} and {last}"))
        }
        _ => Err("there were no two commands".to_owned()),
    }
}
