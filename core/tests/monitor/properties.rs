//! Any inputs in any order: nothing panics, and what is promised to embedders holds.

use std::collections::BTreeMap;

use cenote_core::error::{ConnectionError, Stage};
use cenote_core::monitor::{Action, Event, Input, Line, MonitorOptions, SocketId};
use cenote_core::sdam::{self, Context};
use cenote_core::uri::ServerMonitoringMode;
use proptest::prelude::*;

use crate::monitor::world::{MS, World, hello, primary, refusal, reset, secondary, standalone};

/// What happens; sockets by how long ago they were asked for.
#[derive(Clone, Debug)]
enum Step {
    Opened { age: u64, reply: usize },
    Replied { age: u64, reply: usize, more_to_come: bool },
    Failed { age: u64, timeout: bool },
    RequestCheck,
    ApplicationFailed { error: usize },
    Wait { millis: u32 },
    UntilDue,
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (age, reply) = (0_u64..4, 0_usize..6);
    let step = prop_oneof![
        6 => (age.clone(), reply.clone()).prop_map(|(age, reply)| Step::Opened { age, reply }),
        6 => (age.clone(), reply, any::<bool>())
            .prop_map(|(age, reply, more_to_come)| Step::Replied { age, reply, more_to_come }),
        3 => (age, any::<bool>()).prop_map(|(age, timeout)| Step::Failed { age, timeout }),
        2 => Just(Step::RequestCheck),
        2 => (0_usize..3).prop_map(|error| Step::ApplicationFailed { error }),
        4 => (0_u32..12_000).prop_map(|millis| Step::Wait { millis }),
        8 => Just(Step::UntilDue),
        1 => prop::bool::weighted(0.1).prop_map(|close| {
            if close { Step::Close } else { Step::RequestCheck }
        }),
    ];
    proptest::collection::vec(step, 0..120)
}

fn reply(index: usize) -> bson::RawDocumentBuf {
    [standalone(), primary(1), primary(2), secondary(2), secondary(3), refusal()][index].clone()
}

fn error(index: usize) -> ConnectionError {
    [
        ConnectionError::network(Stage::Operation, "reset"),
        ConnectionError::timeout(Stage::Operation, MS),
        ConnectionError::network(Stage::Authentication, "reset"),
    ][index]
        .clone()
}

fn input(world: &World, newest: u64, step: &Step) -> Option<Input> {
    let socket = |age: &u64| SocketId(newest.saturating_sub(*age));
    Some(match step {
        Step::Opened { reply: index, .. } if *index == 5 => return None,
        Step::Opened { age, reply: index } => {
            let hello = Box::new(hello(&reply(*index)));
            Input::Opened { socket: socket(age), hello, round_trip: MS }
        }
        Step::Replied { age, reply: index, more_to_come } => Input::Replied {
            socket: socket(age),
            reply: reply(*index),
            more_to_come: *more_to_come,
        },
        Step::Failed { age, timeout } => {
            let error = if *timeout { ConnectionError::timeout(Stage::Tcp, MS) } else { reset() };
            Input::Failed { socket: socket(age), error }
        }
        Step::RequestCheck => Input::RequestCheck,
        Step::ApplicationFailed { error: index } => {
            let context = Context {
                load_balanced: false,
                current_generation: true,
                topology_version: world.monitor.topology_version(),
            };
            let error = error(*index);
            let verdict = sdam::verdict(&context, &error);
            Input::ApplicationFailed { error, verdict }
        }
        Step::Wait { .. } | Step::UntilDue => Input::Timer,
        Step::Close => Input::Close,
    })
}

/// What an embedder would see.
#[derive(Default)]
struct Witness {
    open: BTreeMap<u64, Line>,
    newest: u64,
    /// Heartbeats that have begun and not ended.
    beating: usize,
    is_known: bool,
    is_closed: bool,
    /// When the last check ended, and whether that was a failure of a known server just now.
    last_end: Option<u64>,
    has_just_failed: bool,
}

impl Witness {
    fn see(&mut self, now: u64, action: &Action, before: bool) {
        match action {
            Action::Open { socket, line } => {
                assert_eq!(socket.0, self.newest + 1);
                self.newest = socket.0;
                // SD-50: one socket for each purpose.
                assert!(!self.open.values().any(|other| other == line), "{line:?} twice");
                self.open.insert(socket.0, *line);
            }
            Action::Send { socket, .. } => assert!(self.open.contains_key(&socket.0)),
            Action::Close { socket } => {
                assert!(self.open.remove(&socket.0).is_some(), "closed once");
            }
            Action::MarkReady => assert!(self.is_known, "SD-03"),
            Action::ClearPool { .. } => assert!(!self.is_known, "SD-06"),
            Action::EmitEvent(Event::ServerHeartbeatStarted { awaited, .. }) => {
                // SM-01
                assert_eq!(self.beating, 0, "one check at a time");
                self.beating = 1;
                // SM-05, but for streams, and the second attempt (SM-06).
                let early = self.last_end.is_some_and(|last| now < last + 500_000_000);
                let at_once = self.has_just_failed && before;
                assert!(!early || *awaited || at_once, "two checks within 500 ms");
            }
            Action::EmitEvent(
                Event::ServerHeartbeatSucceeded { .. } | Event::ServerHeartbeatFailed { .. },
            ) => {
                assert_eq!(self.beating, 1, "each start has one end");
                self.beating = 0;
                self.last_end = Some(now);
                self.has_just_failed =
                    matches!(action, Action::EmitEvent(Event::ServerHeartbeatFailed { .. }));
            }
            Action::EmitEvent(Event::ServerDescriptionChanged { new, .. }) => {
                self.is_known = new.is_known();
            }
            Action::EmitEvent(other) => panic!("{other:?}"),
        }
        assert!(!self.is_closed || matches!(action, Action::Close { .. }));
    }
}

fn play(options: MonitorOptions, steps: &[Step]) -> String {
    let mut world = World::with(options);
    let (mut witness, mut log) = (Witness::default(), String::new());
    let look = |world: &mut World, witness: &mut Witness, log: &mut String, before: bool| {
        for action in std::mem::take(&mut world.actions) {
            log.push_str(&format!("{action:?}\n"));
            witness.see(world.now.as_nanos(), &action, before);
        }
    };
    look(&mut world, &mut witness, &mut log, false);
    for step in steps {
        match step {
            Step::Wait { millis } => world.wait(MS * *millis),
            Step::UntilDue => {
                let due = world.monitor.next_deadline();
                due.into_iter().for_each(|due| world.now = world.now.max(due.at));
            }
            Step::Opened { .. }
            | Step::Replied { .. }
            | Step::Failed { .. }
            | Step::RequestCheck
            | Step::ApplicationFailed { .. }
            | Step::Close => {}
        }
        let before = world.monitor.description().is_known();
        witness.has_just_failed = false;
        let Some(input) = input(&world, witness.newest, step) else { continue };
        witness.is_closed |= matches!(step, Step::Close);
        // A refused input leaves no trace.
        if world.try_feed(input).is_err() {
            assert!(world.actions.is_empty());
        }
        look(&mut world, &mut witness, &mut log, before);
        assert_eq!(witness.is_known, world.monitor.description().is_known());
        assert!(witness.open.len() <= 2, "SD-50");
        assert!(!witness.is_closed || witness.open.is_empty(), "SM-13");
        // There is always a next check, or one under way.
        let goes_on = witness.beating == 1 || world.monitor.next_deadline().is_some();
        assert!(goes_on || witness.is_closed);
    }
    log
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens(
        steps in steps(),
        polls in any::<bool>(),
        set_name in any::<bool>(),
    ) {
        let mut options = MonitorOptions::default();
        options.mode = if polls { ServerMonitoringMode::Poll } else { ServerMonitoringMode::Auto };
        options.set_name = set_name.then(|| "rs0".to_owned());
        let first = play(options.clone(), &steps);
        // The same again is the same.
        prop_assert_eq!(first, play(options, &steps));
    }
}
