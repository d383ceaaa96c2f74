//! What goes wrong, when its time has come.

use std::time::Duration;

use bson::rawdoc;
use cenote_endpoint::{Script, Server};
use turmoil::Sim;

use crate::endpoint::{Host, NAME};
use crate::plan::{Mischief, Plan, Trouble};

pub(crate) const APP: &str = "app";

/// Begins with what was planned and ends it.
pub(crate) struct Chaos {
    /// What is still to be done, the last first.
    steps: Vec<(Duration, Step)>,
    latency: Duration,
}

enum Step {
    Begin(Trouble),
    End(Trouble),
    Mischief(Mischief),
    /// All is well with the server from now on.
    Mend,
}

impl Chaos {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut steps: Vec<_> = plan
            .troubles
            .iter()
            .flat_map(|&(from, until, trouble)| {
                [(from, Step::Begin(trouble)), (until, Step::End(trouble))]
            })
            .collect();
        let mischief = plan.mischief.iter().cloned();
        steps.extend(mischief.map(|(at, mischief)| (at, Step::Mischief(mischief))));
        steps.push((plan.active, Step::Mend));
        steps.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Self { steps, latency: plan.latency }
    }

    /// Does what is due.
    pub(crate) fn advance(&mut self, sim: &mut Sim<'_>, host: &Host) {
        let now = sim.elapsed();
        while self.steps.last().is_some_and(|(at, _)| *at <= now) {
            let Some((_, step)) = self.steps.pop() else { return };
            match step {
                Step::Begin(trouble) => self.begin(trouble, sim),
                Step::End(trouble) => self.end(trouble, sim),
                Step::Mischief(mischief) => misbehave(mischief, host, now),
                Step::Mend => host.act(now, |server, now| {
                    server.clear_faults(now);
                    block_ping(server, 0, 0);
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
            Trouble::Hold => sim.hold(APP, NAME),
            Trouble::Slow(latency) => sim.set_link_latency(APP, NAME, latency),
        }
    }

    fn end(&self, trouble: Trouble, sim: &mut Sim<'_>) {
        match trouble {
            Trouble::Crash => sim.bounce(NAME),
            Trouble::Partition => sim.repair(APP, NAME),
            Trouble::ToServer => sim.repair_oneway(APP, NAME),
            Trouble::FromServer => sim.repair_oneway(NAME, APP),
            Trouble::Hold => sim.release(APP, NAME),
            Trouble::Slow(_) => sim.set_link_latency(APP, NAME, self.latency),
        }
    }
}

fn misbehave(mischief: Mischief, host: &Host, now: Duration) {
    host.act(now, |server, now| match mischief {
        Mischief::Break(ending) => server.break_connections(now, ending, None),
        Mischief::Fault { fault, command, times } => {
            server.set_fault(now, Script::new(fault).at_command(command, 0).times(times));
        }
        Mischief::Block { milliseconds, times } => block_ping(server, milliseconds, times),
    });
}

/// For no time, and no times, it is off.
fn block_ping(server: &mut Server, milliseconds: i32, times: i32) {
    let data = rawdoc! {
        "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": milliseconds,
    };
    let command = if times == 0 {
        rawdoc! { "configureFailPoint": "failCommand", "mode": "off" }
    } else {
        let mode = rawdoc! { "times": times };
        rawdoc! { "configureFailPoint": "failCommand", "mode": mode, "data": data }
    };
    server.set_fail_point(&command).expect("a fail point");
}
