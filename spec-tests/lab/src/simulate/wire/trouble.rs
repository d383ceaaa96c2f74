//! What can go wrong with the server and the network.

use std::time::Duration;

use bson::rawdoc;

use crate::simulate::coverage::Situation;
use cenote_endpoint::{Ending, Fault, Role, ScramFault, Script, Server, Topology};
use cenote_replay::random::SplitMix;

/// A temporary fault of the server or the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The server does not listen.
    Refuses,
    /// The server answers on no connection.
    Stalls,
    /// Every packet takes ten times as long.
    IsSlow,
    /// All connections are reset, and some new ones.
    Resets,
    /// All connections are closed orderly.
    Closes,
    /// Some connections lose all packets in one direction or both, without notice.
    GoesHalfOpen,
    /// The network is cut, and reconnected later.
    IsCutOff,
    /// Replies arrive in small pieces.
    Drips,
    /// The process crashes and is restarted at once.
    Restarts,
    /// The process ends, and is restarted later.
    ShutsDown,
    /// The server shuts down its own direction of some connections.
    HalfCloses,
    /// Replies are truncated.
    Cuts,
    /// Replies are invalid or wrong messages.
    TalksNonsense,
    /// Logins fail.
    RefusesLogins,
    /// Connections are closed as soon as they are accepted, or before hello is answered.
    IsOverloaded,
    /// The primary steps down, or recovers.
    StepsDown,
    /// Commands fail or are delayed.
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

    pub(super) const fn situation(self) -> Situation {
        match self {
            Self::Refuses => Situation::Refuses,
            Self::Stalls => Situation::Stalls,
            Self::IsSlow => Situation::IsSlow,
            Self::Resets => Situation::Resets,
            Self::Closes => Situation::Closes,
            Self::GoesHalfOpen => Situation::GoesHalfOpen,
            Self::IsCutOff => Situation::IsCutOff,
            Self::Drips => Situation::Drips,
            Self::Restarts => Situation::Restarts,
            Self::ShutsDown => Situation::ShutsDown,
            Self::HalfCloses => Situation::HalfCloses,
            Self::Cuts => Situation::Cuts,
            Self::TalksNonsense => Situation::TalksNonsense,
            Self::RefusesLogins => Situation::RefusesLogins,
            Self::IsOverloaded => Situation::IsOverloaded,
            Self::StepsDown => Situation::StepsDown,
            Self::FailsCommands => Situation::FailsCommands,
        }
    }

    /// Applies the server's part of the trouble; the rest is the network's.
    pub(super) fn begin(self, server: &mut Server, now: Duration, random: &mut SplitMix) {
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
                set(Script::new(Fault::Reset).times(random.below(8)));
                server.break_connections(now, Ending::Reset, None);
            }
            Self::Closes => server.break_connections(now, Ending::Close, None),
            Self::Drips => {
                let every = Duration::from_micros(random.between(1, 2_000));
                let bytes = usize::try_from(random.between(1, 40)).unwrap_or(1);
                set(Script::new(Fault::Drip { bytes, every }));
            }
            Self::Restarts => server.restart(now),
            Self::ShutsDown => server.shut_down(now),
            Self::HalfCloses => set(often(Fault::HalfClose, random)),
            Self::Cuts => {
                let then = random.pick(&[Ending::Close, Ending::Reset, Ending::Stall]);
                let then = then.unwrap_or(Ending::Close);
                let bytes = usize::try_from(random.below(300)).unwrap_or_default();
                set(often(Fault::Cut { bytes, then }, random));
            }
            Self::TalksNonsense => {
                let fault = nonsense(random);
                set(often(fault, random));
            }
            Self::RefusesLogins => set(Script::new(Fault::Scram(scram_fault(random)))),
            Self::IsOverloaded => {
                let fault = if random.flip() { Fault::Close } else { Fault::Reset };
                let script = Script::new(fault);
                let early = random.flip();
                set(if early { script.at_accept() } else { script.at_command("isMaster", 0) });
            }
            Self::StepsDown => {
                let role = if random.flip() { Role::Secondary } else { Role::Other };
                take_role(server, now, role);
            }
            Self::FailsCommands => fail_commands(server, random),
            Self::IsSlow | Self::GoesHalfOpen | Self::IsCutOff => {}
        }
    }

    /// Repairs the server. Broken connections stay broken.
    pub(super) fn end(self, server: &mut Server, now: Duration) {
        server.clear_faults(now);
        let off =
            server.set_fail_point(&rawdoc! { "configureFailPoint": "failCommand", "mode": "off" });
        debug_assert!(off.is_ok(), "a fail point can always be switched off");
        if self == Self::ShutsDown {
            server.restart(now);
        }
        take_role(server, now, Role::Primary);
    }
}

/// A fault of some or all replies.
fn often(fault: Fault, random: &mut SplitMix) -> Script {
    let script = Script::new(fault);
    let command = random.pick(&["ping", "isMaster", "saslStart", "saslContinue"]);
    let script = match command.filter(|_| random.flip()) {
        Some(command) => script.at_command(command, 0),
        None => script,
    };
    if random.flip() { script.times(random.between(1, 8)) } else { script }
}

fn nonsense(random: &mut SplitMix) -> Fault {
    match random.below(10) {
        0 => Fault::Garbage { bytes: usize::try_from(random.between(1, 200)).unwrap_or(1) },
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

fn scram_fault(random: &mut SplitMix) -> ScramFault {
    let all = [
        ScramFault::WrongSignature,
        ScramFault::Iterations(4095),
        ScramFault::TruncatedNonce,
        ScramFault::ForeignNonce,
        ScramFault::Endless,
        ScramFault::NoSignature,
        ScramFault::Error,
    ];
    random.pick(&all).unwrap_or(ScramFault::Error)
}

/// Changes the role in a replica set; does nothing with another topology.
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

/// The error codes mean that the server changes its state, is overloaded, or refused the login; one is
/// unrelated to the server.
fn fail_commands(server: &mut Server, random: &mut SplitMix) {
    let code = random.pick(&[91, 189, 10107, 11600, 13436, 462, 18, 59]).unwrap_or(91);
    let command = random.pick(&["ping", "isMaster", "hello", "saslStart", "saslContinue"]);
    let command = command.unwrap_or("ping");
    let mut data = rawdoc! { "failCommands": [command] };
    match random.below(4) {
        0 => data.append(bson::raw::cstr!("closeConnection"), true),
        1 => {
            data.append(bson::raw::cstr!("blockConnection"), true);
            data.append(bson::raw::cstr!("blockTimeMS"), random.between(1, 500) as i64);
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
    let share = 1.0 / random.between(1, 4) as f64;
    let mode = rawdoc! { "activationProbability": share };
    let command = rawdoc! { "configureFailPoint": "failCommand", "mode": mode, "data": data };
    let set = server.set_fail_point(&command);
    debug_assert!(set.is_ok(), "{set:?}");
}
