//! One seed, and the servers that it leads to.

use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::address::ServerAddress;
use cenote_core::client::{ClientError, ReadPreference, SelectionError, Selector};
use cenote_core::connect::ServerKind;
use cenote_core::uri::ReadPreferenceMode;
use cenote_endpoint::{Endpoint, ReplicaSet, Role, Server, Topology};

use crate::shells::{Shell, on_all_runtimes};
use crate::world::{
    World, change_set, commands, fail_point, join, member, standalone, start, three, until_open,
    until_so,
};

on_all_runtimes!(
    one_seed_finds_the_others,
    a_member_that_is_not_known_yet_is_waited_for,
    members_come_and_go,
    the_primary_is_lost,
    an_operation_finds_the_step_down,
    the_primary_that_was_elected_last_is_believed,
    an_error_of_a_primary_that_is_not_believed,
    the_seed_has_another_name,
    several_standalone_servers,
    a_router_among_members,
    members_without_end,
    a_set_that_changes_its_name,
    a_set_version_that_goes_back,
    a_primary_that_does_not_list_itself,
    a_read_preference_is_followed,
);

/// So that nothing but a stream or a request leads to a check.
const SLOW: &str = "heartbeatFrequencyMS=60000";

fn kind_of(world: &World, endpoint: &Endpoint) -> Option<ServerKind> {
    let servers = world.client.servers();
    servers.iter().find(|server| *server.address == endpoint.address())?.kind
}

fn has(world: &World, endpoint: &Endpoint) -> bool {
    world.client.servers().iter().any(|server| *server.address == endpoint.address())
}

fn until_three(world: &World) {
    world.until("found", |world| {
        world.kinds().len() == 3 && world.kinds().iter().all(Option::is_some)
    });
}

// ST-01, ST-03
fn one_seed_finds_the_others(shell: Shell) {
    let set = three();
    for seed in &set {
        for options in ["replicaSet=rs0", ""] {
            let world = World::of(shell, &[seed], options);
            until_three(&world);
            assert_eq!(kind_of(&world, &set[0]), Some(ServerKind::RsPrimary));
            for secondary in &set[1..] {
                assert_eq!(kind_of(&world, secondary), Some(ServerKind::RsSecondary));
                let selector = Selector::Address(secondary.address());
                let mut connection = world.check_out(&selector);
                connection.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
            }
            world.ping();
            assert_eq!(world.count("ConnectionPoolCreated"), 3);
            world.client.close();
            assert_eq!(world.count("ConnectionPoolClosed"), 3);
            set.iter().for_each(|endpoint| until_open(endpoint, 0));
        }
    }
}

/// By the caller of a client that has not checked its seed.
// SS-14, ST-05
fn a_member_that_is_not_known_yet_is_waited_for(shell: Shell) {
    let set = three();
    let world = World::of(shell, &[&set[1]], "replicaSet=rs0");
    let chosen = format!("{:?}", world.check_out(&Selector::Address(set[2].address())));
    assert!(chosen.contains(&format!("{:?}", set[2].address())), "{chosen}");
    world.client.close();
}

// ST-04
fn members_come_and_go(shell: Shell) {
    let [a, b, c] = [member(Role::Primary), member(Role::Secondary), member(Role::Secondary)];
    join(&[&a, &b]);
    let world = World::of(shell, &[&a], &format!("replicaSet=rs0&{SLOW}"));
    world.until("both", |world| kind_of(world, &b).is_some());
    assert!(!has(&world, &c));
    join(&[&a, &b, &c]);
    until_three(&world);
    let mut connection = world.check_out(&Selector::Address(c.address()));
    join(&[&a, &b]);
    world.until("gone", |world| !has(world, &c));
    // What is in use goes on until it is checked in.
    connection.command("admin", &rawdoc! { "ping": 1 }).expect("a reply");
    world.until_told("ConnectionPoolClosed", 1);
    drop(connection);
    until_open(&c, 0);
    let error = world.client.check_out(&Selector::Address(c.address())).err();
    let error = error.expect("it is no member");
    assert!(
        matches!(error, ClientError::Selection(SelectionError::NotOfThisClient { .. })),
        "{error}"
    );
    // It gets a new pool.
    join(&[&a, &b, &c]);
    until_three(&world);
    assert_eq!(world.count("ConnectionPoolCreated"), 4);
    world.client.close();
    [a, b, c].iter().for_each(|endpoint| until_open(endpoint, 0));
}

// ST-17
fn the_primary_is_lost(shell: Shell) {
    let set = three();
    let world = World::of(shell, &[&set[0]], "replicaSet=rs0&heartbeatFrequencyMS=500");
    until_three(&world);
    set[0].with(Server::shut_down);
    world.until("lost", |world| kind_of(world, &set[0]).is_none());
    set[2].with(Server::step_up);
    world.until("elected", |world| kind_of(world, &set[2]) == Some(ServerKind::RsPrimary));
    world.ping();
    // It stays a member, whose monitor finds it when it comes back.
    change_set(&set[0], |set| ReplicaSet { role: Role::Secondary, ..set });
    set[0].with(Server::restart);
    world.until("back", |world| kind_of(world, &set[0]) == Some(ServerKind::RsSecondary));
    assert_eq!(world.count("ConnectionPoolClosed"), 0);
    world.client.close();
}

/// By its answer to an application, without a stream of checks.
// SS-12
fn an_operation_finds_the_step_down(shell: Shell) {
    let set = three();
    let options = format!("replicaSet=rs0&serverMonitoringMode=poll&{SLOW}");
    let world = World::of(shell, &[&set[0]], &options);
    until_three(&world);
    world.ping();
    set[0].with(Server::step_down);
    set[1].with(Server::step_up);
    let insert = rawdoc! { "insert": "birds", "documents": [{}] };
    let error = world.command(&insert).expect_err("no primary");
    assert!(error.is_retryable(), "{error}");
    world.command(&insert).expect("the new primary");
    assert_eq!(kind_of(&world, &set[1]), Some(ServerKind::RsPrimary));
    assert_ne!(kind_of(&world, &set[0]), Some(ServerKind::RsPrimary));
    world.client.close();
}

/// Two members call themselves the primary; never are both believed.
// ST-08
fn the_primary_that_was_elected_last_is_believed(shell: Shell) {
    let set = three();
    let world = World::of(shell, &[&set[0]], "replicaSet=rs0&heartbeatFrequencyMS=500");
    until_three(&world);
    set[1].with(Server::step_up);
    world.until("elected", |world| kind_of(world, &set[1]) == Some(ServerKind::RsPrimary));
    assert_eq!(kind_of(&world, &set[0]), None);
    let servers = world.client.servers();
    let deposed = servers.iter().find(|server| *server.address == set[0].address());
    let shown = deposed.expect("it is a member").to_string();
    assert!(shown.contains("primary marked stale"), "{shown}");
    assert_eq!(world.count("ConnectionPoolCleared"), 0);
    let chosen = format!("{:?}", world.check_out(&Selector::Primary));
    assert!(chosen.contains(&format!("{:?}", set[1].address())), "{chosen}");
    set[0].with(Server::step_down);
    world.until("agreed", |world| kind_of(world, &set[0]) == Some(ServerKind::RsSecondary));
    world.client.close();
}

/// Its monitor knows the topologyVersion that the error has, but it is described without one: the error counts.
fn an_error_of_a_primary_that_is_not_believed(shell: Shell) {
    let set = three();
    let world = World::of(shell, &[&set[0]], &format!("replicaSet=rs0&{SLOW}"));
    until_three(&world);
    let mut connection = world.check_out(&Selector::Address(set[0].address()));
    set[1].with(Server::step_up);
    world.until("deposed", |world| kind_of(world, &set[0]).is_none());
    fail_point(&set[0], rawdoc! { "failCommands": ["find"], "errorCode": 10107 }, 1);
    connection.command("zoo", &rawdoc! { "find": "birds" }).expect_err("a refusal");
    let servers = world.client.servers();
    let deposed = servers.iter().find(|server| *server.address == set[0].address());
    let shown = deposed.expect("it is a member").to_string();
    assert!(shown.contains("code 10107"), "{shown}");
    drop(connection);
    world.client.close();
}

/// The set knows the seed by another address, which is used instead.
// ST-12
fn the_seed_has_another_name(shell: Shell) {
    let [a, b] = [member(Role::Primary), member(Role::Secondary)];
    let port = a.address().port().expect("a port");
    join(&[&a, &b]);
    let seed: ServerAddress = format!("localhost:{port}").parse().expect("an address");
    let world = World::at(shell, std::slice::from_ref(&seed), "replicaSet=rs0");
    world.until("found", |world| {
        kind_of(world, &a) == Some(ServerKind::RsPrimary) && kind_of(world, &b).is_some()
    });
    world.ping();
    let reason = world.exclusion(&seed).expect("it is not used");
    assert!(reason.contains(&a.address().to_string()), "{reason}");
    world.client.close();
    [a, b].iter().for_each(|endpoint| until_open(endpoint, 0));
}

/// Each of them says what to do.
// ST-09
fn several_standalone_servers(shell: Shell) {
    let [a, b] = [standalone(), standalone()];
    let world = World::of(shell, &[&a, &b], "serverSelectionTimeoutMS=300");
    world.until("refused", |world| world.client.servers().is_empty());
    let error = world.client.check_out(&Selector::Any).expect_err("neither is used");
    assert!(error.to_string().contains("name it alone, or leave it out"), "{error}");
    world.client.close();
    [a, b].iter().for_each(|endpoint| until_open(endpoint, 0));
}

// ST-10
fn a_router_among_members(shell: Shell) {
    let [a, router] = [member(Role::Primary), start(Topology::Mongos)];
    let world = World::of(shell, &[&a, &router], "replicaSet=rs0");
    world.ping();
    world.until("refused", |world| !has(world, &router));
    world.ping();
    assert!(world.exclusion(&router.address()).is_some());
    until_open(&router, 0);
    world.client.close();
}

/// A reply that names 20,000 members costs none of them a pool.
fn members_without_end(shell: Shell) {
    let only = member(Role::Primary);
    let hosts: Vec<_> = (0..20_000).map(|at| format!("host-{at}.invalid:27017")).collect();
    change_set(&only, |set| ReplicaSet { hosts, ..set });
    let world = World::of(shell, &[&only], "replicaSet=rs0&serverSelectionTimeoutMS=300");
    world.until("refused", |world| world.error().is_some());
    let error = world.client.check_out(&Selector::Primary).expect_err("it is not believed");
    assert!(error.to_string().contains("more than 100 servers"), "{error}");
    assert_eq!(world.client.servers().len(), 1);
    assert_eq!(world.count("ConnectionPoolCreated"), 1);
    join(&[&only]);
    world.until_all_known();
    world.ping();
    world.client.close();
}

// ST-06
fn a_set_that_changes_its_name(shell: Shell) {
    let [a, b] = [member(Role::Primary), member(Role::Secondary)];
    join(&[&a, &b]);
    let world = World::of(shell, &[&a, &b], "heartbeatFrequencyMS=500");
    world.ping();
    world.until_all_known();
    change_set(&b, |set| ReplicaSet { name: "rs1".to_owned(), ..set });
    world.until("refused", |world| kind_of(world, &b).is_none());
    let why = || world.exclusion(&b.address()).unwrap_or_default();
    until_so(|| if why().contains("`rs1`, not to `rs0`") { Ok(()) } else { Err(why()) });
    world.ping();
    world.client.close();
}

/// A primary of an older configuration is not believed; nor is it asked without pause.
// ST-07
fn a_set_version_that_goes_back(shell: Shell) {
    let only = member(Role::Primary);
    let of_version = |set_version| change_set(&only, |set| ReplicaSet { set_version, ..set });
    of_version(5);
    let world = World::of(shell, &[&only], "replicaSet=rs0&serverSelectionTimeoutMS=300");
    world.until("found", |world| kind_of(world, &only) == Some(ServerKind::RsPrimary));
    of_version(4);
    world.until("stale", |world| kind_of(world, &only).is_none());
    let error = world.command(&rawdoc! { "ping": 1 }).expect_err("there is no primary");
    let text = error.to_string();
    assert!(text.contains("primary marked stale due to electionId/setVersion mismatch"), "{text}");
    let hellos = commands(&only, "hello");
    thread::sleep(Duration::from_secs(1));
    assert!(commands(&only, "hello") - hellos <= 3, "{} checks", commands(&only, "hello") - hellos);
    of_version(6);
    world.until("believed", |world| kind_of(world, &only) == Some(ServerKind::RsPrimary));
    world.ping();
    world.client.close();
}

/// Its secondary names it, so that it is looked at again and again: with each reply of the secondary, and not more
/// often.
fn a_primary_that_does_not_list_itself(shell: Shell) {
    let [a, b] = [member(Role::Primary), member(Role::Secondary)];
    join(&[&a, &b]);
    let only = vec![b.address().to_string()];
    change_set(&a, |set| ReplicaSet { hosts: only, ..set });
    let options = "replicaSet=rs0&heartbeatFrequencyMS=500&serverSelectionTimeoutMS=300";
    let world = World::of(shell, &[&a, &b], options);
    let expected = format!(
        "{} is not used: hello: the server is {0} and the primary of its replica set, and does not list {0} as a \
         member: correct the configuration of the set",
        a.address()
    );
    // It is told when the primary has just been looked at, which is nearly always.
    until_so(|| match world.client.check_out(&Selector::Primary).err() {
        Some(error) if error.to_string().contains(&expected) => Ok(()),
        other => Err(format!("{:?}", other.map(|error| error.to_string()))),
    });
    let created = world.count("ConnectionPoolCreated");
    thread::sleep(Duration::from_secs(2));
    let again = world.count("ConnectionPoolCreated") - created;
    assert!(again <= 8, "{again} pools");
    join(&[&a, &b]);
    world.until("believed", |world| kind_of(world, &a) == Some(ServerKind::RsPrimary));
    world.ping();
    world.client.close();
}

// SS-02, SS-06
fn a_read_preference_is_followed(shell: Shell) {
    let set = three();
    let world = World::of(shell, &[&set[0]], "replicaSet=rs0&localThresholdMS=10000");
    until_three(&world);
    let of_mode = |mode| Selector::ReadPreference(ReadPreference::of_mode(mode));
    let on = |selector: &Selector| format!("{:?}", world.check_out(selector));
    let primary = format!("{:?}", set[0].address());
    assert!(on(&of_mode(ReadPreferenceMode::Primary)).contains(&primary));
    assert!(on(&of_mode(ReadPreferenceMode::PrimaryPreferred)).contains(&primary));
    for mode in [ReadPreferenceMode::Secondary, ReadPreferenceMode::SecondaryPreferred] {
        assert!(!on(&of_mode(mode)).contains(&primary));
    }
    let mut stale = ReadPreference::of_mode(ReadPreferenceMode::Secondary);
    stale.max_staleness = Some(Duration::from_secs(5));
    let error = world.client.check_out(&Selector::ReadPreference(stale)).err();
    let error = error.expect("too small");
    assert!(error.to_string().contains("maxStalenessSeconds is 5s"), "{error}");
    world.client.close();
}
