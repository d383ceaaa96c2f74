//! Which scripts are in force, and whose turn it is.

use std::collections::BTreeMap;

use super::commands::Definition;
use super::fault::{Fault, FaultId, Moment, Script};

/// All scripts in force, in the order in which they were set: the first that fits happens.
#[derive(Debug, Default)]
pub(super) struct Faults {
    active: BTreeMap<FaultId, Active>,
    set: u64,
    happened: u64,
}

#[derive(Debug)]
struct Active {
    script: Script,
    /// What is left of its times.
    left: Option<u64>,
}

/// How many commands of a connection each script has seen. Only of scripts that are in force.
pub(super) type Seen = BTreeMap<FaultId, u64>;

/// A connection that a script may match.
pub(super) struct Suspect<'a> {
    pub(super) connection: u64,
    pub(super) app_name: Option<&'a str>,
}

impl Faults {
    pub(super) fn set(&mut self, script: Script) -> FaultId {
        self.set += 1;
        let id = FaultId(self.set);
        let left = script.times;
        self.active.insert(id, Active { script, left });
        id
    }

    pub(super) fn clear(&mut self, id: FaultId) {
        self.active.remove(&id);
    }

    pub(super) fn clear_all(&mut self) {
        self.active.clear();
    }

    /// Whether some script keeps the server from listening.
    pub(super) fn refuses(&self) -> bool {
        self.active.values().any(|active| active.script.fault == Fault::Refuse)
    }

    /// Whether some script crosses replies.
    pub(super) fn cross(&self) -> bool {
        self.active.values().any(|active| active.script.fault == Fault::Crossed)
    }

    /// How often a fault of a script has happened.
    pub(super) fn happened(&self) -> u64 {
        self.happened
    }

    /// What happens to a connection that was accepted just now.
    pub(super) fn at_accept(&mut self, suspect: &Suspect<'_>) -> Option<Fault> {
        let of_accept = |active: &Active| active.script.moment == Moment::Accept;
        let mut fitting = self.active.values_mut().filter(|active| active.concerns(suspect));
        let fault = fitting.find(|active| of_accept(active)).map(Active::happen);
        self.happened += u64::from(fault.is_some());
        fault
    }

    /// What happens at this command. Every script that fits counts it, the first one that has
    /// spared enough of them happens.
    pub(super) fn at_command(
        &mut self,
        suspect: &Suspect<'_>,
        command: Command<'_>,
        seen: &mut Seen,
    ) -> Option<Fault> {
        seen.retain(|id, _| self.active.contains_key(id));
        let mut due = None;
        for (id, active) in &mut self.active {
            let Moment::Command { name, skip } = &active.script.moment else { continue };
            if !name.as_ref().is_none_or(|name| command.is(name)) || !active.concerns(suspect) {
                continue;
            }
            let skip = *skip;
            let count = seen.entry(*id).or_default();
            *count += 1;
            if due.is_none() && *count > skip {
                due = Some(active);
            }
        }
        self.happened += u64::from(due.is_some());
        due.map(Active::happen)
    }
}

/// A command as it was sent, whether or not the server knows it.
#[derive(Clone, Copy)]
pub(super) struct Command<'a> {
    pub(super) name: &'a str,
    pub(super) known: Option<&'static Definition>,
}

impl Command<'_> {
    fn is(&self, name: &str) -> bool {
        self.name == name || self.known.is_some_and(|known| known.is_called(name))
    }
}

impl Active {
    fn concerns(&self, suspect: &Suspect<'_>) -> bool {
        let Script { fault, connections, app_name, .. } = &self.script;
        *fault != Fault::Refuse
            && self.left != Some(0)
            && connections.contains(&suspect.connection)
            && app_name.as_ref().is_none_or(|name| suspect.app_name == Some(name))
    }

    fn happen(&mut self) -> Fault {
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        self.script.fault.clone()
    }
}
