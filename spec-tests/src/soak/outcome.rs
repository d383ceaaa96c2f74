use std::fmt;
use std::time::Duration;

use super::trouble::Troubles;
use super::{Counts, Plan};
use cenote_check::Report;

/// The result of a soak.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The parameters.
    pub plan: Plan,
    /// The kind of workers.
    pub worker_kind: WorkerKind,
    /// How long they worked.
    pub worked: Duration,
    /// How often the server had each fault.
    pub troubles: Troubles,
    /// What the workers counted.
    pub counts: Counts,
    /// Workers that did not end.
    pub hanging: u64,
    /// Whether the pool closed.
    pub closed: bool,
    /// Connections of the pool at the end.
    pub connections: u32,
    /// Sockets to the endpoint at the end, on systems that count them.
    pub sockets: Option<usize>,
    /// Threads of pools at the end, for shells that have any.
    pub threads: Option<usize>,
    /// The verdict on the events.
    pub report: Report,
}

/// What shares a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerKind {
    /// Tasks of a runtime.
    Tasks,
    /// Threads of the operating system.
    Threads,
}

impl fmt::Display for WorkerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tasks => "tasks",
            Self::Threads => "threads",
        })
    }
}

impl Outcome {
    /// Everything that went wrong, one line each.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let Self { worker_kind, counts, hanging, connections, report, .. } = self;
        let checks = [
            (*hanging == 0, format!("{hanging} {worker_kind} hang")),
            (self.closed, "the pool does not close".to_owned()),
            (*connections == 0, format!("{connections} connections are left")),
            (
                self.sockets.is_none_or(|count| count == 0),
                format!("{:?} sockets are left", self.sockets),
            ),
            (
                self.threads.is_none_or(|count| count == 0),
                format!("{:?} threads are left", self.threads),
            ),
            (report.is_good(), format!("the events break rules:\n{report}")),
            (
                report.check_outs == counts.asked,
                format!(
                    "{} check-outs were requested, but events report {}",
                    counts.asked, report.check_outs
                ),
            ),
            (counts.good > 0, "nothing worked".to_owned()),
            (!self.troubles.is_empty(), "the server had no fault".to_owned()),
        ];
        checks.into_iter().filter_map(|(holds, what)| (!holds).then_some(what)).collect()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, worker_kind, counts, report, .. } = self;
        let Plan { tasks, connections, seed, .. } = plan;
        let seconds = self.worked.as_secs_f64();
        writeln!(
            f,
            "{tasks} {worker_kind} over {connections} connections for {seconds:.1} s, seed {seed}"
        )?;
        let troubles = self.troubles.iter().map(|(name, times)| format!("{times} × {name}"));
        writeln!(f, "trouble     {}", troubles.collect::<Vec<_>>().join(", "))?;
        let Counts { asked, delivered, refused, given_up, .. } = counts;
        writeln!(
            f,
            "check-outs  {asked}: {delivered} delivered, {refused} refused, {given_up} given up"
        )?;
        let Counts { good, failed, interrupted, abandoned, .. } = counts;
        writeln!(
            f,
            "operations  {delivered}: {good} good, {failed} failed, {interrupted} interrupted, \
             {abandoned} given up"
        )?;
        write!(f, "events      {report}")?;
        let sockets = self.sockets.map_or("uncounted".to_owned(), |count| count.to_string());
        let Self { hanging, connections, .. } = self;
        write!(
            f,
            "in the end  {hanging} {worker_kind} hang, {connections} connections, {sockets} sockets"
        )?;
        self.threads.iter().try_for_each(|threads| write!(f, ", {threads} threads"))?;
        writeln!(f)
    }
}
