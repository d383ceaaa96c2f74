//! What goes wrong, when its time has come.

use std::collections::BTreeSet;
use std::time::Duration;

use bson::rawdoc;
use cenote_core::wire::{Flags, Ids, MessageLimit, MessageWriter};
use cenote_endpoint::{Ending, Fault, Script, Server};
use turmoil::Sim;

use crate::worlds::client_clock::ClientClock;
use crate::worlds::endpoint::{Host, NAME};
use crate::worlds::plan::{COMMAND, Mischief, Plan, Trouble};

pub(crate) const APP: &str = "app";

/// Begins with what was planned and ends it.
pub(crate) struct Chaos {
    /// What is still to be done, the last first.
    steps: Vec<(Duration, Step)>,
    latency: Duration,
    clock: ClientClock,
    /// What of the faults has affected a connection.
    pub(crate) kinds: BTreeSet<&'static str>,
}

enum Step {
    Begin(Trouble),
    End(Trouble),
    /// The client's clock jumps.
    Jump(Duration),
    Mischief(Mischief),
    /// All is well with the server from now on.
    Mend,
}

impl Chaos {
    pub(crate) fn new(plan: &Plan, clock: ClientClock) -> Self {
        let mut steps: Vec<_> = plan
            .troubles
            .iter()
            .flat_map(|&(from, until, trouble)| {
                [(from, Step::Begin(trouble)), (until, Step::End(trouble))]
            })
            .collect();
        let jumps = plan.troubles.iter().filter_map(|&(_, until, trouble)| {
            let Trouble::Pause { time, rest } = trouble else { return None };
            Some((until - rest, Step::Jump(time)))
        });
        steps.extend(jumps);
        let mischief = plan.mischief.iter().cloned();
        steps.extend(mischief.map(|(at, mischief)| (at, Step::Mischief(mischief))));
        steps.push((plan.active, Step::Mend));
        steps.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Self { steps, latency: plan.latency, clock, kinds: BTreeSet::new() }
    }

    /// Does what is due.
    pub(crate) fn advance(&mut self, sim: &mut Sim<'_>, host: &Host) {
        let now = sim.elapsed();
        while self.steps.last().is_some_and(|(at, _)| *at <= now) {
            let Some((_, step)) = self.steps.pop() else { return };
            match step {
                Step::Begin(trouble) => self.begin(trouble, sim),
                Step::End(trouble) => self.end(trouble, sim),
                Step::Jump(time) => {
                    self.kinds.insert("fault: paused client");
                    self.clock.jump(time);
                }
                Step::Mischief(mischief) => {
                    self.kinds.extend(misbehave(mischief, host, now));
                }
                Step::Mend => host.act(now, |server, now| {
                    server.clear_faults(now);
                    block(server, 0, 0);
                }),
            }
        }
    }

    fn begin(&self, trouble: Trouble, sim: &mut Sim<'_>) {
        match trouble {
            Trouble::Crash => sim.crash(NAME),
            Trouble::Partition => sim.partition(APP, NAME),
            Trouble::ToServer => sim.partition_oneway(APP, NAME),
            Trouble::FromServer => sim.partition_oneway(NAME, APP),
            Trouble::Hold | Trouble::Pause { .. } => sim.hold(APP, NAME),
            Trouble::Slow(latency) => sim.set_link_latency(APP, NAME, latency),
        }
    }

    fn end(&self, trouble: Trouble, sim: &mut Sim<'_>) {
        match trouble {
            Trouble::Crash => sim.bounce(NAME),
            Trouble::Partition => sim.repair(APP, NAME),
            Trouble::ToServer => sim.repair_oneway(APP, NAME),
            Trouble::FromServer => sim.repair_oneway(NAME, APP),
            Trouble::Hold | Trouble::Pause { .. } => sim.release(APP, NAME),
            Trouble::Slow(_) => sim.set_link_latency(APP, NAME, self.latency),
        }
    }
}

/// Returns what of it has affected a connection, or will.
fn misbehave(mischief: Mischief, host: &Host, now: Duration) -> Option<&'static str> {
    host.act(now, |server, now| match mischief {
        Mischief::Break(ending) => {
            server.break_connections(now, ending, None);
            None
        }
        Mischief::BreakIdle(ending) => {
            let kind = match ending {
                Ending::Reset => "fault: idle RST",
                Ending::Close | Ending::Fin | Ending::Stall | _ => "fault: idle FIN",
            };
            (server.break_idle(now, ending) > 0).then_some(kind)
        }
        Mischief::Unasked => {
            let sent = server.send_unasked(now, &unasked_reply());
            (sent > 0).then_some("fault: unasked reply")
        }
        Mischief::Fault { fault, command, times } => {
            let is_hostile = matches!(fault, Fault::HostileTexts { .. });
            let hostile = is_hostile.then_some("fault: hostile texts");
            let crossed = (fault == Fault::Crossed).then_some("fault: crossed replies");
            let kind = hostile.or(crossed);
            server.set_fault(now, Script::new(fault).at_command(command, 0).times(times));
            kind
        }
        Mischief::Block { milliseconds, times } => {
            block(server, milliseconds, times);
            None
        }
    })
}

/// A good reply to a message that the client may have sent long ago.
fn unasked_reply() -> Vec<u8> {
    let mut bytes = Vec::new();
    let ids = Ids { request_id: 1, response_to: 1 };
    let reply = MessageWriter::new(&mut bytes, ids, Flags::NONE, &rawdoc! { "ok": 1.0 });
    reply.finish(MessageLimit::DEFAULT).expect("a message");
    bytes
}

/// For no time, and no times, it is off.
fn block(server: &mut Server, milliseconds: i32, times: i32) {
    let data = rawdoc! {
        "failCommands": [COMMAND], "blockConnection": true, "blockTimeMS": milliseconds,
    };
    let command = if times == 0 {
        rawdoc! { "configureFailPoint": "failCommand", "mode": "off" }
    } else {
        let mode = rawdoc! { "times": times };
        rawdoc! { "configureFailPoint": "failCommand", "mode": mode, "data": data }
    };
    server.set_fail_point(&command).expect("a fail point");
}
