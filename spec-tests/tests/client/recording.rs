//! Traces of a client: a file for each of its pools, and one for its topology, on one clock.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::client::Selector;
use cenote_core::connect::ServerKind;
use cenote_core::error::Stage;
use cenote_core::pool::{Input as PoolInput, Instant};
use cenote_core::topology::{Action, Event};
use cenote_core::trace::topology::{
    self, SelectionOutcome, SelectionRecord, StepInput, TraceHeader,
};
use cenote_core::trace::{Disclosure, Replay};
use cenote_endpoint::{Endpoint, ReplicaSet, Role, Server};
use cenote_shell::builder::BuildError;
use cenote_shell::client::ClientBuildError;
use cenote_shell::connection::operation::OperationOptions;
use cenote_shell::trace::{TOPOLOGY, file_name};
use tempfile::tempdir;

use crate::shells::{ClientSetup, Recordings, Shell, on_all_runtimes};
use crate::world::{World, change_set, fail_point, join, member, three};

on_all_runtimes!(
    a_set_that_changes_is_recorded,
    what_a_client_did_last_is_dumped,
    the_first_timeout_dumps_the_topology_too,
    what_feeds_a_pool_is_in_its_trace,
    what_is_left_out_is_nowhere,
    where_nothing_can_be_written_there_is_no_client,
);

/// What a trace of a topology tells, which must replay to its end as it was recorded.
struct Topology {
    header: TraceHeader,
    /// What became of servers: the time, the address, and what it is; `None` is Unknown.
    changes: Vec<(Instant, String, Option<ServerKind>)>,
    /// Servers that came, and those that went.
    added: Vec<(Instant, String)>,
    removed: Vec<(Instant, String)>,
    /// Requests for a server that waited.
    selections: Vec<SelectionRecord>,
    last: String,
}

impl Topology {
    fn read(trace: &[u8]) -> Self {
        let mut replay = topology::Replay::new(trace).expect("a trace");
        let (mut changes, mut added, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        let mut selections = Vec::new();
        loop {
            let mut actions = Vec::new();
            let Some(step) = replay.step(&mut actions).expect("it goes the way it went") else {
                break;
            };
            if let StepInput::Selection(selection) = step.input {
                selections.push(selection);
            }
            for action in actions {
                match action {
                    Action::AddServer { address, .. } => added.push((step.at, address.to_string())),
                    Action::RemoveServer { address, .. } => {
                        removed.push((step.at, address.to_string()));
                    }
                    Action::EmitEvent(Event::ServerDescriptionChanged { address, new, .. }) => {
                        changes.push((step.at, address.to_string(), new.kind()));
                    }
                    Action::EmitEvent(_) => {}
                }
            }
        }
        let (header, last) = (replay.header().clone(), replay.topology().description().to_string());
        Self { header, changes, added, removed, selections, last }
    }

    /// When a server became that, the first time after another.
    fn became(&self, endpoint: &Endpoint, kind: Option<ServerKind>, after: Instant) -> Instant {
        let address = endpoint.address().to_string();
        let mut found = self
            .changes
            .iter()
            .filter(|(at, of, its)| *at > after && *of == address && *its == kind);
        found
            .next()
            .map(|(at, ..)| *at)
            .unwrap_or_else(|| panic!("{address} never became {kind:?}"))
    }
}

/// When the pool began, and the inputs of a trace with their times, which must replay as it was recorded.
fn pool(trace: &[u8]) -> (Instant, i64, Vec<(Instant, PoolInput<cenote_core::trace::Traced>)>) {
    let mut replay = Replay::new(trace).expect("a trace");
    let mut inputs = Vec::new();
    while let Some(step) = replay.step(&mut |_| {}).expect("it goes the way it went") {
        inputs.push((step.at, step.input));
    }
    (replay.header().start, replay.header().origin, inputs)
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn until_three(world: &World) {
    world.until("found", |world| {
        world.kinds().len() == 3 && world.kinds().iter().all(Option::is_some)
    });
}

// One seed, an election, a primary that dies, a member that leaves and returns.
fn a_set_that_changes_is_recorded(shell: Shell) {
    let folder = tempdir().expect("a folder");
    let set = three();
    let recording = Recordings { into: Some(folder.path().into()), ..Recordings::default() };
    let options = "replicaSet=rs0&heartbeatFrequencyMS=500&connectTimeoutMS=2000";
    let world = World::recorded(shell, &[&set[0]], options, &recording);
    until_three(&world);
    world.ping();
    join(&[&set[0], &set[1]]);
    world.until("gone", |world| world.client.servers().len() == 2);
    join(&set.each_ref());
    until_three(&world);
    set[0].with(Server::shut_down);
    world.until("lost", |world| world.client.topology().primary().is_none());
    let limit = OperationOptions::new().with_timeout(Duration::from_millis(50));
    let outcome = world.client.check_out_with(&Selector::Primary, limit);
    assert!(outcome.is_err(), "there is no primary");
    set[1].with(Server::step_up);
    world.until("elected", |world| {
        world.client.topology().primary().is_some_and(|(it, _)| **it == set[1].address())
    });
    world.until("lost", |world| world.client.servers()[0].kind.is_none());
    world.ping();
    change_set(&set[0], |set| ReplicaSet { role: Role::Secondary, ..set });
    set[0].with(Server::restart);
    world.until("back", |world| world.client.servers()[0].kind == Some(ServerKind::RsSecondary));
    world.client.close();
    world.client.end_recording().expect("complete traces");

    let topology = Topology::read(&read(folder.path(), TOPOLOGY));
    assert_eq!(topology.last, "Unknown", "it was closed");
    let in_vain = topology.selections.iter().any(|selection| {
        selection.wanted == "the primary"
            && matches!(selection.outcome, SelectionOutcome::Failed(_))
    });
    assert!(in_vain, "{:?}", topology.selections);
    let start = topology.header.start;
    let primary = Some(ServerKind::RsPrimary);
    let first = topology.became(&set[0], primary, start);
    let lost = topology.became(&set[0], None, first);
    let elected = topology.became(&set[1], primary, first);
    topology.became(&set[0], Some(ServerKind::RsSecondary), lost.max(elected));
    // The seed was there before the trace.
    let addresses = |told: &[(Instant, String)]| {
        let mut addresses: Vec<_> = told.iter().map(|(_, address)| address.clone()).collect();
        addresses.sort();
        addresses
    };
    let [a, b, c] = set.each_ref().map(|it| it.address().to_string());
    let sorted = |mut addresses: Vec<String>| {
        addresses.sort();
        addresses
    };
    assert_eq!(addresses(&topology.added), sorted(vec![b.clone(), c.clone(), c.clone()]));
    assert_eq!(addresses(&topology.removed), sorted(vec![a, b, c.clone(), c]));

    // A pool that was found later begins then, on the same clock.
    let names: Vec<_> = set.iter().map(|it| file_name(&it.address())).collect();
    let second = names[2].replace(".bson", ".2.bson");
    for name in names.iter().chain([&second]) {
        let (_, origin, inputs) = pool(&read(folder.path(), name));
        assert_eq!(origin, topology.header.origin, "{name}");
        assert!(matches!(inputs.last(), Some((_, PoolInput::Close))), "{name}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 5);
    let [(began, ..), (again, ..)] = [&names[2], &second].map(|it| pool(&read(folder.path(), it)));
    let came: Vec<_> =
        topology.added.iter().filter(|(_, it)| *it == set[2].address().to_string()).collect();
    assert!(start < came[0].0 && came[0].0 <= began && began < came[1].0 && came[1].0 <= again);
    // The primary's pool is cleared under the lock under which the topology learns why.
    let (_, _, inputs) = pool(&read(folder.path(), &names[0]));
    let cleared = inputs.iter().find(|(_, input)| matches!(input, PoolInput::Clear { .. }));
    let (cleared, _) = cleared.expect("its server died");
    assert!(
        lost <= *cleared && cleared.saturating_since(lost).as_millis() < 1_000,
        "{lost} {cleared}"
    );
}

/// Of a client that goes on.
fn what_a_client_did_last_is_dumped(shell: Shell) {
    let folder = tempdir().expect("a folder");
    let set = three();
    let recording = Recordings { flight_recorder: Some(64 << 10), ..Recordings::default() };
    let world = World::recorded(shell, &[&set[1]], "replicaSet=rs0", &recording);
    until_three(&world);
    #[cfg(unix)]
    let elsewhere = {
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, "precious").expect("a file");
        std::os::unix::fs::symlink(&elsewhere, folder.path().join(TOPOLOGY)).expect("a link");
        elsewhere
    };
    world.client.dump_traces(folder.path()).expect("four dumps");
    #[cfg(unix)]
    assert_eq!(fs::read_to_string(elsewhere).expect("a file"), "precious");
    let topology = Topology::read(&read(folder.path(), TOPOLOGY));
    for kind in ["ReplicaSetWithPrimary rs0", "RSPrimary of rs0", "RSSecondary of rs0"] {
        assert!(topology.last.contains(kind), "{}", topology.last);
    }
    for endpoint in &set {
        let (_, origin, _) = pool(&read(folder.path(), &file_name(&endpoint.address())));
        assert_eq!(origin, topology.header.origin);
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 4 + usize::from(cfg!(unix)));
    world.client.close();
    // Without recorders there is nothing to be written.
    let world = World::of(shell, &[&set[0]], "replicaSet=rs0");
    assert!(world.client.dump_traces(folder.path()).is_err());
    world.client.end_recording().expect("nothing to wait for");
    world.client.close();
}

/// The step of the client, by a number that counts also what the flight recorder has lost; and the time, though no
/// subscriber asks for it.
fn what_feeds_a_pool_is_in_its_trace(shell: Shell) {
    let folder = tempdir().expect("a folder");
    let set = [member(Role::Primary), member(Role::Secondary)];
    join(&set.each_ref());
    let recordings = Recordings { flight_recorder: Some(4 << 10), ..Recordings::default() };
    let uri = format!("mongodb://{}/?replicaSet=rs0", set[0].address());
    let setup = ClientSetup { recordings, ..ClientSetup::default() };
    let client = shell.build_client(&uri, setup).expect("good options");
    let until_primary = |wanted: Option<&Endpoint>| {
        let wanted = wanted.map(Endpoint::address);
        let is_so = || client.topology().primary().map(|(it, _)| (**it).clone()) == wanted;
        while !is_so() {
            thread::sleep(Duration::from_millis(1));
        }
    };
    until_primary(Some(&set[0]));
    for round in 1..=20 {
        let [old, new] = [&set[(round + 1) % 2], &set[round % 2]];
        old.with(Server::step_down);
        until_primary(None);
        new.with(Server::step_up);
        until_primary(Some(new));
    }
    let lost = &set[0];
    fail_point(lost, rawdoc! { "failCommands": ["find"], "errorCode": 91 }, 1);
    let failed = client.command("shop", &rawdoc! { "find": "orders" });
    assert!(failed.is_err_and(|error| error.to_string().contains("code 91")));
    until_primary(Some(lost));
    lost.with(Server::shut_down);
    until_primary(None);
    client.dump_traces(folder.path()).expect("three dumps");
    client.close();

    let topology = read(folder.path(), TOPOLOGY);
    let mut replay = topology::Replay::new(topology.as_slice()).expect("a trace");
    assert!(replay.header().steps_before > 0, "it has lost the beginning");
    let step = || replay.step(&mut |_| {}).expect("it goes the way it went");
    let told: BTreeMap<_, _> =
        std::iter::from_fn(step).map(|step| (step.client_step, step)).collect();
    let trace = read(folder.path(), &file_name(&lost.address()));
    let mut replay = Replay::new(trace.as_slice()).expect("a trace");
    let step = || replay.step(&mut |_| {}).expect("it goes the way it went");
    let steps: Vec<_> = std::iter::from_fn(step).collect();
    let clears: Vec<_> =
        steps.iter().filter(|it| matches!(it.input, PoolInput::Clear { .. })).collect();
    let causes = clears.iter().map(|it| &told[&it.follows.expect("a step of the client")]);
    for (clear, cause) in clears.iter().zip(causes) {
        assert_eq!(cause.server.as_deref(), Some(&lost.address()));
        assert!(cause.at <= clear.at, "{} comes before {}", clear.at, cause.at);
    }
    let [refused, gone, ..] = clears.as_slice() else { panic!("{} clears", clears.len()) };
    // A monitor has found that it is gone, and a connection that it is shutting down.
    let mut failures = steps.iter().flat_map(|it| &it.stages).filter(|it| it.failed.is_some());
    let failure = failures.next().expect("the command's");
    assert_eq!((failure.connection, failure.stage), (1, Stage::Operation));
    assert_eq!((failure.failed, failures.next()), (refused.follows, None));
    assert_ne!(failure.failed, gone.follows);
    let story =
        Command::new(env!("CARGO_BIN_EXE_cenote")).arg("replay").arg(folder.path()).output();
    let story = String::from_utf8(story.expect("it starts").stdout).expect("a text");
    let by_connection = format!("; by c1 of the pool of {}", lost.address());
    let told: Vec<_> = story.lines().filter(|line| line.contains(&by_connection)).collect();
    assert!(matches!(&*told, [told] if told.contains("code 91")), "{story}");
}

/// The pool that timed out, and what the servers said before.
fn the_first_timeout_dumps_the_topology_too(shell: Shell) {
    let folder = tempdir().expect("a folder");
    let set = [member(Role::Primary)];
    join(&set.each_ref());
    let recording = Recordings { dumps: Some(folder.path().into()), ..Recordings::default() };
    let options = "replicaSet=rs0&maxPoolSize=1&waitQueueTimeoutMS=1000";
    let world = World::recorded(shell, &[&set[0]], options, &recording);
    world.until_all_known();
    let held = world
        .client
        .pool(&set[0].address())
        .expect("of this client")
        .check_out()
        .expect("a connection");
    assert!(
        world.client.pool(&set[0].address()).expect("of this client").check_out().is_err(),
        "there is only one"
    );
    drop(held);
    // Waits until what is under way is written.
    world.client.end_recording().expect("dumps");
    world.client.close();
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("a file").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort_by_key(|name| name.contains("topology"));
    let [of_pool, of_topology] = names.as_slice() else { panic!("{names:?}") };
    assert!(of_pool.ends_with("-wait-queue-timeout.bson"), "{of_pool}");
    assert!(of_topology.ends_with("-topology-wait-queue-timeout.bson"), "{of_topology}");
    let (_, origin, inputs) = pool(&read(folder.path(), of_pool));
    assert!(!inputs.is_empty());
    let topology = Topology::read(&read(folder.path(), of_topology));
    assert_eq!(topology.header.origin, origin);
    assert!(topology.last.contains(": RSPrimary of rs0"), "{}", topology.last);
}

fn what_is_left_out_is_nowhere(shell: Shell) {
    for (addresses, stand_in) in [(Disclosure::Hashed, 17), (Disclosure::Omitted, 2)] {
        let folder = tempdir().expect("a folder");
        let set = three();
        let recording = Recordings {
            into: Some(folder.path().into()),
            disclosure: [Disclosure::Omitted, addresses],
            ..Recordings::default()
        };
        let world = World::recorded(shell, &[&set[0]], "replicaSet=rs0", &recording);
        until_three(&world);
        world.client.close();
        world.client.end_recording().expect("complete traces");
        let trace = read(folder.path(), TOPOLOGY);
        for endpoint in &set {
            let address = endpoint.address().to_string();
            assert!(!String::from_utf8_lossy(&trace).contains(&address), "{address}");
        }
        let topology = Topology::read(&trace);
        assert!(topology.header.is_redacted);
        assert_eq!(topology.removed.len(), 3);
        let is_stand_in =
            |(_, name): &(Instant, String)| name.starts_with('#') && name.len() == stand_in;
        assert!(topology.removed.iter().all(is_stand_in), "{:?}", topology.removed);
        // The same stands for the address in the trace of the pool.
        let header = Replay::new(&*read(folder.path(), &file_name(&set[0].address())))
            .expect("a trace")
            .header()
            .clone();
        let name = header.address.unwrap_or_default();
        let is_named = topology.removed.iter().any(|(_, of)| *of == name);
        assert_eq!(is_named, addresses == Disclosure::Hashed, "{name}");
    }
}

/// And no loop, no thread and no pool of those that were there already.
fn where_nothing_can_be_written_there_is_no_client(shell: Shell) {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let recordings = Recordings { into: Some(file), ..Recordings::default() };
    let setup = ClientSetup { recordings, ..ClientSetup::default() };
    let uri = "mongodb://127.0.0.1:1,127.0.0.1:2";
    let error = shell.build_client(uri, setup).err().expect("it is a file");
    assert!(matches!(error, ClientBuildError::Pool(BuildError::Recording(_))), "{error}");
}
