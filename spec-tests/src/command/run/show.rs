//! The summary as text.

use std::fmt;
use std::path::Path;

use cenote_replay::text::grouped;

use super::deployment::Deployment;
use super::latency::Quantiles;
use super::record::Recorded;
use super::summary::{Left, Stopped, Summary};
use super::troubles::Troubles;
use crate::command::output::{milliseconds, printable, quoted, table};

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.headline(f)?;
        self.servers(f)?;
        self.numbers(f)?;
        self.times(f)?;
        self.failures(f)?;
        write!(f, "{}", Troubles(&self.troubles))?;
        self.verdict(f)
    }
}

impl Summary {
    fn headline(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tasks, max_pool_size, server, shell, .. } = self;
        let connections = match max_pool_size {
            Some(1) => "1 connection".to_owned(),
            Some(max) => format!("{max} connections"),
            None => "any number of connections".to_owned(),
        };
        let each = if self.deployment.servers.len() > 1 { " to each server" } else { "" };
        let whose = if self.embedded { " (built-in mock server, TLS, SCRAM-SHA-256)" } else { "" };
        writeln!(f, "{tasks} tasks, {connections}{each}, on {shell}, to {server}{whose}\n")
    }

    /// What a connection string turned out to be. There is nothing to find out of the mock server.
    fn servers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.embedded {
            return Ok(());
        }
        let Deployment { kind, set_name, servers } = &self.deployment;
        write!(f, "{:<16}{kind}", "topology")?;
        if let Some(name) = set_name {
            write!(f, " {}", printable(name))?;
        }
        for server in servers {
            write!(f, "\n{:<16}{}", "", server.text)?;
        }
        writeln!(f, "\n")
    }

    fn numbers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operations, check_outs) = (&self.operations, &self.check_outs);
        let stopped = match self.stopped_by {
            Stopped::Time | Stopped::Operations => "",
            Stopped::Signal => ", stopped by a signal",
        };
        writeln!(
            f,
            "{:<16}{} in {:.1} s{stopped}: {} a second",
            "operations",
            grouped(operations.good),
            self.seconds,
            per_second(operations.per_second)
        )?;
        if operations.failed > 0 {
            writeln!(f, "{:<16}{} failed", "", grouped(operations.failed))?;
        }
        if operations.given_up > 0 {
            writeln!(f, "{:<16}{} given up", "", grouped(operations.given_up))?;
        }
        write!(f, "{:<16}{} delivered", "check-outs", grouped(check_outs.delivered))?;
        if check_outs.failed > 0 {
            write!(f, ", {} failed", grouped(check_outs.failed))?;
        }
        if check_outs.given_up > 0 {
            write!(f, ", {} given up", grouped(check_outs.given_up))?;
        }
        let lives = &self.connections;
        write!(f, "\n{:<16}{} established", "connections", grouped(lives.established))?;
        for (reason, count) in &lives.closed {
            write!(f, ", {} closed ({reason})", grouped(*count))?;
        }
        if lives.pool_cleared > 0 {
            write!(f, "; pool cleared {}", times(lives.pool_cleared))?;
        }
        writeln!(f, "\n")
    }

    fn times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |(name, it): (&str, Quantiles)| {
            let times = [it.p50, it.p99, it.p999, it.max].map(|time| match it.count {
                0 => "-".to_owned(),
                _ => milliseconds(time),
            });
            [name.to_owned()].into_iter().chain(times).collect()
        };
        let rows = [
            ("check-out wait", self.check_out_wait),
            ("operation", self.operation_time),
            ("establishment", self.establishment),
        ];
        f.write_str(&table("|p50|p99|p99.9|max", rows.map(row), str::is_empty))?;
        writeln!(f)
    }

    fn failures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.failures.is_empty() {
            return Ok(());
        }
        let mut failures: Vec<_> = self.failures.iter().collect();
        failures.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (index, (reason, count)) in failures.into_iter().enumerate() {
            let name = if index == 0 { "failures" } else { "" };
            // Wide enough for a million.
            writeln!(f, "{name:<16}{:>9}  {reason}", grouped(*count))?;
        }
        writeln!(f)
    }

    fn verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (events, left) = (&self.events, self.left);
        let rules = match events.broken {
            0 => "every rule kept".to_owned(),
            broken => format!("rules broken {}", times(broken)),
        };
        writeln!(f, "{:<16}{} judged: {rules}", "events", grouped(events.judged))?;
        for finding in events.findings.iter().take(10) {
            writeln!(f, "{:<16}{finding}", "")?;
        }
        writeln!(f, "{:<16}{left}", "left behind")?;
        if let Some(growth) = &self.growth {
            writeln!(f, "{:<16}{growth}", "taken")?;
        }
        if let Some(file) = &events.file {
            writeln!(f, "{:<16}{}", "events in", file.display())?;
            writeln!(f, "{:<16}{}", "look", look("check", file))?;
        }
        self.recorded(f)?;
        let more = self.more();
        if more.is_empty() {
            return Ok(());
        }
        writeln!(f, "{:<16}{}", "more", more.join("; "))
    }

    fn recorded(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Recorded { trace, page, steps }) = &self.recorded else { return Ok(()) };
        if let Some(trace) = trace {
            writeln!(f, "{:<16}{}", "trace in", trace.display())?;
            writeln!(f, "{:<16}{}", "look", look("explain", trace))?;
        }
        if let Some(page) = page {
            let steps = grouped(steps.unwrap_or_default());
            writeln!(f, "{:<16}{}: {steps} steps, for a browser", "picture in", page.display())?;
        }
        Ok(())
    }

    /// Hints at further options.
    fn more(&self) -> Vec<&'static str> {
        let mut more = Vec::new();
        let has_page = self.recorded.as_ref().is_some_and(|recorded| recorded.page.is_some());
        if !has_page && self.deployment.servers.len() < 2 {
            more.push("--html FILE draws what happened");
        }
        if self.events.file.is_none() {
            more.push("--events FILE keeps every event");
        }
        if self.embedded && self.troubles.is_empty() {
            more.push("--chaos shows losses and recoveries");
        }
        more
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tasks, connections, sockets, .. } = self;
        match sockets {
            Some(0) if *tasks == 0 && *connections == 0 => {
                f.write_str("nothing: no task, no connection, no socket")
            }
            Some(sockets) => {
                write!(f, "{tasks} tasks, {connections} connections, {sockets} sockets")
            }
            None => write!(f, "{tasks} tasks, {connections} connections; sockets are not counted"),
        }
    }
}

fn per_second(number: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let whole = number.round() as u64;
    grouped(whole)
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{} times", grouped(count)),
    }
}

/// A command line for a file, with this program as it was called.
fn look(command: &str, file: &Path) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "cenote".to_owned());
    format!("{} {command} {}", quoted(&program), quoted(&file.to_string_lossy()))
}
