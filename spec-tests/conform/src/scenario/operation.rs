//! What the threads of a file do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::event_type::EventType;
use super::extension::{Broken, CheckOut, ExpectedCounts};
use super::options::Options;
use crate::document::nested::{read_variant, wrong_at};

/// One operation, and the thread that executes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(crate) struct Operation {
    /// The main thread hands it to this thread; without it, the main thread executes it.
    // TF-07
    pub(crate) thread: Option<String>,
    pub(crate) task: Task,
}

/// The thread that has no name in the files.
pub(crate) const MAIN: &str = "the main thread";

/// What an operation does.
// TF-06
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) enum Task {
    /// Starts a thread.
    Start { target: String },
    /// Lets time pass.
    Wait { ms: u64 },
    /// Waits until a thread has executed all its operations, and fails if it failed.
    // TF-08
    WaitForThread { target: String },
    /// Waits until `count` events of this type occurred since the pool was created, ignored ones
    /// included.
    // TF-09
    WaitForEvent { event: EventType, count: usize, timeout: Option<u64> },
    /// Checks out a connection and stores it under its label.
    CheckOut(CheckOut),
    /// Checks in the connection with this label. Not official: `broken`, and the text of its error.
    CheckIn { connection: String, broken: Option<Broken>, says: Option<String> },
    /// Clears the pool. Not official: the service of the connection with this label.
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
    // The others are not part of the official format.
    /// Cancels the check-out that this thread waits for; the thread goes on.
    Abandon { target: String },
    /// Compares the counts of the pool.
    AssertCounts(ExpectedCounts),
    /// Replaces the options of the running pool.
    SetOptions { options: Options },
    /// Checks in a connection of another pool, which must not change this pool.
    CheckInForeign {},
    /// Checks in again what was checked in under this label: the pool must reject it.
    CheckInAgain { connection: String },
    /// The process has forked, and this is the child.
    ResetAfterFork {},
}

impl Task {
    /// The time limit of a `waitForEvent` without one.
    const EVENT_LIMIT: Duration = Duration::from_secs(10);
    /// The time limit of the operation, at most `longest` if it has none of its own: `wait` then
    /// succeeds, everything else fails.
    pub(crate) fn limit(&self, longest: Duration) -> Duration {
        match self {
            Self::Wait { ms } | Self::WaitForEvent { timeout: Some(ms), .. } => {
                Duration::from_millis(*ms)
            }
            Self::WaitForEvent { timeout: None, .. } => Self::EVENT_LIMIT,
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
            | Self::ResetAfterFork {} => longest,
        }
    }

    /// The message for a thread that waited until the limit; `seen` counts events.
    pub(crate) fn timed_out(
        &self,
        thread: &str,
        limit: Duration,
        seen: impl FnOnce(&str) -> usize,
    ) -> String {
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
            | Self::ResetAfterFork {} => unreachable!("these never wait"),
        };
        format!("{thread} waited {} ms for {what}", limit.as_millis())
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

/// Checks that threads are started before they are used and not used after they are joined, and that
/// connections are checked out before they are checked in.
pub(super) fn check(operations: &[Operation]) -> Result<(), String> {
    let mut names = Names::default();
    for (index, operation) in operations.iter().enumerate() {
        let checked = names.check(operation);
        checked.map_err(|what| wrong_at(&format!("operations/{index}"), what))?;
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
                    return Err(wrong_at("says", "only an error of the network has a text"));
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
