//! What can happen to a server and to the way there.

use std::time::Duration;

use bson::rawdoc;
use cenote_endpoint::{Ending, Fault, Role, ScramFault, Script, Server, Topology};

use crate::simulate::chance::Chance;
use crate::simulate::met::Encounter;

/// One trouble, which begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nobody listens.
    Refuses,
    /// Nobody is answered, on whatever connection.
    Stalls,
    /// Every packet takes ten times as long.
    IsSlow,
    /// All connections are reset, and some that are opened.
    Resets,
    /// All connections are closed in good order.
    Closes,
    /// Some connections are dead in one direction or both, and nobody is told.
    GoesHalfOpen,
    /// The network is cut in two, and whole again later.
    IsCutOff,
    /// Replies come in small pieces.
    Drips,
    /// The process dies and is started again at once.
    Restarts,
    /// The process ends, and another one comes later.
    ShutsDown,
    /// The server shuts down its own direction of some connections.
    HalfCloses,
    /// Replies end in the middle.
    Cuts,
    /// Replies are no messages, or the wrong ones.
    TalksNonsense,
    /// Logins go wrong.
    RefusesLogins,
    /// Connections are closed as soon as they are accepted, or before hello is answered.
    IsOverloaded,
    /// A primary is none any more, or recovers.
    StepsDown,
    /// Commands fail, or are late.
    FailsCommands,
}

impl Trouble {
    /// Every trouble.
    pub const ALL: [Self; 17] = [
        Self::Refuses,
        Self::Stalls,
        Self::IsSlow,
        Self::Resets,
        Self::Closes,
        Self::GoesHalfOpen,
        Self::IsCutOff,
        Self::Drips,
        Self::Restarts,
        Self::ShutsDown,
        Self::HalfCloses,
        Self::Cuts,
        Self::TalksNonsense,
        Self::RefusesLogins,
        Self::IsOverloaded,
        Self::StepsDown,
        Self::FailsCommands,
    ];

    pub(super) const fn encounter(self) -> Encounter {
        match self {
            Self::Refuses => Encounter::Refuses,
            Self::Stalls => Encounter::Stalls,
            Self::IsSlow => Encounter::IsSlow,
            Self::Resets => Encounter::Resets,
            Self::Closes => Encounter::Closes,
            Self::GoesHalfOpen => Encounter::GoesHalfOpen,
            Self::IsCutOff => Encounter::IsCutOff,
            Self::Drips => Encounter::Drips,
            Self::Restarts => Encounter::Restarts,
            Self::ShutsDown => Encounter::ShutsDown,
            Self::HalfCloses => Encounter::HalfCloses,
            Self::Cuts => Encounter::Cuts,
            Self::TalksNonsense => Encounter::TalksNonsense,
            Self::RefusesLogins => Encounter::RefusesLogins,
            Self::IsOverloaded => Encounter::IsOverloaded,
            Self::StepsDown => Encounter::StepsDown,
            Self::FailsCommands => Encounter::FailsCommands,
        }
    }

    /// What the server has of it; the rest is the network's.
    pub(super) fn begin(self, server: &mut Server, now: Duration, chance: &mut Chance) {
        let mut set = |script: Script| {
            server.set_fault(now, script);
        };
        match self {
            Self::Refuses => set(Script::new(Fault::Refuse)),
            Self::Stalls => {
                set(Script::new(Fault::Stall));
                server.break_connections(now, Ending::Stall, None);
            }
            Self::Resets => {
                set(Script::new(Fault::Reset).times(chance.below(8)));
                server.break_connections(now, Ending::Reset, None);
            }
            Self::Closes => server.break_connections(now, Ending::Close, None),
            Self::Drips => {
                let every = Duration::from_micros(chance.between(1, 2_000));
                let bytes = usize::try_from(chance.between(1, 40)).unwrap_or(1);
                set(Script::new(Fault::Drip { bytes, every }));
            }
            Self::Restarts => server.restart(now),
            Self::ShutsDown => server.shut_down(now),
            Self::HalfCloses => set(often(Fault::HalfClose, chance)),
            Self::Cuts => {
                let then = chance.pick(&[Ending::Close, Ending::Reset, Ending::Stall]);
                let then = then.unwrap_or(Ending::Close);
                let bytes = usize::try_from(chance.below(300)).unwrap_or_default();
                set(often(Fault::Cut { bytes, then }, chance));
            }
            Self::TalksNonsense => {
                let fault = nonsense(chance);
                set(often(fault, chance));
            }
            Self::RefusesLogins => set(Script::new(Fault::Scram(cheat(chance)))),
            Self::IsOverloaded => {
                let fault = if chance.flip() { Fault::Close } else { Fault::Reset };
                let script = Script::new(fault);
                let early = chance.flip();
                set(if early { script.at_accept() } else { script.at_command("isMaster", 0) });
            }
            Self::StepsDown => {
                let role = if chance.flip() { Role::Secondary } else { Role::Other };
                take_role(server, now, role);
            }
            Self::FailsCommands => fail_commands(server, chance),
            Self::IsSlow | Self::GoesHalfOpen | Self::IsCutOff => {}
        }
    }

    /// The server is as it should be again. What happened to connections stays so.
    pub(super) fn end(self, server: &mut Server, now: Duration) {
        server.clear_faults(now);
        let off =
            server.set_fail_point(&rawdoc! { "configureFailPoint": "failCommand", "mode": "off" });
        debug_assert!(off.is_ok(), "it can always be switched off");
        if self == Self::ShutsDown {
            server.restart(now);
        }
        take_role(server, now, Role::Primary);
    }
}

/// Of single replies, some or all.
fn often(fault: Fault, chance: &mut Chance) -> Script {
    let script = Script::new(fault);
    let command = chance.pick(&["ping", "isMaster", "saslStart", "saslContinue"]);
    let script = match command.filter(|_| chance.flip()) {
        Some(command) => script.at_command(command, 0),
        None => script,
    };
    if chance.flip() { script.times(chance.between(1, 8)) } else { script }
}

fn nonsense(chance: &mut Chance) -> Fault {
    match chance.below(10) {
        0 => Fault::Garbage { bytes: usize::try_from(chance.between(1, 200)).unwrap_or(1) },
        1 => Fault::Length { value: -1 },
        2 => Fault::Length { value: i32::MAX },
        3 => Fault::Length { value: 17 },
        4 => Fault::OpCode { value: 1 },
        5 => Fault::Checksum,
        6 => Fault::ResponseTo { off_by: 1 },
        7 => Fault::CompressorId { value: 200 },
        8 => Fault::DeepBson { levels: 1_000 },
        _ => Fault::Twice,
    }
}

fn cheat(chance: &mut Chance) -> ScramFault {
    let all = [
        ScramFault::WrongSignature,
        ScramFault::Iterations(4095),
        ScramFault::TruncatedNonce,
        ScramFault::ForeignNonce,
        ScramFault::Endless,
        ScramFault::NoSignature,
        ScramFault::Error,
    ];
    chance.pick(&all).unwrap_or(ScramFault::Error)
}

/// Nothing happens outside of a replica set.
fn take_role(server: &mut Server, now: Duration, role: Role) {
    if let Topology::ReplicaSet(set) = server.topology().clone() {
        if set.role != role {
            server.set_topology(
                now,
                Topology::ReplicaSet(cenote_endpoint::ReplicaSet { role, ..set }),
            );
        }
    }
}

/// Codes that say that the server changes its state, that it has too much to do, that the login was
/// refused, and one that says nothing of the server.
fn fail_commands(server: &mut Server, chance: &mut Chance) {
    let code = chance.pick(&[91, 189, 10107, 11600, 13436, 462, 18, 59]).unwrap_or(91);
    let command = chance.pick(&["ping", "isMaster", "hello", "saslStart", "saslContinue"]);
    let command = command.unwrap_or("ping");
    let mut data = rawdoc! { "failCommands": [command] };
    match chance.below(4) {
        0 => data.append(bson::raw::cstr!("closeConnection"), true),
        1 => {
            data.append(bson::raw::cstr!("blockConnection"), true);
            data.append(bson::raw::cstr!("blockTimeMS"), chance.between(1, 500) as i64);
        }
        2 => {
            data.append(bson::raw::cstr!("errorCode"), code);
            let labels = rawdoc! { "labels": ["SystemOverloadedError", "RetryableError"] };
            if let Ok(labels) = labels.get_array("labels") {
                data.append(bson::raw::cstr!("errorLabels"), labels);
            }
        }
        _ => data.append(bson::raw::cstr!("errorCode"), code),
    }
    let share = 1.0 / chance.between(1, 4) as f64;
    let mode = rawdoc! { "activationProbability": share };
    let command = rawdoc! { "configureFailPoint": "failCommand", "mode": mode, "data": data };
    let set = server.set_fail_point(&command);
    debug_assert!(set.is_ok(), "{set:?}");
}
