//! What the threads of a file do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::extension::{Broken, CheckOut, Counts};
use super::format::{EventType, Options, Wrong};
use crate::conform::document::inner::{read_variant, wrong_at};

/// One operation, and who carries it out.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(super) struct Operation {
    /// The main thread only hands it to this one; without it, the main thread does it itself
    /// (TF-07).
    pub(super) thread: Option<String>,
    /// What is done.
    pub(super) task: Task,
}

/// What the thread is called that has no name in the files.
pub(super) const MAIN: &str = "the main thread";

/// What can be done (TF-06).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) enum Task {
    /// Starts a thread.
    Start { target: String },
    /// Lets time pass.
    Wait { ms: u64 },
    /// Waits until a thread has done all it was handed, and fails as it failed (TF-08).
    WaitForThread { target: String },
    /// Waits until `count` events of this type were seen since the pool was made, ignored ones, too
    /// (TF-09).
    WaitForEvent { event: EventType, count: usize, timeout: Option<u64> },
    /// Checks a connection out, and remembers it under a name.
    CheckOut(CheckOut),
    /// Checks in the connection of this name. Not of the official format: broken by this, which says
    /// so.
    CheckIn { connection: String, broken: Option<Broken>, says: Option<String> },
    /// Clears the pool. Not of the official format: the service of the connection of this name.
    #[serde(rename_all = "camelCase")]
    Clear {
        #[serde(default)]
        interrupt_in_use_connections: bool,
        service_of: Option<String>,
    },
    /// Closes the pool.
    Close {},
    /// Marks the pool as ready.
    Ready {},
    // None of these is of the official format.
    /// Has whoever waits for a connection on this thread go away; the thread goes on.
    Abandon { target: String },
    /// The pool has so many at this moment.
    AssertCounts(Counts),
    /// The running pool has these options from now on, all of them.
    SetOptions { options: Options },
    /// The pool has nothing to do with a connection of another one.
    CheckInForeign {},
    /// What was checked in under this name is checked in once more, and refused.
    CheckInAgain { connection: String },
    /// The process has forked, and this is the child.
    ResetAfterFork {},
}

impl Task {
    /// How long an event may take if the file does not say.
    const PATIENCE_WITH_EVENTS: Duration = Duration::from_secs(10);
    /// How long anything else may take: longer than any file wants, but not for ever.
    pub(super) const PATIENCE: Duration = Duration::from_secs(600);

    /// After how long the operation ends at the latest: a wait ends well then, everything else in
    /// vain.
    pub(super) fn limit(&self) -> Duration {
        match self {
            Self::Wait { ms } | Self::WaitForEvent { timeout: Some(ms), .. } => {
                Duration::from_millis(*ms)
            }
            Self::WaitForEvent { timeout: None, .. } => Self::PATIENCE_WITH_EVENTS,
            Self::Start { .. }
            | Self::WaitForThread { .. }
            | Self::CheckOut(_)
            | Self::CheckIn { .. }
            | Self::Clear { .. }
            | Self::Close {}
            | Self::Ready {}
            | Self::Abandon { .. }
            | Self::AssertCounts(_)
            | Self::SetOptions { .. }
            | Self::CheckInForeign {}
            | Self::CheckInAgain { .. }
            | Self::ResetAfterFork {} => Self::PATIENCE,
        }
    }

    /// What to say when a thread reached the limit, and how often each event was seen by then.
    pub(super) fn in_vain(&self, thread: &str, seen: impl FnOnce(&str) -> usize) -> String {
        let what = match self {
            Self::WaitForEvent { event, count, .. } => {
                let (event, seen) = (event.as_str(), seen(event.as_str()));
                format!("{event} {count} times, but saw it {seen} times")
            }
            Self::WaitForThread { target } => format!("{target}, which never ended"),
            Self::CheckOut(_) => "a connection, but had no outcome".to_owned(),
            Self::Start { .. }
            | Self::Wait { .. }
            | Self::CheckIn { .. }
            | Self::Clear { .. }
            | Self::Close {}
            | Self::Ready {}
            | Self::Abandon { .. }
            | Self::AssertCounts(_)
            | Self::SetOptions { .. }
            | Self::CheckInForeign {}
            | Self::CheckInAgain { .. }
            | Self::ResetAfterFork {} => unreachable!("these do not wait in vain"),
        };
        format!("{thread} waited {} ms for {what}", self.limit().as_millis())
    }
}

impl TryFrom<Map<String, Value>> for Operation {
    type Error = String;

    // A flattened struct could not refuse unknown keys.
    fn try_from(mut object: Map<String, Value>) -> Result<Self, String> {
        let thread = match object.remove("thread") {
            Some(Value::String(thread)) => Some(thread),
            Some(other) => {
                return Err(wrong_at("thread", format!("`{other}` does not name a thread")));
            }
            None => None,
        };
        let name = match object.remove("name") {
            Some(Value::String(name)) => name,
            Some(other) => return Err(wrong_at("name", format!("`{other}` is no text"))),
            None => return Err("missing field `name`".to_owned()),
        };
        let task = read_variant(&name, "", Some(Value::Object(object)))?;
        Ok(Self { thread, task })
    }
}

/// Whether each thread is started before it is used, and joined after that; and whether each
/// connection that is checked in was checked out under that name further up.
pub(super) fn check(operations: &[Operation]) -> Result<(), Wrong> {
    let mut names = Names::default();
    for (index, operation) in operations.iter().enumerate() {
        names.check(operation).map_err(Wrong::in_part(&format!("operations/{index}")))?;
    }
    Ok(())
}

#[derive(Default)]
struct Names {
    /// Each thread, and whether it was joined.
    threads: BTreeMap<String, bool>,
    labels: BTreeSet<String>,
}

impl Names {
    fn check(&mut self, operation: &Operation) -> Result<(), String> {
        if let Some(thread) = &operation.thread {
            self.running(thread)?;
        }
        match &operation.task {
            Task::Start { target } => {
                if self.threads.insert(target.clone(), false).is_some() {
                    return Err(format!("thread {target} is started twice"));
                }
            }
            Task::WaitForThread { target } => *self.running(target)? = true,
            Task::CheckOut(CheckOut { label, .. }) => self.labels.extend(label.clone()),
            Task::CheckIn { connection, broken, says } => {
                self.checked_out(connection)?;
                if says.is_some() && !matches!(broken, Some(Broken::Network)) {
                    return Err(wrong_at("says", "what is broken by the network says something"));
                }
            }
            Task::CheckInAgain { connection } => self.checked_out(connection)?,
            Task::Clear { service_of: Some(connection), interrupt_in_use_connections } => {
                self.checked_out(connection)?;
                if *interrupt_in_use_connections {
                    return Err("a clear of one service cannot interrupt".to_owned());
                }
            }
            Task::Abandon { target } => drop(self.running(target)?),
            Task::SetOptions { options } => options.to_pool_options().map(|_| ())?,
            Task::AssertCounts(counts) => counts.check()?,
            Task::Wait { .. }
            | Task::WaitForEvent { .. }
            | Task::Clear { service_of: None, .. }
            | Task::Close {}
            | Task::Ready {}
            | Task::CheckInForeign {}
            | Task::ResetAfterFork {} => {}
        }
        Ok(())
    }

    fn checked_out(&self, label: &str) -> Result<(), String> {
        if self.labels.contains(label) {
            return Ok(());
        }
        Err(format!("nothing is checked out as {label} before"))
    }

    fn running(&mut self, thread: &str) -> Result<&mut bool, String> {
        match self.threads.get_mut(thread) {
            Some(joined) if !*joined => Ok(joined),
            Some(_) => Err(format!("thread {thread} has been waited for already")),
            None => Err(format!("thread {thread} was not started")),
        }
    }
}
